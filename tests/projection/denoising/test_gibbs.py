"""Gibbs sampler: columns without queries, and forests of other atoms."""

from __future__ import annotations

import numpy as np

from private_gsd import Categorical, Integer, Schema, workloads
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising.gibbs import GibbsSampler
from private_gsd.projection.denoising.lower_orders import complete_tables
from private_gsd.workloads import Workload
from tests.projection.denoising.noisy_census import noisy, watch


def test_columns_without_queries_stay_uniform() -> None:
    """2,000 rows of four values: five sigma of a share is 0.05."""
    schema = Schema([Categorical("a", values=[0, 1]), Categorical("free", values=[0, 1, 2, 3])])
    workload = Workload(schema, workloads.categorical_marginals(schema, 1).select([0]).families)
    measured = noisy(workload, np.zeros((100, 2)), 0.05)
    sampler = GibbsSampler(measured, 2000, 0, np.array([True, False]))
    sampler.run(10, watch(), 1)
    shares = np.bincount(sampler.states[0].atoms[:, 1], minlength=4) / 2000
    assert np.abs(shares - 0.25).max() < 0.06


def test_a_forest_is_learned_again_for_other_atoms() -> None:
    """Tables with more cut points have more atoms, and log-lifts of the old ones do not fit."""
    schema = Schema([Integer(name, lower=0, upper=99) for name in "ab"])
    rows = np.random.default_rng(0).integers(0, 100, (500, 1)).repeat(2, axis=1).astype(float)
    coarse, fine = (
        noisy(workloads.tree_marginals(schema, 2, depth, categorical=0), rows, 0.01)
        for depth in (2, 4)
    )
    everything = np.ones(2, dtype=np.bool_)
    first = GibbsSampler(coarse, 300, 0, everything)
    first.run(3, watch(), 1)
    forest = first.chow_liu_forest(complete_tables(coarse.workload))
    assert list(forest.neighbours) == [1, 0]

    def lifts(measured: Measurements) -> tuple[int, np.ndarray]:
        sampler = GibbsSampler(measured, 300, 0, everything, forest, [first.states[0].values] * 2)
        sampler.refine_chow_liu(first)
        sampler.run(2, watch(), 1)
        sizes = [len(shares) for shares in sampler.column_shares()]
        assert len(sampler.chow_liu.log_lifts) == 2 * sizes[0] * sizes[1]
        return sizes[0], sampler.means

    assert [lifts(each)[0] for each in (coarse, fine)] == [4, 16]
    np.testing.assert_array_equal(lifts(fine)[1], lifts(fine)[1])
