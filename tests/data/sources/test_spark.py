"""Spark: counted where the rows are, whatever happens to a task, and given back as a frame."""

from __future__ import annotations

import os
import pickle
import random
import signal
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Integer, Schema, Synthesizer, exact_counts, open_source
from private_gsd.counting import on_spark
from private_gsd.data.encoding import Encoder
from private_gsd.errors import CONFIDENTIAL, DataError, SourceError
from private_gsd.workloads import functions, tree_marginals
from tests.data.sources.test_contract import SCHEMA, TABLE, WORKLOAD

pytestmark = [
    pytest.mark.slow,
    pytest.mark.worker("engines"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.mark.parametrize("came", [pa.int16(), pa.float64()])
def test_spark_gives_back_the_types_of_the_schema(spark: Any, came: pa.DataType) -> None:
    schema = SCHEMA.select(["sex", "age", "interviewed_at", "income", "citizen"])
    table = TABLE.select(schema.names).set_column(1, "age", TABLE["age"].cast(came))
    frame = spark.createDataFrame(table.select(list(reversed(schema.names))))
    given = Synthesizer(schema, 5.0, rows=40).fit(frame, insecure_noise_seed=1)
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
    expected = given.release_.synthetic["interviewed_at"].to_pylist()
    assert moments == [str(moment) for moment in expected]


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
    assert found.n_records == 3000
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


def test_what_spark_lacks_is_named(spark: Any) -> None:
    """Of other errors in tasks the message is not repeated, as it may quote a value."""

    def missing(batches: Any) -> Any:
        import nowhere  # type: ignore[import-not-found]

        yield from nowhere.read(batches)

    def failing(batches: Any) -> Any:
        for batch in batches:
            if len(batch):
                raise ValueError(f"{batch['age'][0]} is not an age")
            yield batch

    frame = spark.createDataFrame(TABLE.select(["age"])).coalesce(1)
    workload = tree_marginals(SCHEMA.select(["age"]), k=1)
    for step, reason in (
        (
            missing,
            "ModuleNotFoundError in a task: executors have no nowhere, and need private-gsd and "
            "its dependencies",
        ),
        (failing, "ValueError in a task"),
    ):
        with pytest.raises(SourceError) as caught:
            exact_counts(workload, frame.mapInArrow(step, frame.schema))
        first, last = str(caught.value).splitlines()
        assert first == f"the Spark DataFrame cannot be read: {reason}"
        assert last == CONFIDENTIAL


def test_functions_of_no_module_are_counted_on_spark(spark: Any) -> None:
    workload = functions(SCHEMA, {"old": lambda rows: rows["age"] > 60})
    found = exact_counts(workload, spark.createDataFrame(TABLE))
    np.testing.assert_array_equal(found.counts, exact_counts(workload, TABLE).counts)


def test_a_timeout_of_spark_that_makes_no_sense(spark: Any) -> None:
    frame = spark.createDataFrame(TABLE)
    spark.conf.set("spark.privateGsd.taskTimeout", "soon")
    try:
        with pytest.raises(SourceError, match=r"taskTimeout must be a number of seconds"):
            exact_counts(WORKLOAD, frame)
    finally:
        spark.conf.unset("spark.privateGsd.taskTimeout")


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
    summary, counts = on_spark.PartitionSummary(), np.zeros(WORKLOAD.size, dtype=np.int64)
    for part in (rows[::2], rows[1::2]):
        for row in on_spark.add_blocks(iter(part)):
            [number], [data] = row["block"].to_pylist(), row["data"].to_pylist()
            if number == on_spark.SUMMARY:
                summary.merge(pickle.loads(data))
            else:
                counts[number * 7 : number * 7 + 7] += on_spark._unpacked(data)
    assert summary.rows == 3000
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


def test_a_type_that_does_not_fit_in_spark(spark: Any) -> None:
    table = TABLE.set_column(2, "age", TABLE["birth_date"])
    with pytest.raises(DataError) as expected:
        exact_counts(WORKLOAD, table)
    with pytest.raises(DataError) as found:
        exact_counts(WORKLOAD, spark.createDataFrame(table))
    told = str(expected.value).partition(": ")[2]
    assert str(found.value) == f"the Spark DataFrame: {told}"
