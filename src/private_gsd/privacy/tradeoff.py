"""Trade-off: how well any test can tell two neighbouring datasets apart, by what is promised.

Somebody knows a table but for one row, and tests one value of that row against another (or whether
the row is in, where rows are added and removed). A test that raises a false alarm with probability
a says rightly that the first value is in with a probability that is called its power. Where all
that is released is (ε, δ)-differentially private, no test has a power above

    e^ε a + δ    and    1 - e^-ε (1 - δ - a):

the first is the promise for the event "the test says so", the second that for "the test does not
say so", with the two datasets in the other order. Both hold, since of two neighbours each is the
other's. They hold for every ε at its own δ, so that the least over any list of ε is a bound too;
more of them make it smaller, never wrong.
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

# How many ε are tried, and at which δ the last of them stands: what is below it is not looked for.
STEPS = 800
LEAST_DELTA = 1e-12
# More than all rounding does to a probability.
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
        conversion: "gdp" where all noise is Gaussian; else the bound for any ρ-zCDP is given.
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
        # A test that looks at nothing has the power of its false alarms.
        return min(max(least + ROUNDED, alarm), 1.0)

    return [power(alarm) for alarm in false_alarms]


@lru_cache(maxsize=16)
def _epsilon_deltas(rho: float, conversion: Conversion) -> list[tuple[float, float]]:
    """Many ε, each with its δ; cached, since a record states it anew whenever it is read."""
    least_delta = gdp_delta if conversion == "gdp" else zcdp_delta
    last = epsilon_of(rho, LEAST_DELTA, conversion)
    epsilons = [last * step / STEPS for step in range(STEPS + 1)]
    return [(epsilon, least_delta(rho, epsilon)) for epsilon in epsilons]
