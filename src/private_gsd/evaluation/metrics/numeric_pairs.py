"""Numeric pairs: a numeric column of the real and of the synthetic table, and single statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.evaluation.metrics.column_bins import common_values, value_words
from private_gsd.evaluation.metrics.distributions import mean_of, scale_of
from private_gsd.evaluation.metrics.number_formats import format_of
from private_gsd.schema import Date, Datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.metrics.number_formats import NumberFormat
    from private_gsd.schema import Column

    Values = NDArray[np.float64]

# A value is common if it has at least this share of the rows of a table.
COMMON = 0.02


class ComparedStatistic(NamedTuple):
    """One statistic of both tables.

    Attributes:
        name: The name of the statistic, or the value that has this share.
        real: The statistic of the real rows, as encoded; None if it is not defined.
        synthetic: The statistic of the synthetic rows; None if it is not defined.
        difference: The synthetic statistic minus the real one; None if either is not defined.
        relative: The difference divided by the size of the real statistic, where that makes sense.
        standardised: The difference of means or percentiles in real standard deviations of the
            column; None if that is 0.
        texts: The real statistic, the synthetic one and the difference, as texts.
    """

    name: str
    real: float | None
    synthetic: float | None
    difference: float | None
    relative: float | None
    standardised: float | None
    texts: tuple[str, str, str]


@dataclass(frozen=True, eq=False)
class NumericPair:
    """A numeric column of both tables, with what its statistics are compared by.

    Attributes:
        column: The column.
        values: The values of the column, real and synthetic; NaN is null.
        present: The values that are not null, real and synthetic.
        common: The values that are common in either table.
        spread: The standard deviation of the real values; None if it is not defined.
        ratios: Whether relative differences of means make sense.
        format: How numbers are rounded and printed.
    """

    column: Column
    values: tuple[Values, Values]
    present: tuple[Values, Values]
    common: Values
    spread: float | None
    ratios: bool
    format: NumberFormat

    @classmethod
    def of(cls, column: Column, real: Values, synthetic: Values) -> NumericPair:
        """A column of both tables."""
        values = real + 0.0, synthetic + 0.0  # 0.0 for -0.0
        present = values[0][~np.isnan(real)], values[1][~np.isnan(synthetic)]
        spreads = [standard_deviation(each) for each in present]
        return cls(
            column,
            values,
            present,
            np.union1d(*(common_values(each, COMMON) for each in values)),
            spreads[0],
            not isinstance(column, Date | Datetime) and one_sided(present[0]),
            format_of(column, spreads[0] or spreads[1]),
        )

    def place(self, name: str, real: float | None, synthetic: float | None) -> ComparedStatistic:
        """A mean or a percentile of both tables."""
        difference = _difference(real, synthetic)
        return ComparedStatistic(
            name,
            real,
            synthetic,
            difference,
            _divided(difference, real) if self.ratios else None,
            _divided(difference, self.spread),
            (
                _text(self._words, real),
                _text(self._words, synthetic),
                _text(self.format.difference, difference),
            ),
        )

    def _words(self, value: float) -> str:
        """A mean or a percentile as text; a common value has all of its digits."""
        if self.format.rounded(value) != value and (self.common == value).any():
            return value_words(self.column, value)
        return self.format.place(value)

    def width(self, name: str, real: float | None, synthetic: float | None) -> ComparedStatistic:
        """A standard deviation of both tables."""
        difference = _difference(real, synthetic)
        return ComparedStatistic(
            name,
            real,
            synthetic,
            difference,
            _divided(difference, real),
            None,
            (
                _text(self.format.spread, real),
                _text(self.format.spread, synthetic),
                _text(self.format.difference, difference),
            ),
        )

    def quantiles(self, values: Values, shares: Sequence[float]) -> list[float | None]:
        """Quantiles with sensible digits; a common value is not rounded."""
        if not len(values):
            return [None] * len(shares)
        return [
            each if (self.common == each).any() else self.format.rounded(each)
            for each in np.quantile(values, shares).tolist()
        ]


def mean(values: Values) -> float | None:
    """The mean of values; None if there is none."""
    return mean_of(values) if len(values) else None


def standard_deviation(values: Values) -> float | None:
    """The standard deviation of a sample (over n - 1); None if there are fewer than two values."""
    if len(values) < 2:
        return None
    if values.min() == values.max():
        return 0.0
    scale = scale_of(values)
    return float((values / scale).std(ddof=1) * scale)


def one_sided(values: Values) -> bool:
    """Whether most of the sum of sizes is on one side of 0, so that a mean is not about 0."""
    if not len(values):
        return False
    sizes = values / scale_of(values)
    return bool(2 * abs(sizes.mean()) >= np.abs(sizes).mean() > 0)


def share(name: str, real: float, synthetic: float) -> ComparedStatistic:
    """A share of both tables."""
    difference = synthetic - real
    texts = f"{real:.2%}", f"{synthetic:.2%}", f"{100 * difference:+.2f}"
    if abs(difference) < 0.5e-4:
        texts = (*texts[:2], "0")
    return ComparedStatistic(name, real, synthetic, difference, None, None, texts)


def _difference(real: float | None, synthetic: float | None) -> float | None:
    return None if real is None or synthetic is None else synthetic - real


def _divided(difference: float | None, unit: float | None) -> float | None:
    """A difference in units; None if that is not a finite number."""
    if difference is None or not unit:
        return None
    with np.errstate(over="ignore"):
        found = float(np.float64(difference) / abs(unit))
    return found if np.isfinite(found) else None


def _text(form: Callable[[float], str], value: float | None) -> str:
    return "" if value is None else form(value)
