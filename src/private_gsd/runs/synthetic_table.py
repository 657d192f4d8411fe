"""The file of a synthetic table: Parquet whose size in memory is known before it is read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from private_gsd.errors import ReleaseError

if TYPE_CHECKING:
    from private_gsd.schema import Schema

# The most values of a synthetic table (2 GiB of numbers), and the most bytes of a column of texts.
MAX_VALUES = 2**28
MAX_TEXT = 2**32


def check_size(schema: Schema, rows: int) -> None:
    """Refuse to begin what could not be read again."""
    if rows * len(schema) > MAX_VALUES:
        raise ReleaseError(
            f"{rows:,} synthetic rows of {len(schema)} columns are more than the {MAX_VALUES:,} "
            "values that a release may have; ask for fewer rows"
        )


def table_bytes(table: pa.RecordBatch) -> bytes:
    """A synthetic table as a file, without compression: a reader has nothing to unpack."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_batches([table]), buffer, compression="none")
    return buffer.getvalue()


def read_table(content: bytes, schema: Schema, rows: object) -> pa.Table:
    """A synthetic table from the content of its file.

    Args:
        content: The file, as ``table_bytes`` made it; anything else raises an error of Arrow's or a
            ``ValueError``.
        schema: The public schema.
        rows: How many rows it must have.
    """
    with pyarrow.parquet.ParquetFile(pa.BufferReader(content)) as file:
        about = file.metadata
        if about.num_rows != rows or about.num_rows * len(schema) > MAX_VALUES:
            raise ValueError(f"has {about.num_rows:,} rows, not the {rows!r:.40} of release.json")
        if not file.schema_arrow.equals(schema.arrow_schema):
            raise ValueError("has other columns than the schema")
        for group in range(about.num_row_groups):
            for column in range(about.num_columns):
                if about.row_group(group).column(column).compression != "UNCOMPRESSED":
                    raise ValueError("is compressed, and the table of a release is not")
    texts = [column.name for column in schema if column.arrow_type == pa.string()]
    # A long text stands there once, however many rows have it; it is read so, too.
    with pyarrow.parquet.ParquetFile(pa.BufferReader(content), read_dictionary=texts) as file:
        table = file.read()
    for name in texts:
        column = table[name].combine_chunks()
        sizes = pyarrow.compute.binary_length(column.dictionary).take(column.indices)
        if (pyarrow.compute.sum(sizes).as_py() or 0) > MAX_TEXT:
            raise ValueError(f"column {name!r} takes more than {MAX_TEXT:,} bytes")
    return table.cast(schema.arrow_schema)
