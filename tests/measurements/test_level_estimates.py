"""Level estimates: stretches of cells that have mass, told from noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd.measurements.level_estimates import BESIDE, FAR, stretches

Vector = NDArray[np.float64]


def cost(
    mean: Vector, variance: Vector, even: Vector, edges: tuple[int, ...], massive: tuple[bool, ...]
) -> float:
    """The cost of a division by its definition: residuals, and a price for each stretch."""
    total, before = 0.0, False
    for (begin, end), has_mass in zip(itertools.pairwise(edges), massive, strict=True):
        x, v, e = (each[begin:end] for each in (mean, variance, even))
        level = max(float((x * e / v).sum() / (e * e / v).sum()), 0.0) if has_mass else 0.0
        total += float(((x - level * e) ** 2 / v).sum())
        if has_mass:
            total += BESIDE if before and end - begin == 1 else FAR
        before = has_mass
    return total


def divisions(number: int) -> list[tuple[tuple[int, ...], tuple[bool, ...]]]:
    """All divisions of some cells, each stretch empty or with mass."""
    found = []
    for inner in itertools.product([False, True], repeat=number - 1):
        edges = (0, *(place + 1 for place, cut in enumerate(inner) if cut), number)
        found += [
            (edges, massive) for massive in itertools.product([False, True], repeat=len(edges) - 1)
        ]
    return found


DIVISIONS = divisions(6)


@given(
    mean=st.lists(st.floats(-3, 12), min_size=6, max_size=6),
    variance=st.lists(st.floats(0.5, 4), min_size=6, max_size=6),
    even=st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
)
def test_the_division_is_the_best_of_all(
    mean: list[float], variance: list[float], even: list[float]
) -> None:
    x, v, e = np.array(mean), np.array(variance), np.array(even)
    found = stretches(x, v, e)
    best = min(cost(x, v, e, *division) for division in DIVISIONS)
    edges, massive, last = [0], [], 0
    for begin, end in found:
        if begin > last:
            edges.append(begin)
            massive.append(False)
        edges.append(end)
        massive.append(True)
        last = end
    if last < len(x):
        edges.append(len(x))
        massive.append(False)
    assert cost(x, v, e, tuple(edges), tuple(massive)) == pytest.approx(best, abs=1e-6)


def test_noise_alone_has_no_stretch() -> None:
    """Of 400 columns of noise at most two have one; the mean number is 0.4 at 4 deviations."""
    rng = np.random.default_rng(0)
    some = [bool(stretches(rng.normal(size=40), np.ones(40), np.ones(40))) for _ in range(400)]
    assert sum(some) <= 8


def test_many_cells_are_told_from_noise_where_no_single_one_is() -> None:
    """Sixteen cells of 1.5 standard deviations each, of forty: found in nearly all of 100 draws."""
    rng = np.random.default_rng(1)
    truth = np.zeros(40)
    truth[10:26] = 1.5
    held = []
    for _ in range(100):
        inside = np.zeros(40, dtype=np.bool_)
        for begin, end in stretches(truth + rng.normal(size=40), np.ones(40), np.ones(40)):
            inside[begin:end] = True
        held.append(inside[10:26].mean() - inside[truth == 0].mean())
    assert np.mean(held) > 0.8


def test_cells_of_hardly_any_width_are_not_filled_by_rounding() -> None:
    """Even shares of 1e-9 beside shares of 0.1: sums over long stretches would lose them."""
    even = np.append(np.full(30, 0.1), 1e-9)
    counts = np.concatenate([np.full(20, 50.0), np.zeros(10), [0.3]])
    assert stretches(counts, np.ones(31), even) == [(0, 20)]
