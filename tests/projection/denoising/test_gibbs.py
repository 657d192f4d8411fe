"""Gibbs sampler: columns without queries."""

from __future__ import annotations

import numpy as np

from private_gsd import Categorical, Schema, workloads
from private_gsd.projection.denoising.gibbs import GibbsSampler
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
