"""Interactions: the basis, the slow twin, and parities that are told from noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Categorical, Integer, Schema
from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising.interactions import (
    contrasts,
    shrinkage,
    with_interactions,
)
from private_gsd.projection.denoising.lower_orders import complete_tables, is_wide
from private_gsd.projection.denoising.variance_components import COMPONENTS, posteriors
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.workloads import Marginals, Workload, categorical_marginals
from private_gsd.workloads.features import Feature
from private_gsd.workloads.marginals import Marginal
from private_gsd.workloads.specs import workload_of

Cube = NDArray[np.float64]


def measured_table(counts: Cube, scale: float) -> Measurements:
    """Noisy counts of one table of discrete columns."""
    schema = Schema(
        [Categorical(f"c{i}", values=list(range(n))) for i, n in enumerate(counts.shape)]
    )
    workload = categorical_marginals(schema, counts.ndim)
    records = max(1, round(float(np.abs(counts).sum())))
    return Measurements(workload, counts.ravel(), np.array([scale]), records, ("",), private=False)


@given(cells=st.integers(1, 20), nullable=st.booleans(), numeric=st.booleans())
def test_bases_are_orthonormal_and_begin_with_a_constant(
    cells: int, nullable: bool, numeric: bool
) -> None:
    breaks = tuple(map(float, range(1, cells))) if numeric else ()
    feature = Feature(0, tuple(range(cells)), breaks, nullable)
    basis, levels = contrasts(feature)
    np.testing.assert_allclose(basis @ basis.T, np.eye(feature.size), atol=1e-12)
    np.testing.assert_allclose(basis[0], feature.size**-0.5)
    assert levels[0] == 0
    assert (levels[1:] > 0).all()
    if not breaks:
        assert (levels[1:] == 1).all()


def test_halves_and_quarters_of_a_number_are_levels_and_null_is_apart() -> None:
    basis, levels = contrasts(Feature(0, (0, 1, 2, 3), (1.0, 2.0, 3.0)))
    np.testing.assert_allclose(basis[1], [0.5, 0.5, -0.5, -0.5])
    assert levels.tolist() == [0, 1, 2, 2]
    basis, levels = contrasts(Feature(0, (0, 1, 2, 3), (1.0, 2.0, 3.0), nullable=True))
    assert len(set(basis[1][:4].round(12))) == 1
    assert basis[1][4] < 0
    assert levels.tolist() == [0, 1, 2, 3, 3]


def interaction(cells: Cube, axes: tuple[int, ...]) -> Cube:
    """The interaction of some axes by its definition: differences of means."""
    for axis in range(cells.ndim):
        mean = cells.mean(axis=axis, keepdims=True)
        cells = cells - mean if axis in axes else np.broadcast_to(mean, cells.shape)
    return cells


@given(
    shape=st.lists(st.integers(2, 3), min_size=3, max_size=5),
    scale=st.floats(0.5, 30),
    seed=st.integers(0, 99),
)
def test_interactions_are_shrunk_as_their_definition_says(
    shape: list[int], scale: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(20, shape).astype(np.float64) + np.rint(rng.normal(0, scale, shape))
    measured = measured_table(counts, scale)
    (table,) = complete_tables(measured.workload)
    mean = rng.dirichlet(np.full(counts.size, 5.0)).reshape(shape)
    (found,) = with_interactions(measured, [table], [mean])
    shares = counts / measured.n_records
    noise = (scale / measured.n_records) ** 2
    sets = [
        axes
        for order in range(3, len(shape) + 1)
        for axes in itertools.combinations(range(len(shape)), order)
    ]
    parts = {axes: interaction(shares - mean, axes) for axes in sets}
    likelihoods = np.zeros((len(sets), len(COMPONENTS)))
    for row, axes in enumerate(sets):
        freedom = np.prod([shape[axis] - 1 for axis in axes])
        for column, component in enumerate(COMPONENTS):
            variance = component / counts.size + noise
            energy = (parts[axes] ** 2).sum()
            likelihoods[row, column] = -(freedom * np.log(variance) + energy / variance) / 2
    expected = mean.copy()
    for weights, axes in zip(posteriors(likelihoods), sets, strict=True):
        kept = sum(
            weight * (component / counts.size) / (component / counts.size + noise)
            for weight, component in zip(weights, COMPONENTS, strict=True)
        )
        expected = expected + kept * parts[axes]
    np.testing.assert_allclose(found, np.maximum(expected, 0), atol=1e-9)


def test_a_parity_is_told_from_noise_as_large_as_the_counts() -> None:
    """Six of nine columns have an even sum, in 512 cells of twenty rows with noise of 25."""
    rng = np.random.default_rng(0)
    even = np.indices((2,) * 9)[:6].sum(axis=0) % 2 == 0
    truth = even * 2 / even.size
    counts = np.rint(10_000 * truth + rng.normal(0, 25, truth.shape))
    measured = measured_table(counts, 25.0)
    measured = Measurements(
        measured.workload, counts.ravel(), measured.scales, 10_000, ("",), private=False
    )
    (table,) = complete_tables(measured.workload)
    (found,) = with_interactions(measured, [table], [np.full(truth.shape, 1 / truth.size)])
    noisy = np.abs(counts / 10_000 - truth).mean()
    assert np.abs(found - truth).mean() < 0.15 * noisy
    assert found[~even].sum() < 0.1


def test_noise_alone_leaves_the_prior_mean() -> None:
    rng = np.random.default_rng(1)
    mean = rng.dirichlet(np.full(256, 3.0)).reshape((2,) * 8)
    counts = np.rint(10_000 * mean + rng.normal(0, 25, mean.shape))
    measured = Measurements(
        measured_table(counts, 25.0).workload,
        counts.ravel(),
        np.array([25.0]),
        10_000,
        ("",),
        private=False,
    )
    (found,) = with_interactions(measured, complete_tables(measured.workload), [mean])
    assert np.abs(found - mean).mean() < 0.2 * np.abs(counts / 10_000 - mean).mean()


def test_components_without_coefficients_are_left_out() -> None:
    ones = np.ones(2)
    assert not shrinkage(ones, np.zeros(2, dtype=np.int64), ones, ones).any()


@pytest.mark.parametrize("numeric", [False, True])
def test_a_denoised_table_keeps_what_no_pair_shows(numeric: bool) -> None:
    """Pairs and the joint table of three columns and their parity, and one column beside."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 100 if numeric else 2, (4000, 4))
    odd = (x[:, :3] >= (50 if numeric else 1)).sum(axis=1) % 2
    rows = np.column_stack([x, odd]).astype(np.float64)
    described = [
        Integer(f"x{i}", lower=0, upper=99) if numeric else Categorical(f"x{i}", values=[0, 1])
        for i in range(4)
    ]
    schema = Schema([*described, Categorical("y", values=[0, 1])])
    joint = tuple(
        Feature(i, (0, 1), (50.0,) if numeric and i < 4 else ()) for i in range(len(schema))
    )
    pairs = workload_of(schema, ["tree:2", "numeric:2"] if numeric else ["categorical:2"])
    workload = pairs + Workload(schema, (Marginals(schema, [Marginal((joint,))]),))
    tables = complete_tables(workload)
    assert [is_wide(table) for table in tables] == [False] * (len(tables) - 1) + [True]
    counts = count(workload, rows) + rng.normal(0, 20, workload.size)
    groups = workload.num_groups
    measured = Measurements(
        workload, counts, np.full(groups, 20.0), 4000, ("",) * groups, private=False
    )
    found = evolve(measured, GeneticSearch(rows=2000), seed=1, threads=1).matrix
    again = (found[:, :3] >= (50 if numeric else 1)).sum(axis=1) % 2
    assert (again == found[:, 4]).mean() > 0.93
