"""Intervals: shares and areas under a curve with their 95 % intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

# A standard normal variable lies between minus and plus this with a probability of 95 %.
NORMAL = 1.96


class Estimate(NamedTuple):
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


def share(hits: NDArray[np.float64] | NDArray[np.bool_], number: int | None = None) -> Estimate:
    """A share with Wilson's interval.

    Args:
        hits: Whether each case is a hit.
        number: The number of independent cases, if not all are independent.
    """
    number = len(hits) if number is None else min(number, len(hits))
    value = float(np.mean(hits))
    squared = NORMAL**2 / number
    middle = (value + squared / 2) / (1 + squared)
    half = NORMAL * math.sqrt(value * (1 - value) / number + squared / (4 * number)) / (1 + squared)
    return Estimate(value, max(0.0, middle - half), min(1.0, middle + half))


def area_under_curve(ones: Values, zeros: Values) -> Estimate:
    """The probability that a one scores above a zero, with Hanley and McNeil's interval.

    Ties are counted half.
    """
    ordered = np.sort(zeros)
    below = np.searchsorted(ordered, ones, side="left")
    upto = np.searchsorted(ordered, ones, side="right")
    area = float(np.mean((below + upto) / (2 * len(zeros))))
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (
        area * (1 - area)
        + (len(ones) - 1) * (first - area**2)
        + (len(zeros) - 1) * (second - area**2)
    ) / (len(ones) * len(zeros))
    half = NORMAL * math.sqrt(max(0.0, variance))
    return Estimate(area, max(0.0, area - half), min(1.0, area + half))


def excess(ones: NDArray[np.bool_], zeros: NDArray[np.bool_]) -> Estimate:
    """The excess of hits of ones over those of zeros, as a share of the misses of zeros."""
    one, zero = float(np.mean(ones)), float(np.mean(zeros))
    if zero == 1:
        return Estimate(0.0, 0.0, 0.0)
    spread = math.sqrt(one * (1 - one) / len(ones) + zero * (1 - zero) / len(zeros))
    value, half = (one - zero) / (1 - zero), NORMAL * spread / (1 - zero)
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half))
