"""One contract for every kind of table: the same counts, and the same words about bad rows."""

from __future__ import annotations

import os
import pickle
import random
import signal
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Integer,
    LeftOutWarning,
    PostgresQuery,
    Schema,
    Synthesizer,
    datasets,
    exact_counts,
    open_source,
)
from private_gsd.counting import on_spark as on_spark
from private_gsd.data.encoding import Encoder
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

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Makes each kind of table of an Arrow one."""

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


KINDS = [name for name in vars(Made) if not name.startswith("_")]


def ingest(uri: str, name: str, table: pa.Table) -> None:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
        cursor.adbc_ingest(name, table, mode="create")
        connection.commit()


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    return Made(request, tmp_path)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, made: Made) -> Callable[[pa.Table], Any]:
    make: Callable[[pa.Table], Any] = getattr(made, request.param)
    return make


def test_the_same_counts(kind: Callable[[pa.Table], Any]) -> None:
    expected = exact_counts(WORKLOAD, TABLE)
    data = kind(TABLE)
    found = exact_counts(WORKLOAD, data)
    assert found.rows == expected.rows == 3000
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


def test_no_rows(made: Made) -> None:
    for name in ("memory", "csv", "parquet", "postgres", "spark"):
        with pytest.raises(SourceError, match="the table has no rows"):
            exact_counts(WORKLOAD, getattr(made, name)(TABLE.slice(0, 0)))


def test_a_release_of_every_kind(kind: Callable[[pa.Table], Any]) -> None:
    """The same seeded noise gives the same table, wherever the data was."""
    schema = SCHEMA.select(["sex", "age", "marital", "interviewed_at", "income"])
    table = TABLE.select(schema.names)
    settings: dict[str, Any] = {"rows": 50, "insecure_noise_seed": 1, "threads": 1}
    expected = Synthesizer(schema, 1.0, **settings).fit(table).release.synthetic
    synth = Synthesizer(schema, 1.0, **settings).fit(kind(table))
    assert synth.release.synthetic.equals(expected)
    back = synth.sample()
    assert list(back.columns if hasattr(back, "dtypes") else back.column_names) == list(
        schema.names
    )


# Spark


@pytest.mark.parametrize("came", [pa.int16(), pa.float64()])
def test_spark_gives_back_the_types_of_the_schema(spark: Any, came: pa.DataType) -> None:
    schema = SCHEMA.select(["sex", "age", "interviewed_at", "income", "citizen"])
    table = TABLE.select(schema.names).set_column(1, "age", TABLE["age"].cast(came))
    frame = spark.createDataFrame(table.select(list(reversed(schema.names))))
    given = Synthesizer(schema, 5.0, rows=40, insecure_noise_seed=1).fit(frame)
    back = given.sample()
    assert [(each.name, each.dataType.simpleString(), each.nullable) for each in back.schema] == [
        ("sex", "string", False),
        ("age", "bigint", False),
        ("interviewed_at", "timestamp_ntz", False),
        ("income", "double", schema["income"].nullable),
        ("citizen", "boolean", False),
    ]
    assert back.count() == 40
    # As the session's clock shows them, which collect() would not give.
    moments = [row["at"] for row in back.selectExpr("CAST(interviewed_at AS STRING) at").collect()]
    told = given.release.synthetic["interviewed_at"].to_pylist()
    assert moments == [str(moment) for moment in told]


def test_a_spark_task_that_dies_is_counted_once(spark: Any, tmp_path: Path) -> None:
    """A worker's Python is killed half way through a partition, the first time it comes there."""
    mark = tmp_path / "died"
    table = TABLE

    def dying(batches: Any) -> Any:
        for batch in batches:
            yield batch
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        frame = spark.createDataFrame(table).repartition(4)
        frame = frame.mapInArrow(dying, frame.schema)
        found = exact_counts(WORKLOAD, frame)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert mark.exists()
    assert found.rows == 3000
    np.testing.assert_array_equal(found.counts, exact_counts(WORKLOAD, table).counts)


def test_columns_of_spark_with_odd_names(spark: Any) -> None:
    names = ["a.b", "c`d", "with space", "ünï"]
    schema = Schema([Integer(name, lower=0, upper=9) for name in names])
    table = pa.table({name: [number, 9 - number] for number, name in enumerate(names)})
    workload = tree_marginals(schema, k=1)
    found = exact_counts(workload, spark.createDataFrame(table))
    np.testing.assert_array_equal(found.counts, exact_counts(workload, table).counts)


@pytest.mark.parametrize("zone", ["GMT+05:30", "UTC+1", "GMT-3", "Z", "+02:00", "Europe/Vienna"])
def test_time_zones_of_a_spark_session(spark: Any, zone: str) -> None:
    schema = SCHEMA.select(["interviewed_at"])
    workload = tree_marginals(schema, k=1, depth=8)
    table = TABLE.select(["interviewed_at"])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        texts = table.set_column(0, "interviewed_at", table["interviewed_at"].cast(pa.string()))
        frame = spark.createDataFrame(texts).selectExpr(
            "CAST(interviewed_at AS TIMESTAMP) AS interviewed_at"
        )
        found = exact_counts(workload, frame)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    np.testing.assert_array_equal(found.counts, exact_counts(workload, table).counts)


def test_a_spark_file_that_is_torn(spark: Any, tmp_path: Path) -> None:
    schema = SCHEMA.select(["age"])
    pyarrow.parquet.write_table(TABLE.select(["age"]), tmp_path / "a.parquet")
    content = (tmp_path / "a.parquet").read_bytes()
    frame = spark.read.parquet(str(tmp_path / "a.parquet"))
    (tmp_path / "a.parquet").write_bytes(content[:4] + b"x" * 2000 + content[2004:])
    with pytest.raises(SourceError, match="the Spark DataFrame cannot be read") as caught:
        exact_counts(tree_marginals(schema, k=1), frame)
    assert str(caught.value).count("\n") == 1  # the one before the word on confidence


def test_a_spark_frame_that_fails(spark: Any) -> None:
    frame = spark.createDataFrame(TABLE.select(["age"])).selectExpr(
        "CAST(raise_error('no such file') AS BIGINT) AS age"
    )
    with pytest.raises(SourceError, match="the Spark DataFrame cannot be read"):
        exact_counts(tree_marginals(SCHEMA.select(["age"]), k=1), frame)


def test_a_spark_frame_is_not_brought_here(spark: Any) -> None:
    source = open_source(spark.createDataFrame(TABLE), SCHEMA)
    with pytest.raises(SourceError, match="counted where it is"):
        next(source.batches())


def test_spark_adds_up_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions, skewed and empty, in blocks of seven counts, which meet in any order."""
    monkeypatch.setattr(on_spark, "BLOCK", 7)
    job = zlib.compress(pickle.dumps((Encoder(SCHEMA), WORKLOAD, tuple(TABLE.column_names))))
    batches = [TABLE.slice(0, 0), TABLE.slice(0, 1), TABLE.slice(1, 10), TABLE.slice(11)]
    rows = [
        row
        for part in batches
        for row in on_spark.count_partition(job, iter(part.to_batches(max_chunksize=500)))
    ]
    random.Random(1).shuffle(rows)
    head, counts = on_spark.Head(), np.zeros(WORKLOAD.size, dtype=np.int64)
    for part in (rows[::2], rows[1::2]):
        for row in on_spark.add_blocks(iter(part)):
            [number], [data] = row["block"].to_pylist(), row["data"].to_pylist()
            if number == on_spark.HEAD:
                head.merge(pickle.loads(data))
            else:
                counts[number * 7 : number * 7 + 7] += on_spark._unpacked(data)
    assert head.rows == 3000
    np.testing.assert_array_equal(counts, exact_counts(WORKLOAD, TABLE).counts)


@pytest.mark.parametrize("largest", [1, 255, 256, 2**16, 2**32, 2**62, -1, -129, -(2**40)])
def test_counts_travel_in_few_bytes(largest: int) -> None:
    counts = np.array([0, 3, largest, 0] * 1000)
    packed = on_spark._packed(counts)
    np.testing.assert_array_equal(on_spark._unpacked(packed), counts)
    assert len(packed) < 400


EDGES = [
    sign * 2**power + more
    for sign in (-1, 1)
    for power in (7, 8, 15, 16, 31, 32)
    for more in (-1, 0, 1)
]


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**63), 2**63 - 1),
            st.sampled_from([*EDGES, -(2**63), 2**63 - 1, 0, -1]),
            st.integers(-300, 300),
        ),
        min_size=1,
    )
)
def test_counts_arrive_as_they_were_packed(counts: list[int]) -> None:
    given = np.array(counts, dtype=np.int64)
    found = on_spark._unpacked(on_spark._packed(given))
    assert found.dtype == np.int64
    assert found.flags.writeable  # others are added to it
    np.testing.assert_array_equal(found, given)


def test_a_type_that_does_not_fit_in_spark(made: Made) -> None:
    table = TABLE.set_column(2, "age", TABLE["birth_date"])
    with pytest.raises(DataError) as expected:
        exact_counts(WORKLOAD, table)
    with pytest.raises(DataError) as found:
        exact_counts(WORKLOAD, made.spark(table))
    told = str(expected.value).partition(": ")[2]
    assert str(found.value) == f"the Spark DataFrame: {told}"
