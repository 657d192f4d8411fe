"""Level estimates: shrinkage learned from all cells, slopes between cells, cells that are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd.measurements.level_estimates import (
    LEAST_TILT,
    ROUGHNESS,
    ROUNDS,
    Level,
    estimated_counts,
    shrinkage,
    tilts,
)

Vector = NDArray[np.float64]


def slow_shrinkage(
    excess: Vector, variance: Vector, base: Vector, parent: NDArray[np.int64]
) -> Vector:
    """Cell by cell, as the definition says."""
    groups = {}
    for owner in sorted(set(parent.tolist())):
        cells = [n for n in range(len(parent)) if parent[n] == owner and base[n] > 0]
        if len(cells) > 1:
            groups[owner] = cells
    kept = np.zeros(len(excess))
    if not groups:
        return kept

    def likelihood(cells: list[int], roughness: float) -> float:
        total = 0.0
        for n in cells:
            both = variance[n] + (base[n] * roughness) ** 2
            total -= (1 - 1 / len(cells)) * np.log(both) / 2 + excess[n] ** 2 / both / 2
        return total

    logs = {owner: [likelihood(cells, r) for r in ROUGHNESS] for owner, cells in groups.items()}
    weights = np.full(len(ROUGHNESS), 1 / len(ROUGHNESS))
    for _ in range(ROUNDS):
        posteriors = {}
        for owner, each in logs.items():
            terms = np.exp(np.array(each) - max(each)) * weights
            posteriors[owner] = terms / terms.sum()
        sums = np.sum(list(posteriors.values()), axis=0)
        weights = (sums + 1 / len(ROUGHNESS)) / (len(groups) + 1)
    for owner, cells in groups.items():
        for n in cells:
            signal = (base[n] * ROUGHNESS) ** 2
            kept[n] = (posteriors[owner] * signal / (signal + variance[n])).sum()
    return kept


@given(seed=st.integers(0, 10**6), cells=st.integers(1, 30), groups=st.integers(1, 6))
def test_shrinkage_is_that_of_the_definition(seed: int, cells: int, groups: int) -> None:
    rng = np.random.default_rng(seed)
    parent = np.sort(np.append(np.arange(groups), rng.integers(0, groups, cells)))
    variance = rng.uniform(1, 400, len(parent))
    base = np.maximum(rng.normal(50, 60, len(parent)), 0.0)
    excess = rng.normal(0, 30, len(parent))
    found = shrinkage(excess, variance, base, parent)
    np.testing.assert_allclose(found, slow_shrinkage(excess, variance, base, parent), atol=1e-9)
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize(("roughness", "least", "most"), [(0.0, 0.0, 0.25), (1.0, 0.75, 1.0)])
def test_how_rough_cells_are_is_learned_from_all(
    roughness: float, least: float, most: float
) -> None:
    """Forty cells of ten parts each, whose noise is half of an even share."""
    rng = np.random.default_rng(0)
    parent = np.repeat(np.arange(40), 10)
    base = np.full(400, 100.0)
    truth = rng.normal(0, roughness * 100, 400)
    excess = truth + rng.normal(0, 50, 400)
    kept = shrinkage(excess, np.full(400, 2500.0), base, parent)
    assert least <= kept.mean() <= most
    assert np.abs(kept * excess - truth).mean() <= np.abs(excess - truth).mean()
    # Cell by cell, by James and Stein: chance decides in every second one.
    squares = np.add.reduceat(excess**2 / 2500, np.arange(0, 400, 10))
    alone = np.repeat(np.maximum(0, 1 - 9 / squares), 10)
    if not roughness:
        assert np.abs(kept * excess).mean() < 0.6 * np.abs(alone * excess).mean()


def test_a_linear_density_is_found_from_coarse_cells() -> None:
    """To the last digit, but in the outermost cells, where nothing is beyond."""
    starts = np.arange(0, 60, 2)
    widths = np.full(30, 2)
    parent = np.repeat(np.arange(6), 5)
    mass = np.asarray((starts + 1.0) * 2, dtype=np.float64)
    likely = widths.astype(np.float64)
    found = likely * tilts(
        starts, widths, parent, likely, np.bincount(parent, mass).astype(np.float64)
    )
    for each in range(1, 5):
        mine = parent == each
        np.testing.assert_allclose(found[mine] / found[mine].sum(), mass[mine] / mass[mine].sum())


@given(seed=st.integers(0, 10**6))
def test_slopes_are_small_and_none_at_peaks(seed: int) -> None:
    """Mass stays where it is, and no cell beside a peak gets more than the peak's side says."""
    rng = np.random.default_rng(seed)
    starts = np.unique(np.append(0, rng.integers(1, 200, 30)))
    widths = np.diff(starts, append=200)
    parent = np.sort(rng.integers(0, 6, len(starts)))
    parent = np.unique(parent, return_inverse=True)[1]
    likely = widths.astype(np.float64)
    above = np.maximum(rng.normal(50, 60, parent[-1] + 1), 0.0)
    found = tilts(starts, widths, parent, likely, above)
    assert (found >= LEAST_TILT).all()
    density = above / np.bincount(parent, likely)
    for each in range(parent[-1] + 1):
        mine = parent == each
        if (found[mine] > LEAST_TILT).all():
            assert (likely * found)[mine].sum() == pytest.approx(likely[mine].sum())
        beside = density[max(each - 1, 0) : each + 2]
        if density[each] in (beside.max(), beside.min()):
            np.testing.assert_allclose(found[mine], 1.0)


def test_mass_between_cells_that_are_found_is_kept() -> None:
    """Noise hides each of many small cells below; values far above all others would be wrong."""
    rng = np.random.default_rng(1)
    starts = np.array([0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000])
    truth = np.array([300, 60, 60, 60, 60, 60, 60, 60, 60, 60, 3000, 2500, 0, 0, 0], float)
    even = np.full(15, 1 / 15)
    below, above = [], []
    for _ in range(20):
        level = Level(starts, truth + rng.normal(0, 250, 15), 250.0**2)
        found = estimated_counts([level], even, 50_000, truth.sum(), centre=0)
        assert found.sum() == pytest.approx(truth.sum())
        below.append(found[:10].sum())
        above.append(found[13:].sum())
        # Without a middle, only what is between the cells that are found.
        alone = estimated_counts([level], even, 50_000, truth.sum())
        assert alone[:10].sum() <= found[:10].sum() + 1e-6
    assert 300 < np.mean(below) < 2000
    assert np.mean(above) < 100


def test_a_cell_keeps_its_mass_if_no_part_of_it_is_likely() -> None:
    levels = [
        Level(np.array([0, 1]), np.array([500.0, 500.0]), 1.0),
        Level(np.array([0, 1, 5]), np.array([500.0, 250.0, 250.0]), 1.0),
    ]

    def prior(starts: NDArray[np.int64], widths: NDArray[np.int64]) -> Vector:
        return np.where(starts == 0, 0.0, widths)

    found = estimated_counts(levels, np.array([0.5, 0.5]), 9, 1000.0, prior)
    assert found[0] == pytest.approx(500, abs=3)
    assert found.sum() == pytest.approx(1000)
