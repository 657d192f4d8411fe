"""Stretches: which cells of a noisy histogram have mass, and how much.

The cells of a histogram are divided into stretches, each of them empty or with mass in proportion
to even shares. A stretch with mass has a prior price, which is lower for a single cell beside
mass. No single division is chosen: the estimates are means over all divisions, weighted by how
likely the noisy counts and the prices make each of them. The sums over all divisions are found by
dynamic programming, forwards and backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

# The price of a stretch with mass, as minus the logarithm of its prior odds: of any stretch, and of
# a single cell beside another stretch with mass.
FAR = 8.0
BESIDE = 2.0


def stretch_means(mean: Vector, variance: Vector, even: Vector) -> tuple[Vector, Vector]:
    """The expected count of each cell, and the probability that it has mass.

    >>> counts = np.array([3.0, 40, 52, 45, 2, -4, 6, 1])
    >>> expected, probability = stretch_means(counts, np.full(8, 100.0), np.ones(8))
    >>> expected.round().tolist()
    [0.0, 45.0, 46.0, 46.0, 0.0, 0.0, 0.0, 0.0]
    >>> (probability > 0.5).tolist()
    [False, True, True, True, False, False, False, False]

    Args:
        mean: The noisy count of each cell.
        variance: The variance of each count.
        even: The even share of each cell.
    """
    number = len(mean)
    empty, massive, multiples = _likelihoods(mean, variance, even)
    beside = FAR - (FAR - BESIDE) * np.eye(number, number + 1, k=1)
    # Logarithms of the weights of all divisions of the cells before a cell, by whether their last
    # stretch has mass; and of those of the cells from a cell on, by whether the one before has.
    after_empty, after_mass = np.full((2, number + 1), -np.inf)
    after_empty[0] = 0.0
    for end in range(1, number + 1):
        starts = np.append(after_mass[1:end] + empty[1:end, end], empty[0, end])
        after_mass[end] = _log_sum(
            after_empty[:end] + massive[:end, end] - FAR,
            after_mass[:end] + massive[:end, end] - beside[:end, end],
        )
        after_empty[end] = _log_sum(starts)
    before_empty, before_mass = np.zeros((2, number + 1))
    for begin in range(number - 1, -1, -1):
        later = slice(begin + 1, number + 1)
        stretch = massive[begin, later] + before_mass[later]
        before_mass[begin] = _log_sum(
            stretch - beside[begin, later], empty[begin, later] + before_empty[later]
        )
        before_empty[begin] = _log_sum(stretch) - FAR
    before = np.logaddexp(after_empty[:-1, None] - FAR, after_mass[:-1, None] - beside)
    everything = np.logaddexp(after_empty[-1], after_mass[-1])
    # Rounding may take the logarithm of a probability above 0.
    weights = np.exp(np.minimum(before + massive + before_mass - everything, 0.0))
    return _covering(weights * multiples) * even, _covering(weights)


def _likelihoods(mean: Vector, variance: Vector, even: Vector) -> tuple[Vector, Vector, Vector]:
    """For each begin and end: log-likelihoods if empty and if with mass, and the multiple then.

    The multiple is that of even shares that is nearest to the counts. Where the end is not after
    the begin, the log-likelihoods are minus infinity.
    """
    number = len(mean)
    empty, massive = np.full((2, number, number + 1), -np.inf)
    multiples = np.zeros((number, number + 1))
    terms = np.stack([mean**2, mean * even, even**2]) / variance
    for end in range(1, number + 1):
        # The sums of the cells from each begin to this end, the short ones without cancellation.
        residual, along, scale = np.cumsum(terms[:, end - 1 :: -1], axis=1)[:, ::-1]
        multiple = np.maximum(along, 0.0) / np.maximum(scale, 1e-300)
        empty[:end, end] = -residual / 2
        massive[:end, end] = (multiple * np.maximum(along, 0.0) - residual) / 2
        multiples[:end, end] = multiple
    return empty, massive, multiples


def _log_sum(*logarithms: Vector) -> float:
    """The logarithm of the sum of numbers, from their logarithms."""
    return float(np.logaddexp.reduce(np.concatenate(logarithms)))


def _covering(values: Vector) -> Vector:
    """For each cell, the sum of the values of all stretches that it is in."""
    from_begin = np.cumsum(values, axis=0)
    to_end = np.cumsum(from_begin[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.diagonal(to_end, offset=1))
