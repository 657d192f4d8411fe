"""Every kind of table that can be fitted, made of the same rows as a person would make it.

Many libraries take the types of columns from all of their values, and so from the row that differs.
A kind is one function in ``KINDS``.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from private_gsd import PostgresQuery
from tests.data.sources.test_contract import ingest
from tests.neighbours.tables import COLUMNS, Rows


@dataclass(frozen=True)
class Place:
    """Where a table may be put.

    Attributes:
        folder: A folder, for files.
        engine: Gives what an engine is reached by, "spark" or "postgres".
    """

    folder: Path
    engine: Callable[[str], Any]


TYPES = {
    "age": pa.int64(),
    "income": pa.float64(),
    "member": pa.bool_(),
    "born": pa.date32(),
    "seen": pa.timestamp("us"),
}


def csv_text(rows: Rows) -> str:
    """The rows as a CSV file has them."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def typed(rows: Rows) -> pa.Table:
    """An Arrow table; a column with a value that does not fit its type is one of texts."""
    columns: dict[str, Any] = {}
    for name in COLUMNS:
        texts = pa.array([row[name] or None for row in rows], pa.string())
        try:
            columns[name] = pc.cast(texts, TYPES.get(name, pa.string()))
        except pa.ArrowInvalid:
            columns[name] = texts
    return pa.table(columns)


def _inferred(rows: Rows) -> io.BytesIO:
    return io.BytesIO(csv_text(rows).encode())


def _arrow_dictionaries(rows: Rows, place: Place) -> Any:
    table = typed(rows)
    for name in ("city", "code"):
        number = table.column_names.index(name)
        table = table.set_column(number, name, table[name].dictionary_encode())
    return table


def _arrow_stream(rows: Rows, place: Place) -> Any:
    table = typed(rows)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))


def _pandas_categories(rows: Rows, place: Place) -> Any:
    frame = pd.read_csv(_inferred(rows))
    return frame.astype({"city": "category", "code": "category", "member": "category"})


def _pandas_records(rows: Rows, place: Place) -> Any:
    """As a list of dicts gives it: columns in the order in which rows have them."""
    records = [{name: v for name, v in row.items() if v is not None} for row in _listed(rows)]
    return pd.DataFrame(records)


def _listed(rows: Rows) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = typed(rows).to_pylist()
    return found


def _polars_records(rows: Rows, place: Place) -> Any:
    records = [{name: v for name, v in row.items() if v is not None} for row in _listed(rows)]
    return pl.from_dicts(records, infer_schema_length=None)


def _polars_categories(rows: Rows, place: Place) -> Any:
    frame: Any = pl.from_arrow(typed(rows))
    learned = pl.Enum(frame["code"].drop_nulls().unique().sort())
    return frame.with_columns(pl.col("city").cast(pl.Categorical), pl.col("code").cast(learned))


def _duckdb_inferred(rows: Rows, place: Place) -> Any:
    return duckdb.connect().read_csv(str(csv_file(rows, place)))


def _spark(rows: Rows, place: Place) -> Any:
    return place.engine("spark").createDataFrame(typed(rows)).coalesce(1)


def _spark_inferred(rows: Rows, place: Place) -> Any:
    path = str(csv_file(rows, place))
    return place.engine("spark").read.csv(path, header=True, inferSchema=True)


def _postgres(rows: Rows, place: Place) -> Any:
    address = place.engine("postgres")
    ingest(address, "neighbours", typed(rows))
    return PostgresQuery(address, "SELECT * FROM neighbours")


def csv_file(rows: Rows, place: Place) -> Path:
    """A CSV file."""
    path = place.folder / "table.csv"
    path.write_text(csv_text(rows))
    return path


def gzip_file(rows: Rows, place: Place) -> Path:
    """A compressed CSV file."""
    path = place.folder / "table.csv.gz"
    path.write_bytes(gzip.compress(csv_text(rows).encode()))
    return path


def parquet_file(rows: Rows, place: Place) -> Path:
    """A Parquet file as pandas writes it, with a note on the types that the frame had."""
    path = place.folder / "table.parquet"
    typed(rows).to_pandas().to_parquet(path)
    return path


def _parquet_files(rows: Rows, place: Place) -> Any:
    """Several files, of which one may have other types."""
    for number in range(3):
        part = typed(rows[20 * number : 20 * number + 20 if number < 2 else None])
        pyarrow.parquet.write_table(part, place.folder / f"part-{number}.parquet")
    return str(place.folder / "part-*.parquet")


Kind = Callable[[Rows, Place], Any]
KINDS: dict[str, Kind] = {
    "arrow": lambda rows, place: typed(rows),
    "arrow, inferred": lambda rows, place: pa.csv.read_csv(_inferred(rows)),
    "arrow, dictionaries": _arrow_dictionaries,
    "arrow, stream": _arrow_stream,
    "arrow, dataset": lambda rows, place: pa.dataset.dataset(typed(rows)),
    "pandas": lambda rows, place: typed(rows).to_pandas(),
    "pandas, inferred": lambda rows, place: pd.read_csv(_inferred(rows)),
    "pandas, texts": lambda rows, place: pd.read_csv(_inferred(rows), dtype=str),
    "pandas, objects": lambda rows, place: pd.DataFrame(_listed(rows), dtype=object),
    "pandas, nullable": lambda rows, place: pd.read_csv(_inferred(rows)).convert_dtypes(),
    "pandas, ArrowDtype": lambda rows, place: typed(rows).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": _pandas_categories,
    "pandas, records": _pandas_records,
    "polars": lambda rows, place: pl.from_arrow(typed(rows)),
    "polars, inferred": lambda rows, place: pl.read_csv(
        _inferred(rows), try_parse_dates=True, infer_schema_length=None
    ),
    "polars, lazy": lambda rows, place: pl.read_csv(_inferred(rows), infer_schema=False).lazy(),
    "polars, categories": _polars_categories,
    "polars, records": _polars_records,
    "duckdb": lambda rows, place: duckdb.connect().from_arrow(typed(rows)),
    "duckdb, inferred": _duckdb_inferred,
    "csv": csv_file,
    "gzip": gzip_file,
    "parquet": parquet_file,
    "parquet files": _parquet_files,
    "postgres": _postgres,
    "spark": _spark,
    "spark, inferred": _spark_inferred,
}
TYPES_FROM_VALUES = {
    "arrow, inferred",
    "pandas",
    "pandas, inferred",
    "pandas, nullable",
    "pandas, categories",
    "polars, inferred",
    "polars, categories",
    "duckdb, inferred",
    "csv",
    "parquet",
    "parquet files",
    "postgres",
    "spark",
}
