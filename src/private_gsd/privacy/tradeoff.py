"""Trade-off: a bound on how well any test can tell two neighbouring datasets apart.

An adversary knows all rows of a table but one, and tests one value of that row against another (or,
under add-remove neighbours, whether the row is present). The false alarm probability a of a test is
the probability that it reports the first value where the second is true; its power is the
probability that it reports the first value where the first is true. If a release is
(ε, δ)-differentially private, no test has a power above

    e^ε a + δ    and    1 - e^-ε (1 - δ - a):

the first follows from the definition for the event "the test reports the first value", the second
from the definition for the opposite event with the two datasets exchanged. Both hold for every ε
and its δ, so that the least bound over any list of ε is a bound, too. A longer list makes the bound
smaller, never wrong.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from private_gsd.privacy.budget import MAX_RHO, epsilon_of
from private_gsd.privacy.conversions import gdp_delta, zcdp_delta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.privacy.budget import Conversion

# The number of ε that are tried, and the δ of the largest of them.
STEPS = 800
LEAST_DELTA = 1e-12
# A bound on the rounding error of a probability.
ROUNDED = 1e-12


def largest_powers(
    rho: float, false_alarms: Sequence[float], conversion: Conversion = "zcdp"
) -> list[float]:
    """For each probability of a false alarm, the power that no test exceeds.

    >>> [round(power, 4) for power in largest_powers(0.0165, [0.01, 0.05], "gdp")]
    [0.016, 0.0717]

    Args:
        rho: The total of ρ.
        false_alarms: Probabilities of false alarms.
        conversion: "gdp" where all noise is Gaussian. With any other conversion, the result holds
            for all mechanisms that are ρ-zCDP.
    """
    if rho > MAX_RHO:
        return [1.0 for _ in false_alarms]
    pairs = _epsilon_deltas(rho, "gdp" if conversion == "gdp" else "zcdp")

    def power(alarm: float) -> float:
        least = min(
            min(
                math.exp(min(epsilon, 700.0)) * alarm + delta,
                1 - math.exp(-epsilon) * (1 - delta - alarm),
            )
            for epsilon, delta in pairs
        )
        # A test that ignores the release has a power equal to its false alarm probability.
        return min(max(least + ROUNDED, alarm), 1.0)

    return [power(alarm) for alarm in false_alarms]


@lru_cache(maxsize=16)
def _epsilon_deltas(rho: float, conversion: Conversion) -> list[tuple[float, float]]:
    """A list of ε, each with its δ; cached, since every reading of a record needs it."""
    least_delta = gdp_delta if conversion == "gdp" else zcdp_delta
    last = epsilon_of(rho, LEAST_DELTA, conversion)
    epsilons = [last * step / STEPS for step in range(STEPS + 1)]
    return [(epsilon, least_delta(rho, epsilon)) for epsilon in epsilons]
