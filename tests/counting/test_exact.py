"""Exact counts: one pass, any source, any number of threads; and they are never written."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from private_gsd import Encoder, ExactCounts, datasets, exact_counts, workloads
from private_gsd.counting.exact import TableCounts, count
from private_gsd.counting.on_threads import BATCH_ROWS
from private_gsd.data.sources import Source, open_source
from private_gsd.errors import DataError, SourceError
from private_gsd.workloads.workload import RunningCounts

SCHEMA = datasets.census_schema()
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 2)
    + workloads.tree_marginals(SCHEMA, 2)
    + workloads.random_prefixes(SCHEMA, 300)
    + workloads.random_halfspaces(SCHEMA, 300)
)
ROWS = 2 * BATCH_ROWS + 1234


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return datasets.census(ROWS)


@pytest.fixture(scope="module")
def exact(table: pa.Table) -> ExactCounts:
    return exact_counts(WORKLOAD, table, threads=1)


def test_threads_do_not_matter(table: pa.Table, exact: ExactCounts) -> None:
    for threads in (None, 2, 5):
        again = exact_counts(WORKLOAD, table, threads=threads)
        np.testing.assert_array_equal(again.counts, exact.counts)
        assert again.n_records == exact.n_records == ROWS


def test_the_source_does_not_matter(table: pa.Table, exact: ExactCounts, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(table, tmp_path / "census.parquet")
    for data in (tmp_path / "census.parquet", table.to_pandas(), table.to_reader()):
        np.testing.assert_array_equal(exact_counts(WORKLOAD, data).counts, exact.counts)


def test_every_row_is_counted_once(exact: ExactCounts) -> None:
    pairs = workloads.categorical_marginals(SCHEMA, 2)
    for group in range(pairs.num_groups):
        part = exact.counts[pairs.offsets[group] : pairs.offsets[group + 1]]
        assert part.sum() == ROWS


@pytest.mark.parametrize("total", [ROWS, None])
def test_progress_is_reported_in_rows(table: pa.Table, total: int | None) -> None:
    reports: list[tuple[str, float, float | None]] = []
    data = table.to_reader() if total is None else table
    exact_counts(WORKLOAD.select([0]), data, progress=lambda *now: reports.append(now))
    assert {(what, everything) for what, _, everything in reports} == {("counting", total)}
    done = [rows for _, rows, _ in reports]
    assert done == sorted(done)
    assert done[-1] == ROWS
    assert len(done) > 1


def test_bad_values_are_counted_over_all_batches(table: pa.Table) -> None:
    ages = table["age"].to_numpy().copy()
    ages[::1000] = 100
    position = table.schema.get_field_index("age")
    bad = table.set_column(position, "age", pa.array(ages))
    with pytest.raises(DataError, match=r"column 'age': 133 values are not integer 0 to 99.*100"):
        exact_counts(WORKLOAD.select([0]), bad, threads=2)


def test_exact_counts_show_nothing(exact: ExactCounts) -> None:
    assert repr(exact) == str(exact) == f"<ExactCounts of {WORKLOAD.size:,} queries: redacted>"
    assert f"{exact}" == repr(exact)
    assert not hasattr(exact, "__dict__")


def test_exact_counts_are_not_written(exact: ExactCounts, tmp_path: Path) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled, copied or written"):
            pickle.dumps(exact, protocol)
    for copier in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            copier(exact)
    with pytest.raises(TypeError, match="cannot be pickled"):
        exact.__getstate__()
    with pytest.raises(TypeError):
        json.dumps(exact)
    with pytest.raises(TypeError):
        np.save(tmp_path / "exact.npy", exact)
    with pytest.raises(TypeError, match="do not turn into arrays"):
        np.asarray(exact)


def test_matrices_in_either_order() -> None:
    [batch] = datasets.census(500).to_batches()

    matrix = Encoder(SCHEMA).encode(batch)
    np.testing.assert_array_equal(
        count(WORKLOAD, np.ascontiguousarray(matrix)), count(WORKLOAD, np.asfortranarray(matrix))
    )


@pytest.mark.parametrize(
    ("column", "value"),
    [("sex", 2.0), ("sex", -1.0), ("sex", np.nan), ("age", 100.0), ("rent", -0.5), ("age", np.inf)],
)
def test_a_matrix_outside_the_schema_is_refused(column: str, value: float) -> None:
    [batch] = datasets.census(50).to_batches()
    matrix = Encoder(SCHEMA).encode(batch)
    matrix[7, SCHEMA.names.index(column)] = value
    with pytest.raises(ValueError, match=f"column {column!r}: the matrix has values outside"):
        count(WORKLOAD, matrix)


def test_a_matrix_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a matrix with 24 columns"):
        count(WORKLOAD, np.zeros((5, 3)))


def test_no_rows_give_no_counts() -> None:
    assert count(WORKLOAD, np.empty((0, 24))).sum() == 0


def test_errors_on_threads_come_through(table: pa.Table) -> None:
    def stop(what: str, done: float, total: float | None) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        exact_counts(WORKLOAD.select([0]), table, progress=stop)


def watched(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> tuple[Source, list[int]]:
    """A source of the first 3,000 rows, and a list that grows by an entry with each pass."""
    source = open_source(table.slice(0, 3000), SCHEMA)
    passes: list[int] = []
    batches = source.batches

    def noted(rows: int) -> Iterator[pa.RecordBatch]:
        passes.append(rows)
        return batches(rows)

    monkeypatch.setattr(source, "batches", noted)
    return source, passes


def test_the_same_workload_is_counted_once(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of a mechanism ask for the same counts again, on threads too."""
    monkeypatch.setattr("private_gsd.counting.exact.KEPT_BYTES", 0)
    source, passes = watched(table, monkeypatch)
    counts = TableCounts(source, again=True)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(counts, [WORKLOAD] * 4))
    assert len(passes) == 1
    assert all(each is found[0] for each in found)
    counts(workloads.categorical_marginals(SCHEMA, 1))
    again = counts(WORKLOAD)
    assert len(passes) == 3
    np.testing.assert_array_equal(again.counts, found[0].counts)


def test_rows_are_kept_unless_they_are_too_many(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = workloads.categorical_marginals(SCHEMA, 1)
    true = exact_counts(other, table.slice(0, 3000)).counts
    for limit, expected in ((2**30, 1), (100, 2)):
        monkeypatch.setattr("private_gsd.counting.exact.KEPT_BYTES", limit)
        source, passes = watched(table, monkeypatch)
        counts = TableCounts(source, again=True)
        counts(WORKLOAD)
        np.testing.assert_array_equal(counts(other).counts, true)
        assert len(passes) == expected


def test_rows_of_one_batch_are_counted_on_all_threads(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = TableCounts(open_source(table, SCHEMA), again=True, threads=3)
    first = counts(WORKLOAD).counts
    seen: list[int] = []
    real = RunningCounts.add

    def add(self: RunningCounts, matrix: np.ndarray[Any, Any]) -> None:
        seen.append(len(matrix))
        real(self, matrix)

    monkeypatch.setattr(RunningCounts, "add", add)
    again = workloads.categorical_marginals(SCHEMA, 1) + WORKLOAD
    np.testing.assert_array_equal(counts(again).counts[-WORKLOAD.size :], first)
    assert len(seen) == 3 * -(-len(table) // BATCH_ROWS)
    assert sum(seen) == len(table)


def test_a_pass_that_failed_keeps_no_rows(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(table.slice(0, 3000), SCHEMA)
    batches = source.batches

    def broken(rows: int) -> Any:
        yield from batches(1000)
        raise SourceError("gone")

    counts = TableCounts(source, again=True)
    monkeypatch.setattr(source, "batches", broken)
    with pytest.raises(SourceError, match="gone"):
        counts(WORKLOAD)
    monkeypatch.undo()
    assert counts(WORKLOAD).n_records == 3000


def test_a_table_that_changed_is_refused(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("private_gsd.counting.exact.KEPT_BYTES", 0)
    source = open_source(table.slice(0, 3000), SCHEMA)
    counts = TableCounts(source, again=True)
    counts(WORKLOAD)
    batches = open_source(table.slice(0, 2999), SCHEMA).batches
    monkeypatch.setattr(source, "batches", batches)
    with pytest.raises(SourceError, match="was changed while it was read"):
        counts(workloads.categorical_marginals(SCHEMA, 1))
