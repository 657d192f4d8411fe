"""Statistical tests of noise, with stated probabilities of error."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

# Right noise fails a test once in a billion runs.
SIGNIFICANCE = 1e-9


def chi_square_p(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """The p-value of Pearson's test; cells that expect fewer than ten are merged."""
    order = np.argsort(-expected)
    observed, expected = observed[order], expected[order]
    keep = expected >= 10
    observed = np.append(observed[keep], observed[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum())
    if expected[-1] < 10:
        observed[-2] += observed[-1]
        expected[-2] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    statistic = float(((observed - expected) ** 2 / expected).sum())
    freedom = len(expected) - 1
    # The Wilson-Hilferty approximation: the cube root of chi-square over its freedom is normal.
    z = ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / math.sqrt(2 / (9 * freedom))
    return 0.5 * math.erfc(z / math.sqrt(2))


def clopper_pearson(hits: int, runs: int, alpha: float) -> tuple[float, float]:
    """A confidence interval for a probability, each end wrong with probability ``alpha``."""

    def tail(p: float) -> float:
        """P(at least ``hits`` of ``runs``)."""
        return _upper_tail(hits, runs, p)

    low = 0.0 if hits == 0 else _solve(lambda p: tail(p) - alpha)
    high = 1.0 if hits == runs else _solve(lambda p: _upper_tail(hits + 1, runs, p) - (1 - alpha))
    return low, high


def _upper_tail(hits: int, runs: int, p: float) -> float:
    if p <= 0:
        return 0.0 if hits else 1.0
    if p >= 1:
        return 1.0
    k = np.arange(hits, runs + 1)
    logs = _log_choose(runs)[hits:] + k * math.log(p) + (runs - k) * math.log1p(-p)
    return float(np.exp(logs).sum())


@lru_cache
def _log_choose(runs: int) -> NDArray[np.float64]:
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, runs + 1)))])
    return np.asarray(factorials[-1] - factorials - factorials[::-1])


def _solve(function: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def epsilon_lower_bound(hits: int, false_hits: int, runs: int, delta: float) -> float:
    """The ε that a mechanism must at least have, from how often an event came on two neighbours.

    Both ends of the bound are wrong with probability SIGNIFICANCE.
    """
    low, _ = clopper_pearson(hits, runs, SIGNIFICANCE)
    _, high = clopper_pearson(false_hits, runs, SIGNIFICANCE)
    return math.log((low - delta) / high) if low > delta else 0.0
