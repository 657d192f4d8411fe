"""What every source of a table has in common: rows in batches of Arrow, again and again."""

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
    """A table that can be read again and again, a batch at a time.

    A new kind of source is a class of this kind in a file of its own, and a line in ``opening``.

    Attributes:
        reads: What the class reads, for messages.
        name: The table, for messages.
        rows: The number of rows, where that is known without reading the table.
    """

    reads: ClassVar[str]
    name: str
    rows: int | None = None

    @classmethod
    @abstractmethod
    def accepts(cls, data: Any) -> bool:
        """Whether the class reads an object."""

    @abstractmethod
    def __init__(self, data: Any) -> None:
        """Wrap an object that the class accepts."""

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns, as they came."""

    @abstractmethod
    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches of at most that many rows."""

    def count(self) -> int | None:
        """The number of rows, counted if need be; None where the table can be read only once."""
        return self.rows

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """A result in the schema's types as the kind of frame that came; else a PyArrow table."""
        return to_arrow(table, schema)


@contextmanager
def readable(name: str, *failures: type[Exception]) -> Iterator[None]:
    """Turn the errors of Arrow, of the system and of others into ours, in one line.

    Args:
        name: The table, for the message.
        failures: Other errors that mean that the table cannot be read.
    """
    try:
        yield
    except (pa.ArrowException, OSError, *failures) as error:
        raise UnreadableError(f"{name} cannot be read: {first_line(error)}") from None


def module_of(data: object) -> str:
    """The library that an object's class is from; it need not be installed."""
    return type(data).__module__.partition(".")[0]


def slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """A batch in pieces of at most that many rows, without copying."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def require_columns(
    path: object, names: Sequence[str], first: object, wanted: Sequence[str]
) -> None:
    """Refuse a file that lacks columns of the first one."""
    lacking = sorted(set(wanted) - set(names))
    if lacking:
        raise SourceError(f"{path} lacks columns that {first} has: {', '.join(lacking)}")


def quote_name(name: str) -> str:
    """A column name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def first_line(error: Exception) -> str:
    """What an error says, without the details that may follow."""
    return str(error).partition("\n")[0][:200]
