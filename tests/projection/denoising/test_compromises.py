"""Compromises: against twins for one cell, their bounds, and what a release gains by them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from private_gsd import Categorical, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.projection.denoising import compromises
from private_gsd.projection.denoising.compromises import FARTHEST, LEAST_SLACK, blended, translated
from private_gsd.projection.denoising.denoise import Denoising
from private_gsd.projection.watch import Watch
from tests.projection.denoising.test_latent_classes import measured_with

shares = st.floats(0, 1)
scales = st.floats(1e-4, 0.5)


def posterior(noisy: float, first: float, second: float, weight: float, scale: float) -> float:
    """The probability of the second estimate, by Bayes's rule and the normal density."""

    def density(mean: float) -> float:
        return math.exp(-((noisy - mean) ** 2) / (2 * scale**2))

    return weight * density(second) / (weight * density(second) + (1 - weight) * density(first))


@given(shares, shares, shares, st.floats(0.01, 0.99), scales)
def test_estimates_are_blended_by_bayes_rule(
    noisy: float, first: float, second: float, weight: float, scale: float
) -> None:
    assume(max(abs(noisy - first), abs(noisy - second)) < 5 * scale)
    found = blended(np.array([noisy]), np.array([first]), np.array([second]), weight, scale**2)
    share = posterior(noisy, first, second, weight, scale)
    assert found[0] == pytest.approx((1 - share) * first + share * second, abs=1e-12)


def test_where_estimates_are_near_their_weights_count_and_where_not_the_noisy_answer() -> None:
    first, second, noise = np.array([0.1, 0.1, 0.1]), np.array([0.101, 0.5, 0.5]), 0.02
    found = blended(np.array([0.3, 0.48, 0.12]), first, second, 0.25, noise**2)
    assert found[0] == pytest.approx(0.10025, abs=3e-4)
    assert found[1:] == pytest.approx([0.5, 0.1], abs=1e-6)
    far = blended(np.array([1e6]), np.array([0.0]), np.array([1.0]), 0.5, 1e-12)
    assert far[0] == pytest.approx(1.0)


def translated_cell(
    noisy: float, estimate: float, row: float, column: float, scale: float
) -> float:
    """One cell: as far as it takes, as far as it may, or not at all."""
    if noisy - FARTHEST * scale > estimate:
        bound = min(row, column)
        wanted = noisy - FARTHEST * scale
        return estimate if bound - estimate < LEAST_SLACK * scale else min(wanted, bound)
    if noisy + FARTHEST * scale < estimate:
        bound = max(row + column - 1, 0.0)
        wanted = noisy + FARTHEST * scale
        return estimate if estimate - bound < LEAST_SLACK * scale else max(wanted, bound)
    return estimate


@given(st.floats(-1, 2), shares, shares, shares, scales)
def test_an_estimate_is_moved_as_one_cell_is(
    noisy: float, estimate: float, row: float, column: float, scale: float
) -> None:
    for direction in (-1, 1):  # not where rounding decides whether there is enough slack
        bound = min(row, column) if direction > 0 else max(row + column - 1, 0)
        assume(abs(direction * (bound - estimate) - LEAST_SLACK * scale) > 1e-9)
    found = translated(
        np.array([[noisy]]), np.array([[estimate]]), np.array([row]), np.array([column]), scale**2
    )
    expected = translated_cell(noisy, estimate, row, column, scale)
    assert found[0, 0] == pytest.approx(expected, abs=1e-12)


def test_small_cells_stay_as_they_are() -> None:
    """Noise of 0.1 and columns of ten values: no cell can have two standard deviations of it."""
    rng = np.random.default_rng(0)
    even, noisy = np.full(10, 0.1), rng.normal(0, 0.1, (10, 10))
    estimates = np.full((10, 10), 0.01)
    assert (translated(noisy, estimates, even, even, 0.01) == estimates).all()


@pytest.mark.slow
def test_a_strong_cell_among_weak_ones_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of eight columns have a value of a tenth of the rows together; the rest is independent.

    Noise is a fortieth of the rows. The cell's error falls by a tenth at least, in the mean of six
    draws, and that of all cells grows by less than a hundredth.
    """
    rng = np.random.default_rng(5)
    table = rng.integers(1, 8, (4000, 8)).astype(np.float64)
    table[:400, :2] = 0
    schema = Schema([Categorical(f"c{place}", values=list(range(8))) for place in range(8)])
    workload = workloads.categorical_marginals(schema, 2)
    true = count(workload, table) / len(table)

    def errors() -> tuple[float, float]:
        draws = [measured_with(workload, table, 0.025, seed) for seed in range(6)]
        made = [Denoising(each, seed, 1, Watch()).run() for seed, each in enumerate(draws)]
        return (
            float(np.mean([abs(each.shares[0] - true[0]) for each in made])),
            float(np.mean([np.abs(each.shares - true).mean() for each in made])),
        )

    cell, mean = errors()
    monkeypatch.setattr(compromises, "FARTHEST", math.inf)
    cell_before, mean_before = errors()
    assert cell < 0.9 * cell_before
    assert mean < 1.01 * mean_before
