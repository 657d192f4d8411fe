"""Stretches: cells that have mass are told from noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd.measurements.stretches import BESIDE, FAR, stretch_means

Vector = NDArray[np.float64]


def by_definition(mean: Vector, variance: Vector, even: Vector) -> tuple[Vector, Vector]:
    """The slow twin: every division of the cells, with its weight."""
    weights, expected, has_mass = [], [], []
    for edges, massive in divisions(len(mean)):
        logarithm, before = 0.0, False
        found, inside = np.zeros(len(mean)), np.zeros(len(mean))
        for (begin, end), mass in zip(itertools.pairwise(edges), massive, strict=True):
            x, v, e = (each[begin:end] for each in (mean, variance, even))
            level = max(float((x * e / v).sum() / (e * e / v).sum()), 0.0) if mass else 0.0
            logarithm -= float(((x - level * e) ** 2 / v).sum()) / 2
            if mass:
                logarithm -= BESIDE if before and end - begin == 1 else FAR
                found[begin:end], inside[begin:end] = level * e, 1.0
            before = mass
        weights.append(math.exp(logarithm))
        expected.append(found)
        has_mass.append(inside)
    return (
        np.average(expected, axis=0, weights=weights),
        np.average(has_mass, axis=0, weights=weights),
    )


def divisions(number: int) -> list[tuple[tuple[int, ...], tuple[bool, ...]]]:
    """All divisions of some cells; an empty stretch does not follow another."""
    found = []
    for inner in itertools.product([False, True], repeat=number - 1):
        edges = (0, *(place + 1 for place, cut in enumerate(inner) if cut), number)
        for massive in itertools.product([False, True], repeat=len(edges) - 1):
            if all(one or other for one, other in itertools.pairwise(massive)):
                found += [(edges, massive)]
    return found


@given(
    mean=st.lists(st.floats(-3, 12), min_size=1, max_size=5),
    variance=st.lists(st.floats(0.5, 4), min_size=5, max_size=5),
    even=st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
)
def test_means_over_all_divisions(
    mean: list[float], variance: list[float], even: list[float]
) -> None:
    number = len(mean)
    counts = np.array(mean), np.array(variance[:number]), np.array(even[:number])
    found, wanted = stretch_means(*counts), by_definition(*counts)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-7, atol=1e-9)


def test_noise_alone_has_hardly_any_mass() -> None:
    """In 400 columns of forty cells of noise: not much more than one standard deviation."""
    rng = np.random.default_rng(0)
    found = [stretch_means(rng.normal(size=40), np.ones(40), np.ones(40))[0] for _ in range(400)]
    assert np.mean([each.sum() for each in found]) < 2
    assert np.mean([each.max() > 1 for each in found]) < 0.15


def test_many_cells_are_told_from_noise_where_no_single_one_is() -> None:
    """Sixteen cells of 1.5 standard deviations each, of forty: found in nearly all of 100 draws."""
    rng = np.random.default_rng(1)
    truth = np.zeros(40)
    truth[10:26] = 1.5
    apart, held = [], []
    for _ in range(100):
        expected, likely = stretch_means(truth + rng.normal(size=40), np.ones(40), np.ones(40))
        apart.append(likely[10:26].mean() - likely[truth == 0].mean())
        held.append(expected[10:26].sum())
    assert np.mean(apart) > 0.7
    assert np.mean(held) == pytest.approx(24, rel=0.15)


def test_cells_of_hardly_any_width_are_not_filled_by_rounding() -> None:
    """Even shares of 1e-9 beside shares of 0.1: sums over long stretches would lose them."""
    even = np.append(np.full(30, 0.1), 1e-9)
    counts = np.concatenate([np.full(20, 50.0), np.zeros(10), [0.3]])
    expected, likely = stretch_means(counts, np.ones(31), even)
    assert (likely[:20] > 0.99).all()
    assert (likely[20:] < 0.2).all()
    assert expected[:20] == pytest.approx(50.0)
    assert expected[20:].sum() < 0.01


def test_large_counts_do_not_overflow() -> None:
    """A billion records and hardly any noise: logarithms of weights of 1e18."""
    counts = np.array([1e9, 0.0, 3.0, 4e8])
    expected, _ = stretch_means(counts, np.full(4, 0.5), np.ones(4))
    assert expected == pytest.approx([1e9, 0, 3, 4e8], abs=0.5)


def test_rounding_makes_no_probability_larger_than_1() -> None:
    rng = np.random.default_rng(2)
    for size in 10.0 ** np.arange(6, 13):
        counts = np.where(rng.random(30) < 0.5, size * rng.random(30), 0.0)
        expected, likely = stretch_means(counts, np.full(30, 0.5), rng.random(30))
        assert likely.max() <= 1 + 1e-12
        np.testing.assert_allclose(expected, counts, atol=1e-6 * size)
