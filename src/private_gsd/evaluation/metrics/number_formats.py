"""Number formats: how the statistics of a numeric column are rounded and printed.

The last digit of a statistic is worth at most a thousandth of the column's standard deviation. More
digits would be noise, and a rounded percentile is not the number of a single row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from private_gsd.schema import Date, Datetime, Real

if TYPE_CHECKING:
    from private_gsd.schema import Column

# The steps of a number are at most this part of the column's standard deviation.
FINENESS = 1000
# The digits of a number without a known standard deviation.
DIGITS = 10
# A number from here on, or with more decimals than this, is written with an exponent.
LONG, DECIMALS = 1e15, 9


class TimeUnit(NamedTuple):
    """A unit of time: its name, its NumPy name and its microseconds."""

    name: str
    numpy: str
    size: int


MINUTE = 60_000_000
UNITS = (
    TimeUnit("days", "D", 1440 * MINUTE),
    TimeUnit("hours", "h", 60 * MINUTE),
    TimeUnit("minutes", "m", MINUTE),
    TimeUnit("seconds", "s", 1_000_000),
    TimeUnit("milliseconds", "ms", 1_000),
    TimeUnit("microseconds", "us", 1),
)
CALENDAR = {"M": "months", "Y": "years"}


class NumberFormat(Protocol):
    """How the numbers of a column are rounded and printed."""

    def rounded(self, value: float) -> float:
        """The nearest number with sensible digits."""

    def place(self, value: float) -> str:
        """A mean or a percentile as text."""

    def spread(self, value: float) -> str:
        """A standard deviation as text."""

    def difference(self, value: float) -> str:
        """A difference of two numbers as text, with its sign."""


@dataclass(frozen=True)
class PlainFormat:
    """The format of a column of whole or real numbers.

    Attributes:
        digits: The number of decimals; negative to round to tens, hundreds and so on; None if
            numbers are not rounded.
        decimals: The number of decimals of the column's own values; None if there is no such
            number.
    """

    digits: int | None
    decimals: int | None

    def rounded(self, value: float) -> float:
        """The nearest number with sensible digits."""
        if self.digits is None:
            return value
        try:
            return round(value, self.digits) + 0.0  # never -0.0
        except OverflowError:  # the greatest float, rounded up
            return value

    def place(self, value: float) -> str:
        """A mean or a percentile as text; a value of the column has no more decimals than it."""
        given, value = value, self.rounded(value)
        if self.digits is None or abs(value) >= LONG or self.digits > DECIMALS:
            return f"{value:,.{DIGITS}g}"
        shown = max(0, self.digits)
        decimals = shown if self.decimals is None else min(shown, self.decimals)
        if math.isclose(round(given, decimals), given, rel_tol=1e-9, abs_tol=1e-12):
            shown = decimals
        return f"{value:,.{shown}f}"

    def spread(self, value: float) -> str:
        """A standard deviation as text."""
        return self.place(value)

    def difference(self, value: float) -> str:
        """A difference of two numbers as text, with its sign."""
        if self.rounded(value) == 0:
            return "0"
        return f"{'+' if value > 0 else '-'}{self.place(abs(value))}"


@dataclass(frozen=True)
class MomentFormat:
    """The format of a column of dates or moments.

    Attributes:
        column: The column.
        unit: The NumPy name of the unit in which moments are printed.
        step: The number of the column's units in this unit.
        lengths: The name of the unit in which lengths of time are printed.
        length: The number of the column's units in that unit.
    """

    column: Date | Datetime
    unit: str
    step: float
    lengths: str
    length: float

    def rounded(self, value: float) -> float:
        """The nearest moment with a sensible unit."""
        return float(np.rint(value / self.step) * self.step)

    def place(self, value: float) -> str:
        """A mean or a percentile as a date or a moment."""
        moment = np.array(int(self.rounded(value))).astype(f"datetime64[{self.column.unit}]")
        return str(moment.astype(f"datetime64[{self.unit}]")).replace("T", " ")

    def spread(self, value: float) -> str:
        """A standard deviation as a length of time."""
        return f"{value / self.length:,.1f} {self.lengths}"

    def difference(self, value: float) -> str:
        """A difference of two moments as a length of time, with its sign."""
        size = self.spread(abs(value))
        return "0" if size.startswith("0.0 ") else f"{'+' if value > 0 else '-'}{size}"


def format_of(column: Column, spread: float | None) -> NumberFormat:
    """The format of a column's numbers.

    Args:
        column: A numeric column.
        spread: The standard deviation of the column, as encoded; None if it is not known.
    """
    if isinstance(column, Date | Datetime):
        return _moment_format(column, spread or 0.0)
    decimals = column.decimals if isinstance(column, Real) else 0
    digits = None
    if spread:
        digits = -math.floor(math.log10(spread) - math.log10(FINENESS))
    return PlainFormat(digits, decimals)


def _moment_format(column: Date | Datetime, spread: float) -> MomentFormat:
    if column.unit in CALENDAR:
        return MomentFormat(column, column.unit, 1, CALENDAR[column.unit], 1)
    own = next(unit.size for unit in UNITS if unit.numpy == column.unit)
    lengths = [unit for unit in UNITS if unit.size >= own]
    # A moment is printed with its minutes: an hour alone would read like a number.
    finest = MINUTE if column.unit == "h" else own
    moments = [unit for unit in UNITS if unit.numpy != "h" and unit.size >= finest]
    moment = _small_enough(moments, spread * own / FINENESS)
    length = _small_enough(lengths, spread * own / 10)
    step = max(1.0, moment.size / own)
    return MomentFormat(column, moment.numpy, step, length.name, length.size / own)


def _small_enough(units: list[TimeUnit], limit: float) -> TimeUnit:
    """The largest unit of at most so many microseconds, or else the smallest unit."""
    return next((unit for unit in units if unit.size <= limit), units[-1])
