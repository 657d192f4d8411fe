"""Budgets: (ε, δ) as a user states them, and the ρ of zCDP that is spent.

``Budget`` is the user's statement. ``RhoBudget`` is the amount of ρ that may be spent: a whole
number of units of 2^-52. Splitting and adding units is exact, in memory and in the ledger, so that
no rounding ever spends more than the total.

The conversion of ρ to (ε, δ) depends on the noise. The conversion "zcdp" gives the least ε that is
known to hold for all mechanisms that are together ρ-zCDP. Where all noise is Gaussian, the
distribution of the privacy loss is known, and the conversion "gdp" computes a smaller ε from it
(see ``conversions``).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from private_gsd.errors import BudgetError, did_you_mean
from private_gsd.privacy.conversions import gdp_delta, zcdp_delta
from private_gsd.schema.neighbours import Neighbours

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Conversion = Literal["zcdp", "paper", "gdp"]

# For each conversion, the function that gives the least δ of ρ and ε.
_LEAST_DELTA = {"zcdp": zcdp_delta, "gdp": gdp_delta}

UNITS_PER_RHO = 2**52
# The largest ρ of a budget.
MAX_RHO = 1000.0
# Error message for a budget above the maximum.
_BEYOND = f"over the bound of rho = {MAX_RHO:g}, beyond which nobody is protected"

# The name, in a charge, of discrete Gaussian noise with the scale of ``gaussian_scale``.
GAUSSIAN = "discrete gaussian"
# The mark, in a charge, of noise from a seed. No guarantee holds for such noise.
INSECURE = "INSECURE seeded noise"
# The names of noise that may be charged to a budget with the conversion "gdp".
GAUSSIANS = (GAUSSIAN, f"{GAUSSIAN} ({INSECURE})")


def epsilon_of(rho: float, delta: float, conversion: Conversion = "zcdp") -> float:
    """The ε that ρ-zCDP implies at δ.

    Args:
        rho: The zCDP parameter.
        delta: The δ at which ε is computed.
        conversion: "zcdp" for any mechanisms; "paper" for the simpler formula
            ρ + 2·√(ρ·ln(1/δ)), which gives a larger ε; "gdp" where all noise is Gaussian, which
            gives a smaller ε.
    """
    check_delta(delta)
    check_conversion(conversion)
    if not math.isfinite(rho) or rho < 0:
        raise BudgetError(f"rho must be a number of at least 0, not {rho!r}")
    paper = rho + 2 * math.sqrt(rho * -math.log(delta))
    if conversion == "paper" or rho == 0:
        return paper
    return _epsilon_of(rho, delta, conversion, paper)


def rho_of(epsilon: float, delta: float, conversion: Conversion = "zcdp") -> float:
    """The largest ρ that implies (ε, δ)-DP, rounded down."""
    check_epsilon(epsilon)
    check_delta(delta)
    check_conversion(conversion)
    log = -math.log(delta)
    paper = (epsilon / (math.sqrt(log + epsilon) + math.sqrt(log))) ** 2
    if conversion == "paper":
        rho, beyond = paper, paper > MAX_RHO
    else:
        least_delta = _LEAST_DELTA[conversion]
        rho, beyond = paper, least_delta(MAX_RHO, min(epsilon, 1e6)) <= delta
    if beyond:
        most = epsilon_of(MAX_RHO, delta, conversion)
        raise BudgetError(
            f"epsilon = {epsilon:g} at delta = {delta:g} is {_BEYOND}; the largest epsilon at "
            f"this delta is {math.floor(most):,}"
        )
    if conversion != "paper":
        # The ρ of the paper's formula is valid; search upwards for the largest valid ρ.
        low, high = paper, paper
        while high < MAX_RHO and least_delta(high, epsilon) <= delta:
            low, high = high, 2 * high
        rho = _rho_of(epsilon, delta, conversion, low, high)
    # The factor exceeds all rounding errors above, so that the result is never too large.
    return rho * (1 - 1e-12)


@lru_cache(maxsize=1024)
def _epsilon_of(rho: float, delta: float, conversion: Conversion, most: float) -> float:
    """See ``epsilon_of``; a run asks for the same budgets again and again."""
    least_delta = _LEAST_DELTA[conversion]
    return _boundary(lambda each: least_delta(rho, each) > delta, 0.0, most)[1]


@lru_cache(maxsize=1024)
def _rho_of(epsilon: float, delta: float, conversion: Conversion, low: float, high: float) -> float:
    """See ``rho_of``: the largest ρ between two that is valid."""
    least_delta = _LEAST_DELTA[conversion]
    return _boundary(lambda each: least_delta(each, epsilon) <= delta, low, high)[0]


def _boundary(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The two adjacent floats between which a monotone condition changes from true to false."""
    for _ in range(100):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high


@dataclass(frozen=True)
class Budget:
    """The privacy budget that a user states, before the data is known.

    >>> Budget(1, delta=1e-9, neighbours="add-remove")
    Budget(epsilon=1.0, delta=1e-09, neighbours='add-remove', conversion=None)
    >>> Budget(1).resolve(n_records=1000, conversion="zcdp").delta
    1e-06

    Attributes:
        epsilon: The ε of (ε, δ)-differential privacy.
        delta: The δ of (ε, δ)-differential privacy. By default 1 / N² of a table with N records,
            where that number is public.
        neighbours: The neighbouring relation: "replace-one" (one record is replaced; the number of
            records is public) or "add-remove" (one record is added or removed).
        conversion: The conversion from (ε, δ) to ρ. By default the mechanism's own.
    """

    epsilon: float
    delta: float | None = None
    neighbours: Neighbours = "replace-one"
    conversion: Conversion | None = None

    def __post_init__(self) -> None:
        # Stored as plain floats, so that equal budgets are equal as JSON.
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if self.delta is not None:
            object.__setattr__(self, "delta", check_delta(self.delta))
        check_neighbours(self.neighbours)
        if self.conversion is not None:
            check_conversion(self.conversion)

    def resolve(self, *, n_records: int | None, conversion: Conversion) -> RhoBudget:
        """The ρ to be spent.

        Args:
            n_records: The number of records, from which the default δ follows. Used
                only where the number is public and no δ was given.
            conversion: The conversion to use if the budget has none.

        Raises:
            BudgetError: No δ was given, and no default follows from public knowledge.
        """
        delta = self.delta
        if delta is None:
            if self.neighbours != "replace-one":
                raise BudgetError(
                    "give a delta: by default it is 1 / N², and under add-remove neighbours the "
                    "number of records, N, is private"
                )
            if n_records is None:
                raise BudgetError(
                    "give a delta: by default it is 1 / N², and the number of records, N, is not "
                    "known"
                )
            delta = default_delta(n_records)
        return RhoBudget.from_epsilon(self.epsilon, delta, self.conversion or conversion)

    def to_dict(self) -> dict[str, Any]:
        """The budget for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Budget:
        """The budget that ``to_dict`` wrote."""
        if not isinstance(saved, Mapping):
            raise BudgetError(f"a budget must be a mapping with an epsilon, not {saved!r:.80}")
        known = [field.name for field in fields(cls)]
        for key in saved:
            if key not in known:
                hint = did_you_mean(str(key), known)
                raise BudgetError(f"a budget has no {key!r}{hint}; it has {', '.join(known)}")
        if "epsilon" not in saved:
            raise BudgetError("a budget needs an epsilon")
        return cls(**saved)


@dataclass(frozen=True)
class RhoBudget:
    """The amount of ρ that may be spent, in exact units, and the (ε, δ) that it converts to.

    >>> budget = RhoBudget.from_epsilon(1.0, delta=1e-9)
    >>> round(budget.rho, 5), round(budget.epsilon, 9)
    (0.01497, 1.0)
    >>> RhoBudget.from_epsilon(1.0, delta=1e-9, conversion="paper").rho < budget.rho
    True
    >>> round(RhoBudget.from_epsilon(1.0, delta=1e-9, conversion="gdp").rho, 5)
    0.01656

    Attributes:
        units: ρ, in units of 2^-52.
        delta: The δ at which ρ is converted to ε.
        conversion: The conversion from ρ to ε.
    """

    units: int
    delta: float
    conversion: Conversion = "zcdp"

    def __post_init__(self) -> None:
        if isinstance(self.units, bool) or not isinstance(self.units, int) or self.units <= 0:
            raise BudgetError("the budget is empty: it is less than one unit of rho, 2^-52")
        if self.units > MAX_RHO * UNITS_PER_RHO:
            raise BudgetError(f"rho = {self.rho:g} is {_BEYOND}")
        check_delta(self.delta)
        check_conversion(self.conversion)

    @classmethod
    def from_epsilon(
        cls, epsilon: float, delta: float, conversion: Conversion = "zcdp"
    ) -> RhoBudget:
        """The budget of (ε, δ)-differential privacy."""
        return cls.from_rho(rho_of(epsilon, delta, conversion), delta, conversion)

    @classmethod
    def from_rho(cls, rho: float, delta: float, conversion: Conversion = "zcdp") -> RhoBudget:
        """The budget of ρ-zCDP; δ is needed only to state it as (ε, δ)."""
        if isinstance(rho, bool) or not isinstance(rho, int | float) or not math.isfinite(rho):
            raise BudgetError(f"rho must be a number, not {rho!r}")
        return cls(math.floor(rho * UNITS_PER_RHO), delta, conversion)

    @property
    def rho(self) -> float:
        """The zCDP parameter ρ."""
        return units_to_rho(self.units)

    @property
    def epsilon(self) -> float:
        """The ε that ρ converts to at δ."""
        return epsilon_of(self.rho, self.delta, self.conversion)

    def check_mechanism(self, mechanism: str) -> None:
        """Refuse a charge for noise for which the conversion does not hold."""
        if self.conversion == "gdp" and mechanism not in GAUSSIANS:
            raise BudgetError(
                "the conversion 'gdp' of the budget holds for Gaussian noise alone, and "
                f"says nothing of {mechanism!r:.80}; use the mechanism one-shot or layered, "
                "or a budget with the conversion 'zcdp'"
            )

    def split(self, weights: Sequence[float]) -> list[int]:
        """Units for each part, in proportion to its weight; their sum never exceeds the budget."""
        if not weights or not all(math.isfinite(w) and w > 0 for w in weights):
            raise BudgetError(f"weights must be positive numbers, not {list(weights)!r:.200}")
        number = Counter(weights)  # of many groups most weigh the same
        exact = {weight: Fraction(weight) for weight in number}
        total = sum(exact[weight] * times for weight, times in number.items())
        part = {weight: math.floor(self.units * exact[weight] / total) for weight in number}
        parts = [part[weight] for weight in weights]
        if min(parts) <= 0:
            raise BudgetError(f"the budget is too small to be split in {len(parts):,} parts")
        return parts


def units_to_rho(units: int) -> float:
    """The ρ of a number of units; exact up to ρ = 2, rounded above."""
    return units / UNITS_PER_RHO


def default_delta(n_records: int) -> float:
    """The default δ for N records, as in the paper: 1/N²."""
    if n_records < 2:
        raise BudgetError(f"a table of {n_records} records has no sensible delta; give one")
    return 1.0 / n_records**2


def check_epsilon(epsilon: object) -> float:
    """ε as a float; anything but a positive finite number is refused."""
    number = _number(epsilon, "epsilon")
    if not math.isfinite(number) or number <= 0:
        raise BudgetError(f"epsilon must be more than 0 and finite, not {epsilon!r:.80}")
    if number < 1e-9:
        raise BudgetError(f"epsilon must be at least {1e-9:g}, not {epsilon!r}")
    return number


def check_delta(delta: object) -> float:
    """δ as a float; anything but a number between 0 and 1 is refused."""
    number = _number(delta, "delta")
    if not 1e-300 <= number <= 0.9:
        raise BudgetError(
            f"delta must be more than 0 and less than 1 (from 1e-300 to 0.9), not {delta!r:.80}"
        )
    return number


def check_neighbours(neighbours: object) -> None:
    """Refuse an unknown neighbouring relation."""
    _check_name("neighbours", neighbours, get_args(Neighbours))


def check_conversion(conversion: object) -> None:
    """Refuse an unknown conversion."""
    _check_name("conversion", conversion, get_args(Conversion))


def _check_name(what: str, name: object, known: Sequence[str]) -> None:
    if not isinstance(name, str) or name not in known:
        words = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        hint = did_you_mean(str(name), known)
        raise BudgetError(f"{what} must be {words}, not {name!r:.80}{hint}")


def _number(value: object, what: str) -> float:
    """A number of any type, NumPy's types included, as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BudgetError(f"{what} must be a number, not {value!r:.80}")
    try:
        return float(value)
    except OverflowError:
        return math.inf
