"""Counts of units: those of a slow twin, whatever the table, and as public facts have them."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest

from private_gsd import (
    DataError,
    PostgresQuery,
    Schema,
    SourceError,
    Unit,
    exact_counts,
    open_source,
    workloads,
)
from private_gsd.counting.exact import TableCounts, count
from private_gsd.counting.of_units import bounded_rows, read_ids
from private_gsd.data.units import bounded_rows as storing
from private_gsd.data.units.choosing import UnitKey
from private_gsd.errors import UnreadableError, WorkloadError
from tests.counting.visits import COLUMNS, schema, visits
from tests.data.sources.test_contract import ingest

pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning"
)
KEY = UnitKey("31" * 32)
TABLE = visits()
KINDS: list[Any] = ["units", "rows"]


def workload_of(known: Schema) -> workloads.Workload:
    return workloads.predicates(
        known, ["ward = 'a'", "ward = 'b' AND age < 5", "age IS NULL", "age >= 3"]
    )


def meets(row: dict[str, Any]) -> list[bool]:
    age = row["age"]
    return [
        row["ward"] == "a",
        row["ward"] == "b" and age is not None and age < 5,
        age is None,
        age is not None and age >= 3,
    ]


@pytest.mark.parametrize("weighting", KINDS)
@pytest.mark.parametrize("at_most", [7, 12, 20])
def test_units_of_few_rows_are_counted_whole(at_most: int, weighting: Any) -> None:
    """Nothing is chosen: by definition each row counts W/k, or one."""
    known = schema(at_most, weighting)
    sizes = Counter(TABLE["patient"].to_pylist())
    expected = np.zeros(4)
    for row in TABLE.to_pylist():
        expected += np.array(meets(row)) / (1 if weighting == "rows" else sizes[row["patient"]])
    exact = exact_counts(workload_of(known), TABLE)
    assert exact.n_records == (len(TABLE) if weighting == "rows" else len(sizes))
    # More than 16 rows share the weight of a unit as evenly as whole numbers can.
    tolerance = 1e-9 if at_most <= 16 else len(TABLE) / exact.weight
    np.testing.assert_allclose(exact.counts / exact.weight, expected, atol=tolerance)


@pytest.mark.parametrize("weighting", KINDS)
def test_each_unit_counts_at_most_so_much(weighting: Any) -> None:
    """Unit by unit: a table of one unit has the counts that it adds to those of any table."""
    known = schema(3, weighting)
    asked = workload_of(known)
    everything = exact_counts(asked, TABLE, unit_key=KEY)
    ids = np.array(TABLE["patient"])
    parts = [
        exact_counts(asked, TABLE.filter(pa.array(ids == each)), unit_key=KEY)
        for each in sorted(set(ids))
    ]
    np.testing.assert_array_equal(sum(part.counts for part in parts), everything.counts)
    assert sum(part.n_records for part in parts) == everything.n_records
    most = max(int(part.counts.max()) for part in parts)
    assert most == everything.weight * (3 if weighting == "rows" else 1)


def tables(table: pa.Table, folder: Path) -> dict[str, Any]:
    """The same rows as tables of many kinds, and in other orders."""
    order = list(range(len(table)))
    random.Random(0).shuffle(order)
    mixed = table.take(order)
    pa.csv.write_csv(table, folder / "visits.csv")
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, len(table), 50)):
        part = mixed.slice(start, 50)
        pa.parquet.write_table(part, folder / "parts" / f"{number}.parquet", row_group_size=7)
    text = mixed.set_column(1, "patient", mixed["patient"].cast(pa.string()))
    return {
        "arrow": mixed,
        "text": text,
        "csv": folder / "visits.csv",
        "parquet": folder / "parts",
        "pandas": table.to_pandas(),
        "duckdb": duckdb.from_arrow(mixed),
        "stream": pa.RecordBatchReader.from_batches(table.schema, mixed.to_batches(20)),
        "dataset": pa.dataset.dataset(mixed),
    }


@pytest.mark.parametrize("weighting", KINDS)
def test_every_kind_of_table_has_the_same_counts(
    tmp_path: Path, weighting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = workload_of(schema(3, weighting))
    expected = exact_counts(asked, TABLE, unit_key=KEY)
    other = exact_counts(asked, TABLE, unit_key=UnitKey("32" * 32))
    assert (other.counts != expected.counts).any()
    for name, table in tables(TABLE, tmp_path).items():
        found = exact_counts(asked, table, unit_key=KEY, threads=2)
        assert found.n_records == expected.n_records, name
        np.testing.assert_array_equal(found.counts, expected.counts, err_msg=name)
    monkeypatch.setattr(storing, "WAITING_BYTES", 1000)
    monkeypatch.setattr(storing, "TAKEN_BYTES", 1000)
    spilled = exact_counts(asked, TABLE, unit_key=KEY)
    np.testing.assert_array_equal(spilled.counts, expected.counts)


def test_one_table_is_counted_with_one_choice() -> None:
    """As a run does: several workloads, one after the other, of the same rows."""
    known = schema(2)
    counts = TableCounts(open_source(TABLE, known), again=True)
    assert counts.records() == len(set(TABLE["patient"].to_pylist()))
    first, again = counts(workload_of(known)), counts(workload_of(known))
    np.testing.assert_array_equal(first.counts, again.counts)
    fresh = TableCounts(open_source(TABLE, known), again=True)(workload_of(known))
    assert (fresh.counts != first.counts).any()


def test_all_families_count_the_weights_of_rows() -> None:
    """Row by row: the counts of single rows, times their weights, add up."""
    known = schema(4)
    asked = workloads.categorical_marginals(known, 1) + workloads.tree_marginals(known, 1)
    asked = (
        asked + workloads.sums(known, ["age"]) + workloads.random_prefixes(known, 5, k=2, seed=1)
    )
    exact = exact_counts(asked, TABLE, unit_key=KEY)
    bounded = bounded_rows(open_source(TABLE, known), KEY)
    total = np.zeros(asked.size, dtype=np.int64)
    for weight in bounded.weights():
        for piece in bounded.pieces(weight, 5):
            for row in piece:
                total += weight * count(asked, row[None], threads=1)
    np.testing.assert_array_equal(exact.counts, total)


def test_ids_that_are_missing() -> None:
    ids = TABLE["patient"].to_pylist()
    ids[3] = ids[9] = None
    table = TABLE.set_column(1, "patient", pa.array(ids))
    with pytest.raises(DataError, match="'patient', which names the unit, is null in 2 rows; rem"):
        exact_counts(workload_of(schema()), table)
    with pytest.raises(DataError, match="is null in 2 rows"):
        read_ids(open_source(table, schema()))
    known = schema(null_ids="own")
    found = exact_counts(workload_of(known), table)
    assert found.n_records == len(set(ids) - {None}) + 2
    assert read_ids(open_source(table, known)).units == found.n_records


def test_a_table_without_the_column_is_refused() -> None:
    with pytest.raises(SourceError, match="missing column 'patient'"):
        exact_counts(workload_of(schema()), TABLE.drop_columns(["patient"]))


def test_bad_values_are_found_in_rows_that_are_not_taken() -> None:
    """Whether a table is refused does not depend on the choice."""
    ages = [*[5] * 30, 99]
    table = pa.table({"patient": [1] * 31, "ward": ["a"] * 31, "age": ages})
    for _ in range(3):
        with pytest.raises(DataError, match="99") as refused:
            exact_counts(workload_of(schema(1)), table)
        assert "patient" not in str(refused.value)
    assert exact_counts(workload_of(schema(1)), table.slice(0, 30)).n_records == 1


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(UnreadableError, match="has no rows"):
        exact_counts(workload_of(schema()), TABLE.slice(0, 0))


def test_sums_that_could_overflow_are_refused() -> None:
    known = Schema(COLUMNS, unit=Unit("patient", 16))
    assert exact_counts(workloads.sums(known, ["age"]), TABLE).n_records == 60
    large = workloads.Sums(known, [[(2**20, "age", "")]])  # type: ignore[list-item]
    with pytest.raises(WorkloadError, match="would not fit into 64 bits; sum with a smaller"):
        workloads.Workload(known, (large,))
    rows = Schema(COLUMNS, unit=Unit("patient", 16, "rows"))
    workloads.Workload(rows, (large,))


def test_figures_are_exact_in_whole_numbers() -> None:
    """A unit of 3 rows of which one meets a query counts exactly a third."""
    table = pa.table({"patient": ["x"] * 3, "ward": ["a", "b", "c"], "age": [1, 1, 1]})
    exact = exact_counts(workload_of(schema(8)), table)
    assert exact.weight == math.lcm(*range(1, 9)) == 840
    assert exact.counts.tolist() == [280, 280, 0, 0]


# Engines


@pytest.mark.slow
@pytest.mark.worker("engines")
@pytest.mark.parametrize("weighting", KINDS)
def test_postgres_has_the_same_counts(postgres: str, weighting: Any) -> None:
    ingest(postgres, "visits_of_units", TABLE)
    asked = workload_of(schema(3, weighting))
    expected = exact_counts(asked, TABLE, unit_key=KEY)
    for query in (
        "SELECT * FROM visits_of_units ORDER BY age DESC, ward",
        "SELECT ward, age, patient::text FROM visits_of_units",
        "SELECT ward, age, patient::numeric FROM visits_of_units",
    ):
        found = exact_counts(asked, PostgresQuery(postgres, query), unit_key=KEY)
        assert found.n_records == expected.n_records
        np.testing.assert_array_equal(found.counts, expected.counts)


@pytest.mark.slow
@pytest.mark.worker("engines")
@pytest.mark.parametrize("weighting", KINDS)
def test_spark_has_the_same_counts(spark: Any, weighting: Any) -> None:
    known = schema(3, weighting, "own")
    asked = workload_of(known)
    ids = TABLE["patient"].to_pylist()
    table = TABLE.set_column(1, "patient", pa.array([None, *ids[1:]]))
    expected = exact_counts(asked, table, unit_key=KEY)
    frame = spark.createDataFrame(table)
    for given in (frame.repartition(5), frame.coalesce(1)):
        found = exact_counts(asked, given, unit_key=KEY)
        assert found.n_records == expected.n_records
        np.testing.assert_array_equal(found.counts, expected.counts)
    numbers = read_ids(open_source(frame, known))
    assert numbers == read_ids(open_source(table, known))
    counts = TableCounts(open_source(frame, known), again=True)
    assert counts.records() == numbers.units
    first, again = counts(asked), counts(workload_of(known))
    np.testing.assert_array_equal(first.counts, again.counts)


@pytest.mark.slow
@pytest.mark.worker("engines")
def test_spark_refuses_what_others_refuse(spark: Any) -> None:
    ids = TABLE["patient"].to_pylist()
    table = TABLE.set_column(1, "patient", pa.array([None, *ids[1:]]))
    with pytest.raises(DataError, match="is null in 1 row; remove them"):
        exact_counts(workload_of(schema()), spark.createDataFrame(table))
    ages = TABLE.set_column(0, "age", pa.array([99] * len(TABLE)))
    with pytest.raises(DataError, match="99"):
        exact_counts(workload_of(schema()), spark.createDataFrame(ages))
    halves = TABLE.set_column(1, "patient", pa.array([0.5] * len(TABLE)))
    with pytest.raises(DataError, match="numbers that are not whole"):
        exact_counts(workload_of(schema()), spark.createDataFrame(halves))
    empty = spark.createDataFrame(TABLE).limit(0)
    with pytest.raises(SourceError, match="has no rows"):
        exact_counts(workload_of(schema()), empty)
