"""Progress: one protocol for reporting progress, and a bar in terminals and notebooks.

Long computations call ``progress(what, done, total)`` now and then, with the part of the work, the
amount of it that is done, and the total amount, where it is known. That kernels are compiled, deep
below, where no ``progress`` is given, is announced to whoever listens. Where nobody said what to do
with progress, a bar says that much, and nothing else.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from private_gsd.errors import GsdError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The shortest time between two changes of a notebook's display.
NOTEBOOK_SECONDS = 0.2
# What is announced. A first run on a machine would otherwise look like a standstill.
COMPILING = "compiling, once on this machine"
# Where neither a terminal nor a notebook shows a bar.
LINE = "private-gsd: compiling kernels, once on this machine; this takes up to half a minute"
LOGGER = logging.getLogger("private_gsd")


class Progress(Protocol):
    """A function that is called with the part of the work, the amount done and the total."""

    def __call__(self, what: str, done: float, total: float | None, /) -> object:
        """Report progress.

        Args:
            what: The part of the work, such as "counting" or "searching".
            done: The amount that is done.
            total: The total amount; None if it is not known.
        """


def ignore(what: str, done: float, total: float | None, /) -> None:
    """Ignore progress; the default."""


@contextmanager
def shown(progress: bool | Progress | None = None) -> Iterator[Progress]:
    """The function to report progress to: the one that was given, or a bar for True.

    By default, a bar that is drawn only while kernels are compiled, unless somebody listens.

    Args:
        progress: True for a bar in terminals and notebooks, a function, False for nothing at all,
            or None (or ``ignore``) where nothing was said.
    """
    if progress is True:
        with bars_here() as bars, listening(bars):
            yield bars
    elif progress is False:
        with listening(ignore):
            yield ignore
    elif progress is None or progress is ignore:
        if _LISTENERS:
            yield ignore
        else:
            with compiling_bar() as bar, listening(bar):
                yield bar
    elif callable(progress):
        with listening(progress):
            yield progress
    else:
        raise GsdError(
            "progress must be True, False or a function of (what, done, total), not "
            f"{progress!r:.80}"
        )


_LISTENERS: list[Progress] = []


@contextmanager
def listening(progress: Progress) -> Iterator[None]:
    """Let what is announced within this block, on any thread, be reported to ``progress``."""
    _LISTENERS.append(progress)
    try:
        yield
    finally:
        # The newest of this function; another thread may have begun to listen since.
        newest = max(place for place, each in enumerate(_LISTENERS) if each is progress)
        del _LISTENERS[newest]


def announce(what: str, done: float, total: float | None) -> None:
    """Report to the newest listener, if there is one."""
    for newest in _LISTENERS[-1:]:
        newest(what, done, total)


@contextmanager
def compiling_bar() -> Iterator[Progress]:
    """A bar that begins when compiling is reported, and ends when anything else is.

    Where no bar can be seen, one line is logged, as a warning, which Python prints on standard
    error unless a program sets up logging in another way.
    """
    lock = threading.Lock()  # kernels are compiled on many threads
    drawn = ExitStack()
    bar: Progress | None = None
    said = ended = False

    def close() -> None:
        nonlocal bar
        bar = None
        drawn.close()

    def report(what: str, done: float, total: float | None, /) -> None:
        nonlocal bar, said
        with lock:
            if what != COMPILING:
                close()
            elif in_notebook() or Console(stderr=True).is_terminal:
                if bar is None and not ended:
                    bar = drawn.enter_context(bars_here())
                if bar is not None:
                    bar(what, done, total)
            elif not said:
                said = True
                LOGGER.warning(LINE)

    try:
        yield report
    finally:
        with lock:
            ended = True
            close()


@contextmanager
def bars_here() -> Iterator[Progress]:
    """A line of HTML in notebooks, and lines in terminals."""
    with notebook_bars() if in_notebook() else terminal_bars() as bars:
        yield bars


@contextmanager
def terminal_bars() -> Iterator[Progress]:
    """A line for each part of the work on standard error, if that is a terminal."""
    console = Console(stderr=True, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[how]}"),
    )
    off = not console.is_terminal
    with Bars(*columns, console=console, transient=True, disable=off) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: float, total: float | None, /) -> None:
            if what not in tasks:
                for earlier in bars.tasks:  # earlier parts are done
                    bars.update(earlier.id, total=1, completed=1)
                tasks[what] = bars.add_task(what.capitalize(), total=total, how="")
            bars.update(tasks[what], completed=done, total=total, how=amount(done, total))

        yield report


@contextmanager
def notebook_bars() -> Iterator[Progress]:
    """One line of HTML below the cell, which changes with the progress."""
    display: Any = sys.modules["IPython"].display
    handle = display.display(display.HTML(""), display_id=True)
    last: tuple[float, str] = (0.0, "")

    def report(what: str, done: float, total: float | None, /) -> None:
        nonlocal last
        now = time.monotonic()
        if what != last[1] or now - last[0] >= NOTEBOOK_SECONDS:
            last = (now, what)
            value = "" if total is None else f' value="{done:g}" max="{total:g}"'
            handle.update(
                display.HTML(
                    f"<div>{what.capitalize()} <progress{value}></progress> "
                    f"{amount(done, total)}</div>"
                )
            )

    try:
        yield report
    finally:
        handle.update(display.HTML(""))


def amount(done: float, total: float | None) -> str:
    """The amount that is done, in words.

    >>> amount(1500, 3000), amount(7, None), amount(0, None)
    ('1,500 of 3,000', '7', '')
    """
    if total is not None:
        return f"{done:,.0f} of {total:,.0f}"
    return f"{done:,.0f}" if done else ""


def in_notebook() -> bool:
    """Whether this runs in a notebook that shows HTML."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
