"""Tables in pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.sources.object_values import values_as_text
from private_gsd.data.sources.restoring import to_pandas
from private_gsd.data.sources.source_table import SourceTable, first_line, module_of
from private_gsd.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class PandasFrame(SourceTable):
    """A pandas data frame; its index is not a column and is ignored."""

    reads = "a pandas DataFrame"
    name = "the pandas DataFrame"

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is a pandas DataFrame."""
        return module_of(data) == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns")

    def __init__(self, data: Any) -> None:
        self._data = data.set_axis([str(name) for name in data.columns], axis=1)
        self.rows = len(data)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names of all columns; their types are known after the values are read."""
        return pa.schema([(name, pa.null()) for name in self._data.columns])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""
        arrays = []
        for name in columns:
            series = self._data[name]
            try:
                # The type that Arrow infers for a column of objects depends on all of its rows.
                mixed = series.dtype.kind == "O" and series.dtype.name == "object"
                arrays.append(
                    values_as_text(series) if mixed else pa.array(series, from_pandas=True)
                )
            except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
                raise UnreadableError(
                    f"{self.name}: column {name!r} ({series.dtype}) holds something that is "
                    f"neither text, number, boolean, date nor null: {first_line(error)}"
                ) from None
        yield from pa.table(arrays, names=list(columns)).to_batches(max_chunksize=batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """The table as a pandas data frame."""
        return to_pandas(table, schema)
