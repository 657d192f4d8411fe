"""Opening: the registry of sources; a new kind of source is a line here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.data.sources.arrow_tables import ArrowDataset, ArrowTable
from private_gsd.data.sources.csv_files import CsvFiles
from private_gsd.data.sources.duckdb_relations import DuckdbRelation
from private_gsd.data.sources.files import FileTable, find_files
from private_gsd.data.sources.pandas_frames import PandasFrame
from private_gsd.data.sources.parquet_files import ParquetFiles
from private_gsd.data.sources.polars_frames import PolarsFrame
from private_gsd.data.sources.postgres import PostgresTable, is_address, refuse_addresses
from private_gsd.data.sources.spark import SparkFrame
from private_gsd.errors import SourceError

if TYPE_CHECKING:
    from private_gsd.data.sources.source_table import SourceTable
    from private_gsd.schema import Schema

# The first class that accepts an object reads it; the last accepts any Arrow stream.
SOURCES: tuple[type[SourceTable], ...] = (
    CsvFiles,
    ParquetFiles,
    PostgresTable,
    SparkFrame,
    PandasFrame,
    PolarsFrame,
    DuckdbRelation,
    ArrowDataset,
    ArrowTable,
)


def open_table(data: Any, schema: Schema | None) -> SourceTable:
    """Open an object that the user gave as a table.

    Args:
        data: A path, a folder, a glob, or an object of a kind that a source accepts.
        schema: The public schema, if it was given.
    """
    if is_address(data):
        raise SourceError(
            "the address of a PostgreSQL server needs a query: PostgresQuery(address, query), or "
            "--query on the command line"
        )
    found = data
    if isinstance(data, str | Path):
        refuse_addresses(str(data))
        sorts = [source for source in SOURCES if issubclass(source, FileTable)]
        found = find_files(str(data), schema, sorts)
    for source in SOURCES:
        if source.accepts(found):
            return source(found)
    expected = ", ".join(source.reads for source in SOURCES)
    raise SourceError(f"cannot read a table from {type(data).__name__}; expected {expected}")
