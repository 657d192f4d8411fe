"""Console output: notes and progress on standard error, results on standard output."""

from __future__ import annotations

import codecs
import os
import sys
import warnings
import webbrowser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from private_gsd.errors import GsdError
from private_gsd.system.operating_system import has_desktop
from private_gsd.system.progress import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from private_gsd.schema import Schema

    class Sized(Protocol):
        """Anything with a number of rows."""

        def __len__(self) -> int:
            """The number of rows."""

    Batch = TypeVar("Batch", bound=Sized)

# What stands for a character of ours that the encoding of a terminal, a file or a pipe lacks.
SPELLED = {
    "ε": "epsilon",
    "δ": "delta",
    "ρ": "rho",
    "µ": "u",
    "≤": "<=",
    "₁": "1",
    "²": "2",
    "…": "...",
    "–": "-",
    "’": "'",
    "█": "#",
    "░": ".",
    **dict(zip("▁▂▃▄▅▆▇", "123456789", strict=False)),
}
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def spell(error: UnicodeError) -> tuple[str, int]:
    """Spell the characters that an encoding lacks; a handler of errors for ``codecs``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(SPELLED.get(each, "?") for each in lacking), error.end


codecs.register_error("private_gsd.spell", spell)


def note(message: str) -> None:
    """Print a note on standard error."""
    err.print(f"[yellow]note:[/] {escape(message)}", soft_wrap=True)


def warn_if_not_private(record: dict[str, Any]) -> None:
    """Print on standard error why a release is not private, if it is not."""
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


def with_progress(batches: Iterator[Batch], what: str, rows: int | None) -> Iterator[Batch]:
    """Yield the batches unchanged, and show the number of rows so far."""
    done = 0
    with shown(True) as progress:
        for batch in batches:
            yield batch
            done += len(batch)
            progress(what, done, rows)


def schema_table(schema: Schema, title: str) -> Table:
    """The columns of a schema, as a table for the terminal."""
    if schema.unit is not None:
        title += f"; the unit of protection is {schema.unit.in_words}"
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
    """Write a text file; an existing file is replaced only with ``force``."""
    if path.exists() and not force:
        raise GsdError(f"{path}: exists already; choose another name, or add --force to replace it")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def show_page(path: Path) -> bool:
    """Open a page in the browser if somebody sits before it; returns whether it was opened."""
    if not (has_desktop() and sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    try:
        return webbrowser.open_new_tab(path.absolute().as_uri())
    except (OSError, webbrowser.Error):
        return False


def silence_stdout() -> None:
    """Redirect standard output to nothing, so that a closed pipe gives no error at exit."""
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), sys.stdout.fileno())
