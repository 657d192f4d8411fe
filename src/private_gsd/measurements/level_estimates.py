"""Level estimates: the counts of the cells of a column, from its histograms of several levels.

All levels are combined by weighted least squares on the tree of cells. Then, from the top down:

- The coarsest cells are divided into stretches that are empty or have mass (see ``stretches``).
- The cells of a split cell share its mass. A cell that stands out from its even share is a spike,
  and keeps its own estimate. The others are shrunk towards even shares. Even shares are those of
  the widths, or of how likely the values are (see ``projection.likely_values``).

All of this is computed from measurements, and so it costs no privacy.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.measurements.stretches import stretch_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Steps = NDArray[np.int64]
    Prior = Callable[[Steps, Steps], Vector]

# The least probability that a coarsest cell has mass, as a fraction of the largest of any cell;
# others are empty. Few rows far from all others would change the mean.
LEAST_PROBABILITY = 0.2
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
) -> Vector:
    """The estimated counts of the cells of the finest level; none is negative.

    Args:
        levels: The levels, each finer than the one before.
        even: The shares of the coarsest cells that are expected without any measurement; null has
            none.
        end: The step after the last cell.
        total: The sum of all counts.
        prior: See ``ColumnDistribution``.
    """
    means, variances, parents = combined(levels)
    counts = _coarsest(means[0], variances[0], even, total)
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


def _coarsest(mean: Vector, variance: Vector, even: Vector, total: float) -> Vector:
    """The counts of the coarsest cells, without those that noise explains."""
    cells = len(even)  # all but null
    # The sum of all counts is known.
    mean = mean + (total - mean.sum()) * variance / variance.sum()
    found = np.clip(mean, 0.0, total)
    expected, probability = stretch_means(mean[:cells], variance[:cells], even)
    likely = probability >= LEAST_PROBABILITY * probability.max()
    found[:cells] = np.where(likely, expected, 0.0)
    if not found.any():
        found[int(mean.argmax())] = total
    return _nearest(found, found > 0, total)


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
