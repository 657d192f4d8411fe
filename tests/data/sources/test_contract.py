"""One contract for every kind of table: the same counts, and the same words about bad rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from private_gsd import (
    LeftOutWarning,
    PostgresQuery,
    Synthesizer,
    datasets,
    exact_counts,
    open_source,
)
from private_gsd.data.sources.arrow_tables import ArrowDataset, ArrowTable
from private_gsd.data.sources.csv_files import CsvFiles
from private_gsd.data.sources.duckdb_relations import DuckdbRelation
from private_gsd.data.sources.opening import SOURCES, open_table
from private_gsd.data.sources.pandas_frames import PandasFrame
from private_gsd.data.sources.parquet_files import ParquetFiles
from private_gsd.data.sources.polars_frames import PolarsFrame
from private_gsd.data.sources.postgres import PostgresTable
from private_gsd.data.sources.source_table import SourceTable
from private_gsd.data.sources.spark import SparkFrame
from private_gsd.errors import DataError, SourceError
from private_gsd.workloads import (
    Sums,
    Workload,
    categorical_marginals,
    random_halfspaces,
    random_prefixes,
    tree_marginals,
)
from private_gsd.workloads.sums import Part

pytestmark = [
    pytest.mark.worker("engines"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

SCHEMA = datasets.census_schema()
TABLE = datasets.census(3000, seed=4)
WORKLOAD = (
    categorical_marginals(SCHEMA, k=2)
    + tree_marginals(SCHEMA, k=2, depth=4)
    + random_prefixes(SCHEMA, 50)
    + random_halfspaces(SCHEMA, 50)
)


class Made:
    """Makes what each source reads of an Arrow table."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder

    def memory(self, table: pa.Table) -> Any:
        return table

    def pandas(self, table: pa.Table) -> Any:
        return table.to_pandas(types_mapper=None, integer_object_nulls=True)

    def polars(self, table: pa.Table) -> Any:
        return pl.from_arrow(table)

    def csv(self, table: pa.Table) -> Any:
        pyarrow.csv.write_csv(table, self._folder / "table.csv")
        return self._folder / "table.csv"

    def parquet(self, table: pa.Table) -> Any:
        third = len(table) // 3
        for number in range(3):
            part = table.slice(number * third, third if number < 2 else None)
            pyarrow.parquet.write_table(part, self._folder / f"part-{number}.parquet")
        return str(self._folder / "part-*.parquet")

    def dataset(self, table: pa.Table) -> Any:
        return pyarrow.dataset.dataset(table)

    def duckdb(self, table: pa.Table) -> Any:
        return duckdb.connect().from_arrow(table)

    def postgres(self, table: pa.Table) -> Any:
        uri = self._request.getfixturevalue("postgres")
        ingest(uri, "census", table)
        return PostgresQuery(uri, "SELECT * FROM census -- all of them")

    def spark(self, table: pa.Table) -> Any:
        session = self._request.getfixturevalue("spark")
        # Three partitions: one with nearly all rows, one with none, one with a few.
        frame = session.createDataFrame(table.slice(5)).coalesce(1)
        none = session.createDataFrame([], frame.schema).coalesce(1)
        few = session.createDataFrame(table.slice(0, 5), frame.schema).coalesce(1)
        return frame.union(none).union(few)


# What makes a table for each source; a new source needs a line here, too.
MAKERS: dict[type[SourceTable], Callable[[Made, pa.Table], Any]] = {
    ArrowTable: Made.memory,
    ArrowDataset: Made.dataset,
    CsvFiles: Made.csv,
    DuckdbRelation: Made.duckdb,
    PandasFrame: Made.pandas,
    ParquetFiles: Made.parquet,
    PolarsFrame: Made.polars,
    PostgresTable: Made.postgres,
    SparkFrame: Made.spark,
}
# For tests of each; engines that must be started are slow.
EACH = [
    pytest.param(
        source,
        id=source.__name__,
        marks=pytest.mark.slow if source in (PostgresTable, SparkFrame) else (),
    )
    for source in SOURCES
]


def ingest(uri: str, name: str, table: pa.Table) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.adbc_ingest(name, table, mode="create")
        connection.commit()


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    return Made(request, tmp_path)


@pytest.fixture(params=EACH)
def kind(request: pytest.FixtureRequest, made: Made) -> Callable[[pa.Table], Any]:
    """What makes a table that a source of the registry reads."""
    source: type[SourceTable] = request.param
    assert source in MAKERS, f"a maker for {source.__name__} is missing in MAKERS"

    def make(table: pa.Table) -> Any:
        data = MAKERS[source](made, table)
        assert type(open_table(data, None)) is source
        return data

    return make


def test_every_source_keeps_the_contract() -> None:
    assert set(MAKERS) == set(SOURCES)
    assert len(SOURCES) == len(set(SOURCES))
    assert all(source.reads for source in SOURCES)


def test_the_same_counts(kind: Callable[[pa.Table], Any]) -> None:
    expected = exact_counts(WORKLOAD, TABLE)
    data = kind(TABLE)
    found = exact_counts(WORKLOAD, data)
    assert found.n_records == expected.n_records == 3000
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert open_source(data, SCHEMA).count() == 3000


def test_the_same_sums_below_zero(kind: Callable[[pa.Table], Any]) -> None:
    """Negative factors, one block with sums of both signs, and all widths of whole numbers."""
    parts = [
        [Part(-1, None)],  # -3,000
        [Part(-1, None, "age = 30")],
        [Part(-1, None, "sex = 'female'"), Part(1, None, "sex = 'male'")],
        [Part(-(2**20), "age")],  # about -10^12
        [Part(7, "age"), Part(-9, "income", "age < 40")],
    ]
    table = TABLE.select(["age", "sex", "income"])
    schema = SCHEMA.select(["age", "sex", "income"])
    expected = []
    steps = {}
    for name in ("age", "income"):
        low, high = schema[name].bounds
        numbers = table[name].to_numpy(zero_copy_only=False).astype(float)
        steps[name] = np.floor(np.nan_to_num((numbers - low) * (1000 / (high - low))) + 0.5)
    ages = table["age"].to_numpy(zero_copy_only=False)
    sexes = np.array(table["sex"].to_pylist())
    met = {
        "": np.ones(3000, bool),
        "age = 30": ages == 30,
        "age < 40": ages < 40,
        "sex = 'female'": sexes == "female",
        "sex = 'male'": sexes == "male",
    }
    for query in parts:
        total = 0
        for factor, column, where in query:
            each = 1 if column is None else steps[column]
            total += factor * int((met[where] * each).sum())
        expected.append(total)
    assert min(expected) < -(2**31)
    workload = Workload(schema, (Sums(schema, parts),))
    np.testing.assert_array_equal(exact_counts(workload, kind(table)).counts, expected)


def with_bad_rows() -> pa.Table:
    """Numbers, dates and categories outside the schema, and nulls where there are none."""
    table = TABLE
    for name, bad in (
        ("age", pa.array([200, 300, -1, 101, 102, 103, 104], pa.int64())),
        ("marital", pa.array(["complicated", "it's", "", "x", "y", "z", "w"])),
        ("birth_date", pa.array([40_000, None, None, None, None, None, None], pa.date32())),
        ("sex", pa.array([None, None, "m", "f", "male", "male", "male"])),
    ):
        kept = table[name].slice(len(bad)).cast(bad.type)
        # Spread over the table, so that parts of it have different ones.
        column = pa.chunked_array([bad.slice(0, 3), kept, bad.slice(3)])
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def words(error: DataError) -> str:
    return str(error).partition("does not fit the schema")[2]


def test_the_same_words_about_bad_rows(kind: Callable[[pa.Table], Any]) -> None:
    bad = with_bad_rows()
    with pytest.raises(DataError) as expected:
        exact_counts(WORKLOAD, bad)
    assert "column 'age': 7 values are not integer 0 to 99: e.g. -1, 101, 102" in str(
        expected.value
    )
    with pytest.raises(DataError) as found:
        exact_counts(WORKLOAD, kind(bad))
    assert words(found.value) == words(expected.value)


def test_the_same_counts_when_coerced(kind: Callable[[pa.Table], Any]) -> None:
    schema = SCHEMA.select(["age", "birth_date", "education", "income"])
    workload = tree_marginals(schema, k=1) + categorical_marginals(schema, k=1)
    ages = pa.chunked_array([pa.array([200, -5, 50]), TABLE["age"].slice(3)])
    table = TABLE.select(schema.names).set_column(0, "age", ages)
    expected = exact_counts(workload, table, on_invalid="coerce")
    found = exact_counts(workload, kind(table), on_invalid="coerce")
    np.testing.assert_array_equal(found.counts, expected.counts)


def test_missing_and_left_out_columns(kind: Callable[[pa.Table], Any]) -> None:
    with pytest.raises(SourceError, match="missing column 'age'"):
        open_source(kind(TABLE.drop_columns(["age"])), SCHEMA)
    with pytest.warns(LeftOutWarning, match="do not name them|does not name them: extra"):
        open_source(kind(TABLE.append_column("extra", TABLE["age"])), SCHEMA)


@pytest.mark.parametrize(
    "name",
    [
        "memory",
        "csv",
        "parquet",
        pytest.param("postgres", marks=pytest.mark.slow),
        pytest.param("spark", marks=pytest.mark.slow),
    ],
)
def test_no_rows(name: str, made: Made) -> None:
    with pytest.raises(SourceError, match="the table has no rows"):
        exact_counts(WORKLOAD, getattr(made, name)(TABLE.slice(0, 0)))


def test_a_release_of_every_kind(kind: Callable[[pa.Table], Any]) -> None:
    """The same seeded noise gives the same table, wherever the data was."""
    schema = SCHEMA.select(["sex", "age", "marital", "interviewed_at", "income"])
    table = TABLE.select(schema.names)
    synth = Synthesizer(schema, 1.0, rows=50, threads=1)
    expected = synth.fit(table, insecure_noise_seed=1).release_.synthetic
    synth.fit(kind(table), insecure_noise_seed=1)
    assert synth.release_.synthetic.equals(expected)
    back = synth.sample()
    assert list(back.columns if hasattr(back, "dtypes") else back.column_names) == list(
        schema.names
    )
