"""What an evaluation reads of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from private_gsd import Integer, Schema, exact_counts
from private_gsd.evaluation.table_sample import sample_table, take
from private_gsd.workloads import tree_marginals

stats = pytest.importorskip("scipy.stats")
SCHEMA = Schema([Integer("n", lower=0, upper=200_000, nullable=True)], ["n >= 50000"])


def test_a_sample_is_uniform_and_counts_are_of_all_rows() -> None:
    table = pd.DataFrame({"n": np.arange(150_000)})
    workload = tree_marginals(SCHEMA, 1, 3)
    rows = sample_table(table, SCHEMA, workload, limit=1000, seed=3)
    assert rows.total == 150_000
    assert len(rows.sample) == 1000
    assert len(np.unique(rows.sample)) == 1000
    assert (np.diff(rows.sample[:, 0]) > 0).all()
    assert stats.kstest(rows.sample[:, 0] / 150_000, "uniform").pvalue > 0.001
    assert rows.counts.tolist() == exact_counts(workload, table).counts.tolist()
    assert rows.broken.tolist() == [50_000]
    assert rows.nulls.tolist() == [0]
    assert "redacted" in repr(rows)


def test_progress_is_the_number_of_rows_read() -> None:
    calls: list[tuple[str, float, float | None]] = []
    table = pd.DataFrame({"n": np.arange(100_000)})
    sample_table(table, SCHEMA, limit=10, what="reading", progress=lambda *call: calls.append(call))
    assert calls == [
        ("reading", 0, 100_000),
        ("reading", 65_536, 100_000),
        ("reading", 100_000, 100_000),
    ]


def test_rows_are_taken_in_their_order() -> None:
    matrix = np.arange(50.0).reshape(-1, 1)
    few = take(matrix, 10, seed=1)
    assert len(np.unique(few)) == 10
    assert (np.diff(few[:, 0]) > 0).all()
    assert take(matrix, 10, seed=1).tolist() == few.tolist()
    assert take(matrix, 50, seed=1) is matrix
