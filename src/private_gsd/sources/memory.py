"""Tables in memory, and those of other engines: each as a stream of record batches.

Each class wraps one kind of object behind the same few names (a ``Table``), and knows
how to give a result back as the same kind, in the types that came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset

from private_gsd.errors import SourceError, require
from private_gsd.schema.arrow import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema


class Table(ABC):
    """A table that can be read again and again, a batch at a time."""

    name: str
    rows: int | None = None

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns, as they came."""

    @abstractmethod
    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches of at most that many rows."""

    @abstractmethod
    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """A result in the schema's types as the kind of frame, and in the types, that came."""


class ArrowTable(Table):
    """A PyArrow table or record batch, or anything that speaks the Arrow stream protocol."""

    def __init__(self, data: Any) -> None:
        self._once = isinstance(data, pa.RecordBatchReader)
        self._read = False
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        self._data = data
        self.name = f"the {type(data).__name__}"
        self.rows = data.num_rows if isinstance(data, pa.Table) else None
        self._schema = data.schema if self._once else pa.RecordBatchReader.from_stream(data).schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        if self._once and self._read:
            raise SourceError(
                f"{self.name} can be read only once and was read before; pass a table or a file"
            )
        self._read = True
        if isinstance(self._data, pa.Table):
            yield from self._data.select(columns).to_batches(max_chunksize=batch_rows)
            return
        for batch in pa.RecordBatchReader.from_stream(self._data):
            yield from slices(batch.select(columns), batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> pa.Table:  # noqa: ARG002
        """A PyArrow table."""
        return restore_types(table, self._schema)


class ArrowDataset(Table):
    """A PyArrow dataset."""

    name = "the dataset"

    def __init__(self, data: pyarrow.dataset.Dataset) -> None:
        self._data = data

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._data.schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        yield from self._data.to_batches(columns=list(columns), batch_size=batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> pa.Table:  # noqa: ARG002
        """A PyArrow table."""
        return restore_types(table, self.arrow_schema)


class PandasFrame(Table):
    """A pandas data frame; its index is no column and is left out."""

    name = "the pandas DataFrame"

    def __init__(self, data: Any) -> None:
        self._data = data
        self.rows = len(data)
        self._empty = data.iloc[:0]

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names of all columns; types are known only once the values are read."""
        return pa.schema([(str(name), pa.null()) for name in self._data.columns])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        frame = self._data.rename(columns=str)[list(columns)]
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except pa.ArrowException as error:
            raise SourceError(
                f"{self.name} has a column of mixed types; make it all text or all numbers: "
                + "; ".join(str(part) for part in error.args)
            ) from None
        yield from table.to_batches(max_chunksize=batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """A pandas data frame with the dtypes that came."""
        pandas = require("pandas", what="Giving back a pandas DataFrame", extra="pandas")
        frame = self._empty.rename(columns=str)
        columns = {}
        for name in table.column_names:
            dtype = frame[name].dtype
            if isinstance(dtype, pandas.CategoricalDtype):
                # The values that came may have been learned from the data: take the schema's.
                categories = getattr(schema[name], "values", None)
                dtype = pandas.CategoricalDtype(categories, ordered=dtype.ordered)
            columns[name] = restore_series(pandas, table[name], dtype)
        return pandas.DataFrame(columns)


class PolarsFrame(Table):
    """A Polars data frame or lazy frame; a lazy one is collected in batches."""

    def __init__(self, data: Any) -> None:
        self._polars = require("polars", what="Reading a Polars frame", extra="polars")
        self._lazy = isinstance(data, self._polars.LazyFrame)
        self._data = data
        self._schema = data.collect_schema()
        self.name = f"the Polars {type(data).__name__}"
        self.rows = None if self._lazy else data.height

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._polars.DataFrame(schema=self._schema).to_arrow().schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        selected = self._data.select(columns)
        if self._lazy:
            frames = selected.collect_batches(chunk_size=batch_rows, maintain_order=True)
        else:
            frames = selected.iter_slices(batch_rows)
        for frame in frames:
            for batch in frame.to_arrow().to_batches():
                yield from slices(batch, batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """A Polars frame with the dtypes that came."""
        polars = self._polars
        frame = polars.from_arrow(table)
        for name in table.column_names:
            dtype = self._schema[name]
            if dtype == polars.Enum:
                # The values that came may have been learned from the data: take the schema's.
                dtype = polars.Enum([str(value) for value in getattr(schema[name], "values", ())])
            if not is_foreign(table[name].type, dtype == polars.String):
                frame = frame.with_columns(polars.col(name).cast(dtype))
        return frame.lazy() if self._lazy else frame


class DuckdbRelation(Table):
    """A DuckDB relation."""

    name = "the DuckDB relation"

    def __init__(self, data: duckdb.DuckDBPyRelation) -> None:
        self._data = data
        self._schema = data.limit(0).to_arrow_table().schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        selected = self._data.project(", ".join(quote_name(name) for name in columns))
        yield from selected.to_arrow_reader(batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> Any:  # noqa: ARG002
        """A DuckDB relation over the result."""
        return duckdb.from_arrow(restore_types(table, self._schema))


def wrap(data: Any) -> Table | None:
    """The wrapper for an object in memory, or None for an object of another sort."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return PandasFrame(data)
    if module == "polars" and hasattr(data, "collect_schema"):
        return PolarsFrame(data)
    if isinstance(data, duckdb.DuckDBPyRelation):
        return DuckdbRelation(data)
    if isinstance(data, pyarrow.dataset.Dataset):
        return ArrowDataset(data)
    if isinstance(data, pa.RecordBatch) or hasattr(data, "__arrow_c_stream__"):
        return ArrowTable(data)
    return None


def slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """A batch in pieces of at most that many rows, without copying."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def quote_name(name: str) -> str:
    """A column name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def is_foreign(kind: pa.DataType, was_text: bool) -> bool:
    """Whether the column came as text and is something else by the schema: then it stays so."""
    return was_text and not is_text(kind)


def restore_types(table: pa.Table, came: pa.Schema) -> pa.Table:
    """Cast a result to the Arrow types that came, where both are of one family."""
    columns = []
    for name in table.column_names:
        column, kind = table[name], came.field(name).type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not pa.types.is_null(kind) and not is_foreign(column.type, is_text(values)):
            if pa.types.is_decimal(values):
                column = column.cast(pa.float64())  # Arrow casts no int64 to a short decimal
            column = column.cast(values, safe=False)
            if pa.types.is_dictionary(kind):
                column = column.dictionary_encode().cast(kind)
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def restore_series(pandas: Any, column: pa.ChunkedArray, dtype: Any) -> Any:
    """One column as a pandas series of the dtype that came, or of the nearest that holds nulls."""
    if isinstance(dtype, pandas.ArrowDtype):
        column = column.cast(dtype.pyarrow_dtype, safe=False)
        return pandas.Series(pandas.array(column.combine_chunks(), dtype=dtype))
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        return pandas.Series(column.to_pylist(), dtype=object)
    if is_foreign(column.type, isinstance(dtype, pandas.StringDtype)):
        return column.to_pandas()
    if column.null_count and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        dtype = "boolean" if dtype.kind == "b" else "Int64"
    holds_nulls = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    return column.to_pandas(types_mapper=holds_nulls.get).astype(dtype)
