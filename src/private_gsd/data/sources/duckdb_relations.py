"""Tables in DuckDB."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from private_gsd.data.sources.restoring import to_arrow
from private_gsd.data.sources.source_table import SourceTable, first_line, quote_name
from private_gsd.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class DuckdbRelation(SourceTable):
    """A DuckDB relation; its connection cannot be used for anything else while it is read."""

    reads = "a DuckDB relation"
    name = "the DuckDB relation"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a DuckDB relation."""
        return isinstance(data, duckdb.DuckDBPyRelation)

    def __init__(self, data: duckdb.DuckDBPyRelation) -> None:
        self._data = data
        self._schema = data.limit(0).to_arrow_table().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""
        with self._readable():
            selected = self._data.project(", ".join(quote_name(name) for name in columns))
            yield from selected.to_arrow_reader(batch_rows)

    def count(self) -> int:
        """The number of rows."""
        with self._readable():
            ((number,),) = self._data.count("*").fetchall()
        return int(number)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise UnreadableError(
                f"{self.name} cannot be read (its connection allows one reader at a time): "
                f"{first_line(error)}"
            ) from None

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """The table as a DuckDB relation."""
        return duckdb.from_arrow(to_arrow(table, schema))
