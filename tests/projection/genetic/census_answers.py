"""Answers about simulated people, exact and slow to fit, for tests of the search."""

from __future__ import annotations

from typing import Any

import numpy as np

from private_gsd import Encoder, datasets, workloads
from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.genetic import (
    Evolution,
    GeneticSearch,
)
from private_gsd.workloads import Workload
from tests.projection.families import measured

CENSUS = datasets.census_schema().select(["sex", "age", "marital", "citizen", "income"])


def exactly(workload: Workload, matrix: np.ndarray, scale: float = 0.01) -> Measurements:
    """The answers of a table, as if there were hardly any noise."""
    counts = count(workload, matrix).astype(np.float64)
    groups = workload.num_groups
    scales = np.full(groups, scale)
    return Measurements(workload, counts, scales, len(matrix), ("",) * groups, private=False)


def census(rows: int) -> np.ndarray:
    table = datasets.census(rows, seed=3).select(CENSUS.names)
    return Encoder(CENSUS).encode(table.combine_chunks().to_batches()[0])


def recounted(measurements: Measurements, evolution: Evolution, weights: Any) -> float:
    """The loss by its definition."""
    answers = count(measurements.workload, evolution.matrix) / len(evolution.matrix)
    each = 1.0 if weights == "equal" else 1 / measurements.variances
    return float((each * (measurements.shares - answers) ** 2).sum())


def slow() -> tuple[Measurements, GeneticSearch]:
    """A search that would take minutes."""
    workload = workloads.categorical_marginals(CENSUS, 2) + workloads.random_halfspaces(CENSUS, 500)
    return measured(workload, np.random.default_rng(0)), GeneticSearch(rows=40_000, tolerance=0)
