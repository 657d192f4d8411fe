"""Lower orders: sums of true answers are true, and their variances are those of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Categorical, Schema, workloads
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


def test_sums_of_wide_tables_are_left_out_where_others_know_the_columns() -> None:
    schema = Schema([Categorical(name, values=[0, 1]) for name in "abcd"])
    joint = workloads.categorical_marginals(schema, 4)
    pairs = workloads.categorical_marginals(schema, sets=[("b", "a"), ("c", "d")])
    workload = joint + pairs
    rng = np.random.default_rng(0)
    counts = rng.normal(50, 5, workload.size)
    measured = Measurements(workload, counts, np.array([1.0, 5, 5]), 800, ("",) * 3, private=False)
    found = summed_to(measured, complete_tables(workload), 2, measured.shares)
    tables = {
        frozenset(feature.position for feature in table.features): table
        for table in complete_tables(found.workload)
    }
    assert len(tables) == 6
    (first, second) = complete_tables(pairs)
    for table, offset in ((first, 16), (second, 20)):
        places = frozenset(feature.position for feature in table.features)
        mine = tables[places].of(found.counts)
        np.testing.assert_allclose(mine.ravel(), counts[offset : offset + 4])
    # The others are sums of the joint table.
    cube = counts[:16].reshape(2, 2, 2, 2)
    np.testing.assert_allclose(tables[frozenset({0, 2})].of(found.counts), cube.sum(axis=(1, 3)))
