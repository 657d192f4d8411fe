"""Progress: one protocol for reporting progress, and a bar in terminals and notebooks.

Long computations call ``progress(what, done, total)`` now and then, with the part of the work, the
amount of it that is done, and the total amount, where it is known. What happens deep below, where
no ``progress`` is given, is announced to whoever listens.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

from private_gsd.errors import GsdError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The shortest time between two changes of a notebook's display.
NOTEBOOK_SECONDS = 0.2


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
def shown(progress: bool | Progress | None) -> Iterator[Progress]:
    """The function to report progress to: the one that was given, a bar for True, or ``ignore``.

    Args:
        progress: True for a bar in terminals and notebooks, a function, or False or None.
    """
    if progress is True:
        with notebook_bars() if in_notebook() else terminal_bars() as bars, listening(bars):
            yield bars
    elif progress is None or progress is False:
        yield ignore
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
