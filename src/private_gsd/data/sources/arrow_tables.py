"""Tables in Arrow's own forms: tables, batches, streams and datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.sources.source_table import SourceTable, module_of, readable, slices
from private_gsd.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.dataset  # at run time it would bring pandas along


class ArrowTable(SourceTable):
    """A PyArrow table or record batch, or any object with the Arrow stream protocol."""

    reads = "an Arrow table or anything with __arrow_c_stream__"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a record batch or has the Arrow stream protocol."""
        return isinstance(data, pa.RecordBatch) or hasattr(data, "__arrow_c_stream__")

    def __init__(self, data: Any) -> None:
        self.name = f"the {type(data).__name__}"
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        self._data = data
        self.rows = data.num_rows if isinstance(data, pa.Table) else None
        self.once = self.rows is None
        if isinstance(data, pa.Table | pa.RecordBatchReader):
            self._schema = data.schema
        else:
            try:
                self._schema = pa.RecordBatchReader.from_stream(data).schema
            except (pa.ArrowException, TypeError, ValueError):
                raise SourceError(f"{self.name} is not a table of named columns") from None

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""
        if isinstance(self._data, pa.Table):
            yield from self._data.select(columns).to_batches(max_chunksize=batch_rows)
            return
        with readable(self.name):
            for batch in pa.RecordBatchReader.from_stream(self._data):
                yield from slices(batch.select(columns), batch_rows)


class ArrowDataset(SourceTable):
    """A PyArrow dataset."""

    reads = "a PyArrow dataset"
    name = "the dataset"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a PyArrow dataset."""
        return module_of(data) == "pyarrow" and hasattr(data, "scanner")

    def __init__(self, data: pyarrow.dataset.Dataset) -> None:
        self._data = data

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names and types of all columns."""
        return self._data.schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""
        with readable(self.name):
            yield from self._data.to_batches(columns=list(columns), batch_size=batch_rows)

    def count(self) -> int:
        """The number of rows."""
        with readable(self.name):
            return int(self._data.count_rows())
