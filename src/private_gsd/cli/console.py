"""What commands show: notes and progress on standard error, results on standard output."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
)
from rich.table import Table

from private_gsd.errors import GsdError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from private_gsd.schema import Schema

    class Sized(Protocol):
        """Anything with a number of rows."""

        def __len__(self) -> int:
            """The number of rows."""

    Batch = TypeVar("Batch", bound=Sized)

PHASES = {
    "answering": "Answering",
    "measuring": "Adding noise",
    "searching": "Evolving",
}

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def note(message: str) -> None:
    """Tell the user something that is not a result."""
    err.print(f"[yellow]note:[/] {escape(message)}", soft_wrap=True)


def warn_if_not_private(record: dict[str, Any]) -> None:
    """Tell who uses a release that it is not private, and why."""
    for reason in record["not_private_because"]:
        err.print(f"[bold red]NOT PRIVATE:[/] {escape(reason)}", soft_wrap=True)


@contextmanager
def notes_for_warnings(quiet: bool = False) -> Iterator[None]:
    """Show this package's warnings as notes, or not at all."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in [] if quiet else caught:
        note(str(warning.message))


@contextmanager
def row_progress(what: str, rows: int | None) -> Iterator[Callable[[int], None]]:
    """A function to be told of rows that went by; nothing is drawn off a terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn() if rows else TextColumn(""),
        MofNCompleteColumn() if rows else TextColumn("{task.completed:,}"),
        TextColumn("rows"),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(what, total=rows)
        yield lambda number: progress.advance(task, number)


def with_progress(batches: Iterator[Batch], what: str, rows: int | None) -> Iterator[Batch]:
    """Pass batches on and show how many rows went by."""
    with row_progress(what, rows) as advance:
        for batch in batches:
            yield batch
            advance(len(batch))


@contextmanager
def run_progress(
    before: str = "Reading", *, quiet: bool = False
) -> Iterator[Callable[[str, Any], None]]:
    """A function to be told of what is done and how far; nothing is drawn off a terminal.

    Args:
        before: What is done until the first word comes.
        quiet: Whether to draw nothing at all.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[how]}"),
    )
    off = quiet or not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=off) as progress:
        first = progress.add_task(before, total=None, how="")
        tasks: dict[str, TaskID] = {}
        rows: int | None = None

        def tell(what: str, now: Any) -> None:
            nonlocal rows
            if what == "opened":
                rows = now
                return
            if what not in tasks:
                # What went before is done; a line for each thing that the run does.
                for earlier in progress.tasks:
                    progress.update(earlier.id, total=1, completed=1)
                progress.update(first, visible=False)
                total = rows if what == "answering" else None
                tasks[what] = progress.add_task(PHASES[what], total=total, how="")
            task = tasks[what]
            if what == "answering":
                progress.advance(task, now)
                seen = progress.tasks[progress.task_ids.index(task)].completed
                progress.update(task, how=f"{seen:,.0f} rows")
            elif what == "measuring":
                done, total = now
                progress.update(task, completed=done, total=total, how=f"{total:,} counts")
            else:
                words = f"generation {now.generation}, loss {now.loss:,.6g}"
                if now.edits:  # other projectors have none
                    words += f", {now.edits_a_second / 1e6:.0f} million edits a second"
                progress.update(task, how=words)

        yield tell


@contextmanager
def step_progress(*, quiet: bool = False) -> Iterator[Callable[[str, int], None]]:
    """A function to be told of what is done now, and of rows that went by meanwhile."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[how]}"))
    off = quiet or not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=off) as progress:
        now = progress.add_task("Reading", total=None, how="")
        seen = 0

        def tell(what: str, rows: int) -> None:
            nonlocal seen
            seen = seen + rows if rows else 0
            progress.update(now, description=escape(what), how=f"{seen:,} rows" if seen else "")

        yield tell


def schema_table(schema: Schema, title: str) -> Table:
    """The columns of a schema, to look at."""
    table = Table(
        title=escape(title), title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for header in ("column", "kind", "null", "domain"):
        table.add_column(header, overflow="fold")
    for column in schema:
        table.add_row(
            escape(column.name),
            column.kind,
            "yes" if column.nullable else "",
            escape(column.domain),
        )
    return table


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file, but never over another one unasked."""
    if path.exists() and not force:
        raise GsdError(f"{path}: exists already; choose another name, or add --force to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def silence_stdout() -> None:
    """After a reader of our output went away, keep Python from complaining at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
