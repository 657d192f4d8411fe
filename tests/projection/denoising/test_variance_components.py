"""Variance components: found again from noisy tables, and tables shrunk by them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import workloads
from private_gsd.counting.exact import count
from private_gsd.projection.denoising import variance_components
from private_gsd.projection.denoising.lower_orders import (
    complete_tables,
)
from private_gsd.projection.denoising.variance_components import (
    COMPONENTS,
    centered,
    posterior_means,
)
from tests.projection.denoising.test_latent_classes import measured_with, tied


@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 4), st.integers(0, 2**32))
def test_a_centered_table_says_nothing_of_its_sums(a: int, b: int, c: int, seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(a, b, c))
    found = centered(table)
    for axis in range(3):
        assert np.abs(found.sum(axis=axis)).max() < 1e-9
    assert np.allclose(centered(found), found)


@pytest.mark.parametrize("order", [2, 3])
def test_variance_components_are_found_again(order: int) -> None:
    """Groups of 400 cells without and with excess, at a noise as large as the excess."""
    rng = np.random.default_rng(3)
    variance, expected = 1e-4, np.full(400, 1 / 400)
    likelihoods = []
    for component in [0.0] * 20 + [0.1] * 20:
        excess = rng.normal(0, np.sqrt(component * expected + variance))
        variances = COMPONENTS[:, None] * expected + variance
        fits = np.log(variances) + excess**2 / variances
        likelihoods.append(-fits.sum(axis=1) / 2)
    found = variance_components.variance_components(np.array(likelihoods), order)
    assert found[:20].max() < 0.02
    assert found[20:].min() > 0.05
    assert found[20:].max() < 0.2


def test_triples_of_which_nothing_is_seen_have_small_components() -> None:
    """Any component is as likely as another, where noise hides them all."""
    assert variance_components.variance_components(np.zeros((20, len(COMPONENTS))), 3).max() < 0.01


def test_excess_is_shrunk_by_the_noise() -> None:
    """All of it without noise, nothing of it where noise is everything."""
    schema, table = tied(2000, 4, 3)
    workload = workloads.categorical_marginals(schema, 2)
    tables = complete_tables(workload)
    expected = [np.outer([0.2, *[0.8 / 7] * 7], [0.2, *[0.8 / 7] * 7])] * len(tables)
    true = count(workload, table) / len(table)
    clear = measured_with(workload, table, 1e-6, 0)
    for each, beyond in zip(tables, posterior_means(clear, tables, expected), strict=True):
        sums = each.of(true) - expected[0] - centered(each.of(true) - expected[0])
        assert np.abs(beyond - np.maximum(each.of(true) - sums, 0)).max() < 1e-4
    dark = measured_with(workload, table, 10.0, 0)
    for beyond, mean in zip(posterior_means(dark, tables, expected), expected, strict=True):
        assert np.abs(beyond - mean).max() < 0.02
