"""Level estimates: the counts of the cells of a column, from its histograms of several levels.

All levels are combined by weighted least squares on the tree of cells. Then, from the top down:

- The coarsest cells are divided into stretches that are empty or have mass (see ``stretches``).
- The cells of a split cell share its mass. A cell that stands out from its even share is a spike,
  and keeps its own estimate. The others are shrunk towards even shares. Even shares are those of
  the widths, or of how likely the values are (see ``projection.likely_values``).

All of this is computed from measurements, and so it costs no privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.measurements.stretches import stretch_means

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Steps = NDArray[np.int64]
    Prior = Callable[[Steps, Steps], Vector]

# The least probability that one of the outermost cells has mass, as a fraction of the largest of
# any cell.
LEAST_PROBABILITY = 0.2
# How many standard deviations above its even share makes a cell a spike.
SPIKE = 3.0
# The standard deviations that the parts of a cell may have, as fractions of their even shares.
ROUGHNESS = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
# The least factor of a density that changes within a cell.
LEAST_TILT = 0.1
# The number of times that their weights are learned.
ROUNDS = 10


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
    centre: int | None = None,
) -> Vector:
    """The estimated counts of the cells of the finest level; none is negative.

    Args:
        levels: The levels, each finer than the one before.
        even: The shares of the coarsest cells that are expected without any measurement; null has
            none.
        end: The step after the last cell.
        total: The sum of all counts.
        prior: See ``ColumnDistribution``.
        centre: A step in the middle of the distribution, where the column has one.
    """
    means, variances, parents = combined(levels)
    middle = None
    if centre is not None:
        middle = int(np.searchsorted(levels[0].starts, centre, side="right")) - 1
    counts = _coarsest(means[0], variances[0], even, total, middle)
    for mean, variance, parent, level in zip(
        means[1:], variances[1:], parents, levels[1:], strict=True
    ):
        widths = np.diff(level.starts, append=end)
        likely = widths.astype(np.float64) if prior is None else prior(level.starts, widths)
        likely = likely * tilts(level.starts, widths, parent, likely, counts)
        counts = _divided(mean, variance, parent, likely, counts)
    return counts


def tilts(
    starts: Steps, widths: Steps, parent: NDArray[np.int64], likely: Vector, above: Vector
) -> Vector:
    """How much likelier each cell is since the cells beside the one above have more or less mass.

    Within a cell above, the density changes linearly, with the smaller one of the slopes to both
    sides; not at all where they have different signs.

    Args:
        starts: The first step of each cell.
        widths: The number of steps of each cell.
        parent: The number of the cell above that each cell is part of.
        likely: How likely each cell is otherwise.
        above: The count of each cell above.
    """
    middles = starts + widths / 2
    weights = np.bincount(parent, widths)
    centres = np.bincount(parent, widths * middles) / weights
    density = above / np.maximum(np.bincount(parent, likely), 1e-200)
    slopes = np.diff(density) / np.diff(centres)
    before, after = np.append(0.0, slopes), np.append(slopes, 0.0)
    same = np.sign(before) == np.sign(after)
    slope = np.where(same, np.sign(after) * np.minimum(abs(before), abs(after)), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(density > 0, slope / density, 0.0)
    return np.maximum(1 + relative[parent] * (middles - centres[parent]), LEAST_TILT)


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
    mean: Vector, variance: Vector, even: Vector, total: float, middle: int | None
) -> Vector:
    """The counts of the coarsest cells, without those that noise explains.

    Few rows far from all others would change the mean. Beyond the cells that are likely to have
    mass, and the middle, all cells are empty.
    """
    cells = len(even)  # all but null
    # The sum of all counts is known.
    mean = mean + (total - mean.sum()) * variance / variance.sum()
    found = np.clip(mean, 0.0, total)
    expected, probability = stretch_means(mean[:cells], variance[:cells], even)
    likely = np.flatnonzero(probability >= LEAST_PROBABILITY * probability.max()).tolist()
    if middle is not None:
        likely.append(middle)
    first, last = min(likely), max(likely)
    found[:cells] = 0.0
    found[first : last + 1] = expected[first : last + 1]
    if not found.any():
        found[int(mean.argmax())] = total
    kept = np.flatnonzero(found > 0)
    found[kept] = total * on_simplex(found[kept] / total)
    return found


def _divided(
    mean: Vector, variance: Vector, parent: NDArray[np.int64], likely: Vector, above: Vector
) -> Vector:
    """The counts of the cells of a level, which add up to those of the cells above.

    Args:
        mean: The noisy count of each cell.
        variance: The variance of each count.
        parent: The number of the cell above that each cell is part of.
        likely: How likely each cell is, before it is measured.
        above: The count of each cell above.
    """
    number = len(above)
    lacking = (above - np.bincount(parent, mean)) / np.bincount(parent, variance)
    found = mean + lacking[parent] * variance
    # Where no part is likely, all are alike.
    likely = np.where(np.bincount(parent, likely)[parent] > 0, likely, 1.0)
    shares = likely / np.bincount(parent, likely)[parent]
    several = (np.bincount(parent) > 1) & (above > 0)
    spikes, rest = np.zeros(len(mean), dtype=np.bool_), above.copy()
    edges = np.searchsorted(parent, np.arange(number + 1))
    high = found - above[parent] * shares > SPIKE * np.sqrt(variance)
    for cell in np.flatnonzero(several & (np.bincount(parent, high) > 0)).tolist():
        mine = slice(edges[cell], edges[cell + 1])
        spikes[mine], rest[cell] = _spikes(found[mine], variance[mine], shares[mine], above[cell])
    counts = np.where(spikes, np.maximum(found, 0.0), 0.0)
    others = np.where(spikes | ~several[parent], 0.0, shares)
    base = rest[parent] * others / np.maximum(np.bincount(parent, others)[parent], 1e-12)
    found = base + shrinkage(found - base, variance, base, parent) * (found - base)
    kept = np.flatnonzero(base > 0)
    counts[kept] = _nearest(found[kept], parent[kept], rest)
    wholes = np.bincount(parent, counts)
    found = np.where((wholes > 0) & several, above / np.where(wholes > 0, wholes, 1.0), 0.0)
    # Cells that were not split keep their mass, and so do those of which nothing was found.
    return np.where(found[parent] > 0, counts * found[parent], above[parent] * shares)


def _spikes(
    mean: Vector, variance: Vector, even: Vector, total: float
) -> tuple[NDArray[np.bool_], float]:
    """Which parts of a cell stand out from their even shares, and the count of all others."""
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
    return spikes, rest


def shrinkage(excess: Vector, variance: Vector, base: Vector, parent: NDArray[np.int64]) -> Vector:
    """What fraction of the excess of each cell over its even share is kept.

    The true excess of a cell is taken to have a standard deviation of its even share times the
    roughness of the cell above. How rough cells are is learned from all of them (empirical Bayes):
    ``ROUGHNESS`` is a grid, and its weights are those that make the counts likely.

    Args:
        excess: The noisy count of each cell, less its even share.
        variance: The variance of each count.
        base: The even share of each cell, as a count; cells with 0 are left out.
        parent: The number of the cell above that each cell is part of.
    """
    used = base > 0
    owners, numbers = parent[used], np.bincount(parent[used], minlength=parent[-1] + 1)
    noise, signal = variance[used], (base[used, None] * ROUGHNESS) ** 2
    # The sum of the parts of a cell is known, which leaves one degree of freedom less.
    freedom = (1 - 1 / numbers[owners])[:, None]
    both = noise[:, None] + signal
    terms = -freedom * np.log(both) / 2 - excess[used, None] ** 2 / both / 2
    likelihood = np.stack(
        [np.bincount(owners, each, minlength=len(numbers)) for each in terms.T], axis=1
    )[numbers > 1]
    kept = np.zeros(len(excess))
    if not len(likelihood):
        return kept
    likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(ROUGHNESS), 1 / len(ROUGHNESS))
    for _ in range(ROUNDS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = (posterior.sum(axis=0) + 1 / len(ROUGHNESS)) / (len(posterior) + 1)
    of_cell = np.zeros((len(numbers), len(ROUGHNESS)))
    of_cell[numbers > 1] = posterior
    kept[used] = (of_cell[owners] * signal / both).sum(axis=1)
    return kept


def _nearest(values: Vector, parent: NDArray[np.int64], wholes: Vector) -> Vector:
    """The nearest numbers that are not negative and have given sums, those of each cell above.

    Args:
        values: The numbers.
        parent: The number of the cell above that each number is part of, in rising order.
        wholes: The sum of the parts of each cell above.
    """
    order = np.lexsort((-values, parent))
    falling, owners = values[order], parent[order]
    firsts = np.searchsorted(owners, np.arange(len(wholes) + 1))
    sums = np.append(0.0, np.cumsum(falling))
    ranks = np.arange(len(values)) - firsts[owners]
    excess = (sums[1:] - sums[firsts[owners]] - wholes[owners]) / (ranks + 1)
    number = np.bincount(owners, falling > excess, minlength=len(wholes)).astype(np.int64)
    last = np.clip(firsts[:-1] + number - 1, 0, max(len(values) - 1, 0))
    found: Vector = np.maximum(values - excess[last][parent], 0.0) if len(values) else values
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
