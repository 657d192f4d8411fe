"""Level estimates: the counts of the cells of a column, from its histograms of several levels.

All levels are combined by weighted least squares on the tree of cells. Then, from the top down:

- The coarsest cells are divided into stretches (see ``stretches``). A stretch that noise explains
  is empty; the cells of another are shrunk towards even shares.
- The cells of a split cell share its mass. A cell that stands out from its even share is a spike,
  and keeps its own estimate. The others are shrunk towards even shares. Even shares are those of
  the widths, or of how likely the values are (see ``projection.likely_values``).

All of this is computed from measurements, and so it costs no privacy.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Steps = NDArray[np.int64]
    Prior = Callable[[Steps, Steps], Vector]

# What one more stretch must explain, in squared standard deviations of noise: any stretch, and
# one of a single cell beside another stretch with mass.
FAR = 16.0
BESIDE = 6.0
# How many standard deviations above its even share makes a cell a spike.
SPIKE = 3.0


class Level(NamedTuple):
    """One histogram of a column.

    Attributes:
        starts: The first step of each cell. The cell of null is the last, where there is one.
        counts: The noisy count of each cell.
        variance: The variance of the noise.
    """

    starts: Steps
    counts: Vector
    variance: float


def estimated_counts(
    levels: Sequence[Level],
    even: Vector,
    end: int,
    total: float,
    prior: Prior | None = None,
    raised: Sequence[float] = (),
) -> Vector:
    """The estimated counts of the cells of the finest level; none is negative.

    Args:
        levels: The levels, each finer than the one before.
        even: The shares of the coarsest cells that are expected without any measurement; null has
            none.
        end: The step after the last cell.
        total: The sum of all counts.
        prior: See ``ColumnDistribution``.
        raised: By how many standard deviations all counts are raised, in turn, to find more cells
            with mass.
    """
    means, variances, parents = combined(levels)
    counts = _coarsest(means[0], variances[0], even, total, raised)
    for mean, variance, parent, level in zip(
        means[1:], variances[1:], parents, levels[1:], strict=True
    ):
        widths = np.diff(level.starts, append=end)
        likely = widths.astype(np.float64) if prior is None else prior(level.starts, widths)
        finer = np.empty(len(parent))
        firsts = np.searchsorted(parent, np.arange(len(counts) + 1))
        for number, (first, last) in enumerate(itertools.pairwise(firsts)):
            mine = slice(first, last)
            finer[mine] = _divided(mean[mine], variance[mine], likely[mine], counts[number])
        counts = finer
    return counts


def combined(
    levels: Sequence[Level],
) -> tuple[list[Vector], list[Vector], list[NDArray[np.int64]]]:
    """Weighted least squares from the finest level up: each cell with all that its parts say.

    Returns:
        For each level the estimated counts and their variances; and for each level but the first,
        the number of the cell above that each cell is part of.
    """
    means = [levels[-1].counts]
    variances = [np.full(len(levels[-1].counts), levels[-1].variance)]
    parents: list[NDArray[np.int64]] = []
    for level, finer in zip(levels[-2::-1], levels[:0:-1], strict=True):
        parent = np.searchsorted(level.starts, finer.starts, side="right") - 1
        sums = np.bincount(parent, means[0])
        noise = np.bincount(parent, variances[0])
        weight = noise / (noise + level.variance)
        means.insert(0, weight * level.counts + (1 - weight) * sums)
        variances.insert(0, weight * level.variance)
        parents.insert(0, parent)
    return means, variances, parents


def _coarsest(
    mean: Vector, variance: Vector, even: Vector, total: float, raised: Sequence[float]
) -> Vector:
    """The counts of the coarsest cells, without stretches that noise explains.

    Divisions into stretches are also found with all counts raised by multiples of the noise, so
    that more and more cells have mass. The estimate is the mean over all divisions, weighted by how
    well they explain the counts.
    """
    cells = len(even)  # all but null
    null = np.arange(len(mean)) >= cells
    noise = variance[:cells] ** 0.5
    if raised:
        parts_of = [
            stretches(mean[:cells] + by * noise, variance[:cells], even) for by in (0.0, *raised)
        ]
    else:
        parts_of = [_division(mean, variance, even, total)]
    estimates, costs = [np.zeros(len(mean))], [np.inf]
    for parts in parts_of:
        found, kept = np.where(null, np.clip(mean, 0.0, total), 0.0), null.copy()
        for begin, end in parts:
            mine = slice(begin, end)
            held = _fitted(mean[mine], variance[mine], even[mine]) * float(even[mine].sum())
            found[mine] = _shrunk(mean[mine], variance[mine], even[mine], held)
            kept[mine] = True
        if not kept.any():
            continue
        found = _nearest(found, kept, total)
        estimates.append(found)
        costs.append(float(((found - mean) ** 2 / variance).sum()) + FAR * max(len(parts), 1))
    if len(costs) == 1:
        return estimates[0]
    weights = np.exp((min(costs) - np.array(costs)) / 2)
    return np.asarray(np.average(estimates, axis=0, weights=weights))


def _division(mean: Vector, variance: Vector, even: Vector, total: float) -> list[tuple[int, int]]:
    """The stretches that have mass; at least one where not all rows are null."""
    cells = len(even)
    parts = stretches(mean[:cells], variance[:cells], even)
    some = cells == len(mean) or mean[cells] < total - 2 * variance[cells] ** 0.5
    if some and not parts:  # the rows without null must be somewhere
        best = int(mean[:cells].argmax())
        parts = [(best, best + 1)]
    return parts


def stretches(mean: Vector, variance: Vector, even: Vector) -> list[tuple[int, int]]:
    """The stretches of cells that have mass, as pairs of the first cell and the one after the last.

    The cells are divided into stretches, each empty or with mass in proportion to even shares. The
    division has the least sum of squared residuals over variances and of a price for each stretch
    with mass, which is lower for a single cell beside mass. It is found by dynamic programming.

    >>> counts = np.array([3.0, 40, 52, 45, 2, -4, 6, 1])
    >>> stretches(counts, np.full(8, 100.0), np.ones(8))
    [(1, 4)]

    Args:
        mean: The noisy count of each cell.
        variance: The variance of each count.
        even: The even share of each cell.
    """
    number = len(mean)
    terms = np.stack([mean**2, mean * even, even**2]) / variance
    # For each end: the least costs where the last stretch is empty, and where it has mass; and
    # where that stretch begins, and whether the one before it has mass.
    empty, massive = np.zeros(number + 1), np.full(number + 1, np.inf)
    before_empty: list[tuple[int, bool]] = [(0, False)]
    before_massive: list[tuple[int, bool]] = [(0, False)]
    for end in range(1, number + 1):
        # The sums of the cells from each begin to this end, the short ones without cancellation.
        residual, along, scale = np.cumsum(terms[:, end - 1 :: -1], axis=1)[:, ::-1]
        explained = np.maximum(along, 0.0) ** 2 / np.maximum(scale, 1e-300)
        options = massive[:end] + residual
        begin = int(options.argmin())
        empty[end], last = options[begin], (begin, True)
        if residual[0] <= empty[end]:
            empty[end], last = residual[0], (0, False)
        before_empty.append(last)
        after_empty, after_massive = empty[:end] + FAR, massive[:end] + FAR
        # A single cell may stand before or after others with mass.
        after_massive[-1] += BESIDE - FAR
        options = np.minimum(after_empty, after_massive) + residual - explained
        begin = int(options.argmin())
        massive[end] = options[begin]
        before_massive.append((begin, bool(after_massive[begin] < after_empty[begin])))
    found: list[tuple[int, int]] = []
    end, has_mass = number, bool(massive[number] < empty[number])
    while end > 0:
        begin, before = (before_massive if has_mass else before_empty)[end]
        if has_mass:
            found.append((begin, end))
        end, has_mass = begin, before
    return found[::-1]


def _fitted(mean: Vector, variance: Vector, even: Vector) -> float:
    """The multiple of even shares that is nearest to noisy counts."""
    scale = float((even**2 / variance).sum())
    return float((mean * even / variance).sum()) / scale if scale > 0 else 0.0


def _divided(mean: Vector, variance: Vector, even: Vector, total: float) -> Vector:
    """The counts of the parts of one cell, which add up to its count."""
    if len(mean) == 1:
        return np.array([total])
    if total <= 0:
        return np.zeros(len(mean))
    even = even / even.sum() if even.sum() > 0 else np.full(len(mean), 1 / len(mean))
    mean = mean + (total - mean.sum()) * variance / variance.sum()
    noise = np.sqrt(variance)
    spikes = np.zeros(len(mean), dtype=np.bool_)
    rest = total
    while not spikes.all():
        share = max(float(even[~spikes].sum()), 1e-12)
        excess = np.where(spikes, -np.inf, mean - rest * even / share) / noise
        best = int(excess.argmax())
        if excess[best] <= SPIKE:
            break
        spikes[best] = True
        rest = max(total - mean[spikes].sum(), 0.0)
    counts = np.where(spikes, np.maximum(mean, 0.0), 0.0)
    if not spikes.all():
        others = ~spikes
        counts[others] = _shrunk(mean[others], variance[others], even[others], rest)
    return np.asarray(counts * (total / counts.sum())) if counts.sum() > 0 else total * even


def _shrunk(mean: Vector, variance: Vector, even: Vector, total: float) -> Vector:
    """Counts of a given sum, shrunk towards even mass as far as noise explains the difference."""
    base = total * even / max(float(even.sum()), 1e-12)
    excess = mean - base
    squares = float((excess**2 / variance).sum())
    freedom = len(mean) - 1
    factor = max(0.0, 1 - freedom / squares) if squares > 0 else 0.0
    return _nearest(base + factor * excess, np.ones(len(mean), dtype=np.bool_), total)


def _nearest(values: Vector, kept: NDArray[np.bool_], total: float) -> Vector:
    """The nearest numbers that are not negative and have a given sum; 0 where not kept."""
    found = np.zeros(len(values))
    if total > 0 and kept.any():
        found[kept] = total * on_simplex(values[kept] / total)
    return found


def on_simplex(numbers: Vector) -> Vector:
    """The nearest probabilities: one number is subtracted from all, and no one is below 0.

    >>> on_simplex(np.array([0.8, 0.4, -0.1])).round(3).tolist()
    [0.7, 0.3, 0.0]
    """
    falling = np.sort(numbers)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(falling) + 1)
    kept = int(np.flatnonzero(falling > excess)[-1])
    probabilities: Vector = np.maximum(numbers - excess[kept], 0.0)
    return np.asarray(probabilities / probabilities.sum())
