"""Tables in Polars, lazy or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.sources.restoring import to_polars
from private_gsd.data.sources.source_table import SourceTable, module_of, readable, slices
from private_gsd.errors import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class PolarsFrame(SourceTable):
    """A Polars data frame or lazy frame; a lazy frame is collected in batches."""

    reads = "a Polars DataFrame or LazyFrame"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a Polars DataFrame or LazyFrame."""
        return module_of(data) == "polars" and hasattr(data, "collect_schema")

    def __init__(self, data: Any) -> None:
        polars = require("polars", what="Reading a Polars frame", extra="polars")
        self._lazy = isinstance(data, polars.LazyFrame)
        self._names = data.collect_schema().names()
        self._data = data
        self._length = polars.len()
        self._failure = polars.exceptions.PolarsError
        self.name = f"the Polars {type(data).__name__}"
        self.rows = None if self._lazy else data.height

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names of all columns; their types are known after the values are read."""
        return pa.schema([(name, pa.null()) for name in self._names])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""
        selected = self._data.select(columns)
        with readable(self.name, self._failure):
            if self._lazy:
                frames = selected.collect_batches(chunk_size=batch_rows, maintain_order=True)
            else:
                frames = selected.iter_slices(batch_rows)
            for frame in frames:
                for batch in frame.to_arrow().to_batches():
                    yield from slices(batch, batch_rows)

    def count(self) -> int:
        """The number of rows; a lazy frame is collected for it."""
        with readable(self.name, self._failure):
            return int(self._data.lazy().select(self._length).collect().item())

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """The table as a Polars frame, which is lazy if the source was lazy."""
        frame = to_polars(table, schema)
        return frame.lazy() if self._lazy else frame
