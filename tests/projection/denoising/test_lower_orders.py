"""Lower orders: sums of true answers are true, and their variances are those of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising.lower_orders import (
    complete_tables,
    summed_to,
)
from private_gsd.workloads.specs import workload_of
from tests.projection.denoising.noisy_census import CENSUS, census_rows, noisy


@pytest.mark.parametrize("specs", [["categorical:2"], ["categorical:3"], ["tree:2:3"]])
def test_sums_of_true_answers_are_true(specs: list[str]) -> None:
    """Without noise, lower orders from any tables are the lower orders of the data."""
    workload, table = workload_of(CENSUS, specs), census_rows(500)
    groups = workload.num_groups
    counts = count(workload, table).astype(np.float64)
    exact = Measurements(workload, counts, np.ones(groups), 500, ("",) * groups, private=False)
    tables = complete_tables(workload)
    for order in (1, 2):
        found = summed_to(exact, tables, order, exact.shares)
        assert np.allclose(found.counts, count(found.workload, table))


def test_variances_of_sums_are_those_of_noise() -> None:
    """Of 400 draws: the empirical variance is within a quarter (five sigma: 0.35)."""
    workload, table = workload_of(CENSUS, ["categorical:2"]), census_rows(500)
    tables = complete_tables(workload)
    draws = []
    for seed in range(400):
        measured = noisy(workload, table, 0.05, seed)
        draws.append(summed_to(measured, tables, 1, measured.shares))
    counts = np.array([draw.counts for draw in draws])
    sizes = draws[0].workload.group_sizes
    ratio = counts.var(axis=0) / np.repeat(draws[0].scales, sizes) ** 2
    assert ratio.min() > 0.65
    assert ratio.max() < 1.35
    assert abs(ratio.mean() - 1) < 0.1
