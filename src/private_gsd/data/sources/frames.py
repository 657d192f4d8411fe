"""Tables in memory, and those of other engines: each as a stream of record batches.

Each class wraps one kind of object behind the same few names (a ``Table``), and knows how to give a
result back as the same kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from private_gsd.data.sources.object_values import values_as_text
from private_gsd.data.sources.restoring import to_arrow, to_pandas, to_polars
from private_gsd.errors import SourceError, UnreadableError, require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.dataset  # at run time it would bring pandas along

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

    def count(self) -> int | None:
        """The number of rows, counted if need be; None where the table can be read only once."""
        return self.rows

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """A result in the schema's types as the kind of frame that came; else a PyArrow table."""
        return to_arrow(table, schema)


class ArrowTable(Table):
    """A PyArrow table or record batch, or anything that speaks the Arrow stream protocol."""

    def __init__(self, data: Any) -> None:
        self.name = f"the {type(data).__name__}"
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        self._data = data
        self.rows = data.num_rows if isinstance(data, pa.Table) else None
        if isinstance(data, pa.Table | pa.RecordBatchReader):
            self._schema = data.schema
        else:
            try:
                self._schema = pa.RecordBatchReader.from_stream(data).schema
            except (pa.ArrowException, TypeError, ValueError):
                raise SourceError(f"{self.name} is not a table of named columns") from None

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        if isinstance(self._data, pa.Table):
            yield from self._data.select(columns).to_batches(max_chunksize=batch_rows)
            return
        try:
            for batch in pa.RecordBatchReader.from_stream(self._data):
                yield from slices(batch.select(columns), batch_rows)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableError(f"{self.name} cannot be read: {first_line(error)}") from None


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
        try:
            yield from self._data.to_batches(columns=list(columns), batch_size=batch_rows)
        except (pa.ArrowException, OSError) as error:
            raise UnreadableError(f"{self.name} cannot be read: {first_line(error)}") from None

    def count(self) -> int:
        """The number of rows."""
        try:
            return int(self._data.count_rows())
        except (pa.ArrowException, OSError) as error:
            raise UnreadableError(f"{self.name} cannot be read: {first_line(error)}") from None


class PandasFrame(Table):
    """A pandas data frame; its index is no column and is left out."""

    name = "the pandas DataFrame"

    def __init__(self, data: Any) -> None:
        self._data = data.set_axis([str(name) for name in data.columns], axis=1)
        self.rows = len(data)

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names of all columns; types are known only once the values are read."""
        return pa.schema([(name, pa.null()) for name in self._data.columns])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        arrays = []
        for name in columns:
            series = self._data[name]
            try:
                # What Arrow would make of a column of objects depends on all of them.
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
        """A pandas data frame."""
        return to_pandas(table, schema)


class PolarsFrame(Table):
    """A Polars data frame or lazy frame; a lazy one is collected in batches."""

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
        """Names of all columns; types are known only once the values are read."""
        return pa.schema([(name, pa.null()) for name in self._names])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        selected = self._data.select(columns)
        try:
            if self._lazy:
                frames = selected.collect_batches(chunk_size=batch_rows, maintain_order=True)
            else:
                frames = selected.iter_slices(batch_rows)
            for frame in frames:
                for batch in frame.to_arrow().to_batches():
                    yield from slices(batch, batch_rows)
        except (self._failure, pa.ArrowException, OSError) as error:
            raise UnreadableError(f"{self.name} cannot be read: {first_line(error)}") from None

    def count(self) -> int:
        """The number of rows; a lazy frame is collected for it."""
        try:
            return int(self._data.lazy().select(self._length).collect().item())
        except (self._failure, OSError) as error:
            raise UnreadableError(f"{self.name} cannot be read: {first_line(error)}") from None

    def restore(self, table: pa.Table, schema: Schema) -> Any:
        """A Polars frame, lazy if a lazy one came."""
        frame = to_polars(table, schema)
        return frame.lazy() if self._lazy else frame


class DuckdbRelation(Table):
    """A DuckDB relation; while it is read, its connection can do nothing else."""

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
        """A DuckDB relation over the result."""
        return duckdb.from_arrow(to_arrow(table, schema))


def wrap(data: Any) -> Table | None:
    """The wrapper for an object in memory, or None for an object of another sort."""
    module = type(data).__module__.partition(".")[0]
    if module == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return PandasFrame(data)
    if module == "polars" and hasattr(data, "collect_schema"):
        return PolarsFrame(data)
    if isinstance(data, duckdb.DuckDBPyRelation):
        return DuckdbRelation(data)
    if module == "pyarrow" and hasattr(data, "scanner"):
        return ArrowDataset(data)
    if isinstance(data, pa.RecordBatch) or hasattr(data, "__arrow_c_stream__"):
        return ArrowTable(data)
    return None


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
