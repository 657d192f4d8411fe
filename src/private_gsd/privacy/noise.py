"""Noise on whole numbers, drawn by OpenDP, and its calibration to ρ-zCDP.

There are two kinds of noise: the discrete Gaussian on a vector of counts, and the noisy top-k with
Gumbel noise on a vector of scores. Both take whole numbers and are OpenDP's. This module chooses
their scale, and asks OpenDP for the cost of that scale, which must not exceed the charge.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_noisy_top_k
from opendp.measures import zero_concentrated_divergence
from opendp.metrics import l2_distance, linf_distance
from opendp.mod import enable_features

from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import units_to_rho
from private_gsd.privacy.conversions import ROUNDING
from private_gsd.system.operating_system import cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.privacy.budget import Conversion

# OpenDP offers its measurements only with the feature "contrib".
enable_features("contrib")

# The least number of draws for a second thread; one draw takes about 10 µs.
CHUNK = 4096


class NoiseSource(Protocol):
    """A source of noise.

    Attributes:
        private: Whether results made with this noise may be called private.
    """

    private: bool

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add discrete Gaussian noise of a scale to counts."""

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """The positions of the k largest scores after adding Gumbel noise of a scale."""


class SecureNoise:
    """Noise from OpenDP's samplers, which draw from the operating system and take no seed."""

    private = True

    def __init__(self, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads!r}")
        self._threads = threads or cores()

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add discrete Gaussian noise, drawn on several threads."""
        # OpenDP's calls release the interpreter's lock.
        drawn = discrete_gaussian(scale)
        chunks = np.array_split(counts, max(1, min(self._threads, len(counts) // CHUNK)))
        with ThreadPoolExecutor(self._threads) as pool:
            noisy = list(pool.map(lambda chunk: np.array(drawn(chunk), dtype=np.int64), chunks))
        return np.concatenate(noisy)

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """The positions of the k largest scores after adding Gumbel noise."""
        return [int(place) for place in noisy_top_k(k, scale)(scores)]


class InsecureSeededNoise:
    """Noise from a seed, for tests and experiments. Results made with this noise are NOT private.

    Anyone who knows the seed can subtract the noise. Floating-point samples are rounded, so that
    their distribution is only close to that of the real mechanisms.
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add rounded Gaussian noise."""
        return counts + np.rint(scale * self._rng.standard_normal(len(counts))).astype(np.int64)

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """The positions of the k largest scores after adding Gumbel noise."""
        noisy = scores + scale * self._rng.gumbel(size=len(scores))
        return [int(place) for place in np.argsort(-noisy, kind="stable")[:k]]


@lru_cache(maxsize=64)
def discrete_gaussian(scale: float) -> Any:
    """OpenDP's discrete Gaussian on a vector of int64, L2 sensitivity as float64."""
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=64)
def noisy_top_k(k: int, scale: float) -> Any:
    """OpenDP's noisy top-k on a vector of int64 scores, with Gumbel noise for zCDP."""
    return make_noisy_top_k(
        vector_domain(atom_domain(T="i64")),
        linf_distance(T="i64"),
        zero_concentrated_divergence(),
        k=k,
        scale=scale,
    )


def gaussian_scale(squared_sensitivity: float, units: int, conversion: Conversion) -> float:
    """The least scale at which the discrete Gaussian costs no more than a budget.

    The variance is Δ²/2ρ. Where the budget has the conversion "gdp", ``ROUNDING`` is added to the
    variance, which the proof for noise on whole numbers needs (see ``conversions``). The cost is
    checked with OpenDP in both cases.

    Args:
        squared_sensitivity: The square of the L2 sensitivity, Δ².
        units: The budget, in units of 2^-52 of ρ.
        conversion: The conversion of the budget that is charged.
    """
    return _gaussian_scale(squared_sensitivity, _positive(units), conversion)


@lru_cache(maxsize=1024)
def _gaussian_scale(squared_sensitivity: float, rho: float, conversion: Conversion) -> float:
    """See ``gaussian_scale``; a run asks for the same scale again and again."""
    # The root is rounded up, so that the sensitivity is never understated.
    sensitivity = math.nextafter(math.sqrt(squared_sensitivity), math.inf)
    scale = sensitivity / math.sqrt(2 * rho)
    if conversion == "gdp":
        scale = math.nextafter(math.sqrt(scale**2 + ROUNDING), math.inf)
    return _least(scale, lambda each: discrete_gaussian(each).map(sensitivity), rho)


def selection_scale(units: int, k: int = 1, sensitivity: int = 1) -> float:
    """The least scale at which the noisy top-k on whole scores costs no more than a budget.

    Gumbel noise of scale 2Δ/ε is the exponential mechanism, which is ε²/8-zCDP. A selection with
    budget ρ thus has the scale Δ/√(2ρ); each of the k selections gets 1/k of the budget.

    Args:
        units: The budget, in units of 2^-52 of ρ.
        k: The number of groups that are selected.
        sensitivity: The most that any score can move, Δ.
    """
    rho = _positive(units)
    scale = sensitivity / math.sqrt(2 * rho / k)
    return _least(scale, lambda each: noisy_top_k(k, each).map(sensitivity), rho)


def _least(scale: float, cost: Any, rho: float) -> float:
    """Increase the scale by a few ulps until OpenDP's upper bound on the cost is at most rho."""
    for _ in range(64):
        if cost(scale) <= rho:
            return scale
        scale *= 1 + 2**-50
    raise BudgetError(f"no noise scale was found for rho = {rho:g}")


def _positive(units: int) -> float:
    if isinstance(units, bool) or not isinstance(units, int) or units <= 0:
        raise BudgetError(f"noise needs a budget of at least one unit, not {units!r}")
    return units_to_rho(units)
