"""Compromises: where two estimates of a pair differ, and where an estimate leaves the noisy answer.

Both look at single cells. An estimate that is the best in the mean may be far off in a few strong
cells, whose dependence is unlike that of all others; the noisy answers of these cells say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Shares = NDArray[np.float64]

# An estimate is moved to within this many standard deviations of the noise of its noisy answer, if
# the single columns let it move by at least this many.
FARTHEST = 2.0
LEAST_SLACK = 2.0
# Largest log-odds of one estimate against the other.
MOST_LOG_ODDS = 50.0


def blended(noisy: Shares, first: Shares, second: Shares, weight: float, variance: float) -> Shares:
    """The mean of two estimates of each cell, each with its posterior probability.

    Where they differ by less than the noise, the probabilities are the prior ones.

    Args:
        noisy: The noisy answers.
        first: An estimate of them.
        second: Another estimate.
        weight: The prior probability of the second one.
        variance: The variance of the noise.
    """
    log_odds = ((noisy - first) ** 2 - (noisy - second) ** 2) / (2 * variance)
    odds = np.exp(np.clip(log_odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)) * weight / (1 - weight)
    return np.asarray(first + odds / (1 + odds) * (second - first))


def translated(
    noisy: Shares, estimate: Shares, rows: Shares, columns: Shares, variance: float
) -> Shares:
    """Estimates of a pair that are not far from the noisy answers, if single columns allow it.

    This is Efron and Morris's (1972) limited translation, within Fréchet's bounds: a cell has at
    most the share of its row and of its column, and at least what both have beyond 1. Most cells
    are so small that the noise is all that their noisy answers can show, and stay as they are.

    Args:
        noisy: The noisy answers.
        estimate: The estimates of them.
        rows: The share of each value of the first column.
        columns: The share of each value of the second column.
        variance: The variance of the noise.
    """
    scale = np.sqrt(variance)
    upper = np.maximum(np.minimum.outer(rows, columns), estimate)
    lower = np.minimum(np.maximum(np.add.outer(rows, columns) - 1, 0), estimate)
    lower = np.where(estimate - lower >= LEAST_SLACK * scale, lower, estimate)
    upper = np.where(upper - estimate >= LEAST_SLACK * scale, upper, estimate)
    nearest = np.clip(estimate, noisy - FARTHEST * scale, noisy + FARTHEST * scale)
    return np.asarray(np.clip(nearest, lower, upper))
