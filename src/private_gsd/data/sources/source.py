"""The source: a table of any kind as a stream of Arrow record batches that can be read again."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.data.encoding import Encoder, OnInvalid, Problems
from private_gsd.data.sources.opening import open_table
from private_gsd.errors import DataError, SourceError, UnreadableError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.data.sources.source_table import SourceTable
    from private_gsd.schema import Schema

DEFAULT_BATCH_ROWS = 65_536


class LeftOutWarning(UserWarning):
    """Some columns of a table are not in its schema and are left out."""


class Source:
    """A table, ready to be read in batches as often as needed.

    A source is made by ``open_source``, and has the Arrow stream protocol itself.

    Attributes:
        table: The table that is read.
        given: The path, query or object that the user gave.
        name: The name of the table in messages: a path, or a kind of frame.
        columns: The columns that are read, in the order of the table.
        left_out: The columns of the table that the schema does not name.
        rows: The number of rows, where that is known without reading the table.
        schema: The public schema, if it was given.
    """

    def __init__(self, table: SourceTable, schema: Schema | None, given: Any) -> None:
        self.table = table
        self.given = given
        self.name = table.name
        self.rows = table.rows
        self.schema = schema
        self._gave_rows = False
        present = table.arrow_schema.names
        wanted = present if schema is None else schema.read_names
        missing = [name for name in wanted if name not in present]
        if missing:
            hints = (f"{name!r}{did_you_mean(name, present)}" for name in missing)
            raise SourceError(
                f"{self.name}: missing {'column' if len(missing) == 1 else 'columns'} "
                f"{', '.join(hints)}; the table has {_listed(present)}"
            )
        twice = sorted({name for name in wanted if present.count(name) > 1})
        if twice:
            raise SourceError(f"{self.name}: two columns are named {_listed(twice)}; rename one")
        self.columns = tuple(name for name in present if name in wanted)
        self.left_out = tuple(name for name in present if name not in wanted)

    def __repr__(self) -> str:
        return f"<Source {self.name}: {len(self.columns)} columns>"

    def batches(self, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Read the table from its start, in batches of at most ``batch_rows`` rows."""
        empty = True
        for batch in self.table.batches(self.columns, batch_rows):
            if batch.num_rows:
                empty = False
                yield batch
        if empty and self._gave_rows:
            raise SourceError(
                f"{self.name} can be read only once and was read before; pass a table or a file"
            )
        if empty:
            raise UnreadableError(f"{self.name}: the table has no rows")
        self._gave_rows = True

    def count(self) -> int | None:
        """The number of rows, counted if necessary; None if the table can be read only once."""
        return self.rows if self.rows is not None else self.table.count()

    @property
    def once(self) -> bool:
        """Whether the table can be read only once."""
        return self.table.once

    def encoded(
        self, *, on_invalid: OnInvalid = "error", batch_rows: int = DEFAULT_BATCH_ROWS
    ) -> Iterator[NDArray[np.float64]]:
        """Read the table as row matrices (see ``Encoder``).

        After the first value outside the schema no more matrices are returned, but the rest of the
        table is read before the error is raised, so that the error reports all such values. The
        matrices before the error must not be used.
        """
        if self.schema is None:
            raise SourceError(f"{self.name}: open it with a schema to encode it")
        encoder = Encoder(self.schema, on_invalid=on_invalid)
        problems = Problems()
        for batch in self.batches(batch_rows):
            matrix = self.encode(batch, encoder, problems)
            if not problems:
                yield matrix
        if problems:
            raise problems.error(self.name)

    def encode(
        self, batch: pa.RecordBatch, encoder: Encoder, problems: Problems
    ) -> NDArray[np.float64]:
        """Encode a batch of this source; errors name the table."""
        try:
            return encoder.encode_into(batch, problems)
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from None

    def restore(self, table: pa.Table) -> Any:
        """Convert a result to the kind of frame of this source; its types come from the schema."""
        if self.schema is None:
            raise SourceError(f"{self.name}: open it with a schema, which says the types")
        return self.table.restore(table, self.schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        batches = self.batches()
        first = next(batches)

        def stream() -> Iterator[pa.RecordBatch]:
            yield first
            for batch in batches:
                yield batch if batch.schema == first.schema else batch.cast(first.schema)

        reader = pa.RecordBatchReader.from_batches(first.schema, stream())
        return reader.__arrow_c_stream__(requested_schema)


def open_source(data: Any, schema: Schema | None = None) -> Source:
    """Open a table of any kind as a stream of Arrow record batches.

    Args:
        data: A pandas or Polars frame (lazy too), a PyArrow table or dataset, a DuckDB relation, a
            Spark frame, a ``PostgresQuery``, any object with ``__arrow_c_stream__``; or the path of
            a CSV or Parquet file, of a folder of them, or a glob.
        schema: The public schema. Columns that it does not name are left out, with a warning.
            Without a schema all columns are read, and CSV fields are text.
    """
    if isinstance(data, Source):
        data = data.given  # opened again, since reading a file depends on the schema
    source = Source(open_table(data, schema), schema, data)
    if source.left_out:
        warnings.warn(
            f"{source.name}: left out, since the schema does not name them: "
            f"{_listed(source.left_out)}",
            LeftOutWarning,
            stacklevel=2,
        )
    return source


def _listed(names: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
