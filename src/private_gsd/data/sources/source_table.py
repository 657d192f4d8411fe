"""The base of all sources: tables that are read as Arrow record batches, repeatedly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from private_gsd.data.sources.restoring import to_arrow
from private_gsd.errors import SourceError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class SourceTable(ABC):
    """A table that can be read repeatedly, a batch at a time.

    A new kind of source is a subclass in a file of its own, and a line in ``opening.SOURCES``.

    Attributes:
        reads: The objects that the class reads, in words.
        name: The name of the table in messages.
        rows: The number of rows, if it is known without reading the table.
        once: Whether the table can be read only once.
    """

    reads: ClassVar[str]
    name: str
    rows: int | None = None
    once: bool = False

    @classmethod
    @abstractmethod
    def accepts(cls, data: Any) -> bool:
        """Whether the class can read an object."""

    @abstractmethod
    def __init__(self, data: Any) -> None:
        """Wrap an object that the class accepts."""

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The names and types of all columns of the table."""

    @abstractmethod
    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches of at most ``batch_rows`` rows."""

    def count(self) -> int | None:
        """The number of rows, counted if necessary; None if the table can be read only once."""
        return self.rows

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """Convert a result to the kind of frame of this source; by default a PyArrow table."""
        return to_arrow(table, schema)


@contextmanager
def readable(name: str, *failures: type[Exception]) -> Iterator[None]:
    """Turn errors of Arrow and of the system into an ``UnreadableError`` with one line.

    Args:
        name: The name of the table in the message.
        failures: Further exceptions to turn.
    """
    try:
        yield
    except (pa.ArrowException, OSError, *failures) as error:
        raise UnreadableError(f"{name} cannot be read: {first_line(error)}") from None


def module_of(data: object) -> str:
    """The top-level package of an object's class, found without importing it."""
    return type(data).__module__.partition(".")[0]


def slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """A batch in pieces of at most ``rows`` rows, without copying."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def require_columns(
    path: object, names: Sequence[str], first: object, wanted: Sequence[str]
) -> None:
    """Refuse a file that lacks columns of the first file."""
    lacking = sorted(set(wanted) - set(names))
    if lacking:
        raise SourceError(f"{path} lacks columns that {first} has: {', '.join(lacking)}")


def quote_name(name: str) -> str:
    """A quoted column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def first_line(error: Exception) -> str:
    """The first line of an error message."""
    return str(error).partition("\n")[0][:200]
