"""Noisy answers about simulated people, for tests of denoising."""

from __future__ import annotations

import numpy as np

from private_gsd import Encoder, datasets
from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.watch import Watch
from private_gsd.workloads import Workload

CENSUS = datasets.census_schema().select(
    ["sex", "marital", "citizen", "education", "occupation", "age", "income"]
)


def census_rows(rows: int) -> np.ndarray:
    table = datasets.census(rows, seed=5).select(CENSUS.names)
    return Encoder(CENSUS).encode(table.combine_chunks().to_batches()[0])


def noisy(workload: Workload, matrix: np.ndarray, share: float, seed: int = 0) -> Measurements:
    """The answers of a table with noise of that share of the rows."""
    rng = np.random.default_rng(seed)
    scale = share * len(matrix)
    noise = np.rint(scale * rng.standard_normal(workload.size))
    counts = count(workload, matrix).astype(np.float64) + noise
    groups = workload.num_groups
    return Measurements(
        workload, counts, np.full(groups, scale), len(matrix), ("",) * groups, private=False
    )


def watch() -> Watch:
    return Watch()


def error(workload: Workload, truth: np.ndarray, shares: np.ndarray) -> float:
    return float(np.abs(count(workload, truth) / len(truth) - shares).mean())
