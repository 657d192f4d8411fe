"""Summary statistics: the numbers that people ask a table for, real and synthetic.

Each numeric column has its mean, standard deviation, percentiles and the shares of its common
values; dates also have the shares of weekdays and months. Every numeric column has its mean and its
median in each group of rows with the same value of a small discrete column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.evaluation.metrics.column_bins import value_words
from private_gsd.evaluation.metrics.numeric_pairs import (
    NumericPair,
    mean,
    share,
    standard_deviation,
)
from private_gsd.schema import Date, Datetime, Discrete, Numeric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.metrics.numeric_pairs import ComparedStatistic
    from private_gsd.evaluation.table_sample import TableSample
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]

PERCENTILES = {
    "5th percentile": 0.05,
    "25th percentile": 0.25,
    "median": 0.5,
    "75th percentile": 0.75,
    "95th percentile": 0.95,
}
# Rows are grouped by discrete columns with at most this number of values.
GROUPS = 12
# Groups with fewer real rows are left out: their means differ at random.
GROUP_ROWS = 10
# Groups are made of this number of columns, the first ones of the schema.
COLUMNS = 60
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# 1970-01-01 was a Thursday.
FIRST_WEEKDAY = 3


@dataclass(frozen=True, eq=False)
class ColumnStatistics:
    """The statistics of one numeric column.

    Attributes:
        name: The name of the column.
        kind: The kind of the column.
        numbers: The mean, the standard deviation and the percentiles, without nulls.
        nulls: The share of nulls among all rows; None if the column has no nulls by its schema.
        zeros: The share of zeros among the rows; None if 0 is not a number of the column.
        values: The shares of common values among the rows, the largest real share first.
        weekdays: The shares of weekdays among the dates; empty for other columns.
        months: The shares of months among the dates; empty for other columns.
    """

    name: str
    kind: str
    numbers: tuple[ComparedStatistic, ...]
    nulls: ComparedStatistic | None
    zeros: ComparedStatistic | None
    values: tuple[ComparedStatistic, ...]
    weekdays: tuple[ComparedStatistic, ...]
    months: tuple[ComparedStatistic, ...]


class GroupStatistics(NamedTuple):
    """The mean and the median of a numeric column, over the rows with one value of another column.

    Attributes:
        column: The numeric column.
        by: The discrete column.
        value: The value of the discrete column, as text.
        rows: The numbers of rows that are not null, real and synthetic.
        mean: The mean.
        median: The median.
    """

    column: str
    by: str
    value: str
    rows: tuple[int, int]
    mean: ComparedStatistic
    median: ComparedStatistic

    @property
    def name(self) -> str:
        """The column and the group, as text."""
        return f"{self.column}, {self.by} = {self.value}"


class MeanErrors(NamedTuple):
    """How far the means of both tables are apart, on average; None if there is nothing to compare.

    Attributes:
        relative: The mean absolute relative difference of the means of columns.
        standardised: The same in standard deviations of the columns.
        group_relative: The mean absolute relative difference of the means of groups.
        group_standardised: The same in standard deviations of the columns.
    """

    relative: float | None
    standardised: float | None
    group_relative: float | None
    group_standardised: float | None


@dataclass(frozen=True, eq=False)
class SummaryStatistics:
    """The summary statistics of both tables.

    Attributes:
        columns: The statistics of each numeric column.
        groups: The means and medians of groups, the largest difference of means first. Groups
            without synthetic rows come before all others.
        missing: The number of groups without synthetic rows.
        left_out: The number of columns that were not used for groups, since there are too many.
        errors: How far the means are apart.
    """

    columns: tuple[ColumnStatistics, ...]
    groups: tuple[GroupStatistics, ...]
    missing: int
    left_out: int
    errors: MeanErrors


def compare_statistics(
    schema: Schema, real: TableSample, synthetic: TableSample
) -> SummaryStatistics:
    """Compare the summary statistics of all numeric columns, and of groups of rows."""
    numeric = {
        place: NumericPair.of(column, real.sample[:, place], synthetic.sample[:, place])
        for place, column in enumerate(schema)
        if isinstance(column, Numeric)
    }
    nulls = (_shares(real.nulls, real.total), _shares(synthetic.nulls, synthetic.total))
    columns = tuple(
        _column_statistics(pair, (nulls[0][place], nulls[1][place]))
        for place, pair in numeric.items()
    )
    groups = [
        group
        for place, column in enumerate(schema.columns[:COLUMNS])
        if isinstance(column, Discrete) and len(column.values) <= GROUPS
        for group in _groups(
            column,
            (real.sample[:, place], synthetic.sample[:, place]),
            [pair for number, pair in numeric.items() if number < COLUMNS],
        )
    ]
    groups.sort(key=_size, reverse=True)
    means = [column.numbers[0] for column in columns]
    return SummaryStatistics(
        columns,
        tuple(groups),
        sum(group.rows[1] == 0 for group in groups),
        max(0, len(schema) - COLUMNS),
        MeanErrors(*_mean_errors(means), *_mean_errors([group.mean for group in groups])),
    )


def _column_statistics(pair: NumericPair, nulls: tuple[float, float]) -> ColumnStatistics:
    column = pair.column
    low, high = column.bounds
    temporal = isinstance(column, Date | Datetime)
    quantiles = [pair.quantiles(each, tuple(PERCENTILES.values())) for each in pair.present]
    numbers = [
        pair.place("mean", *(mean(each) for each in pair.present)),
        pair.width("standard deviation", *(standard_deviation(each) for each in pair.present)),
        *(pair.place(*each) for each in zip(PERCENTILES, *quantiles, strict=True)),
    ]
    shares = [
        share(value_words(column, value), *(_share(each == value) for each in pair.values))
        for value in pair.common.tolist()
    ]
    return ColumnStatistics(
        column.name,
        column.kind,
        tuple(numbers),
        share("null", *nulls) if column.nullable else None,
        share("zero", *(_share(each == 0) for each in pair.values))
        if low <= 0 <= high and not temporal
        else None,
        tuple(sorted(shares, key=lambda each: -(each.real or 0.0))),
        tuple(_calendar(pair, WEEKDAYS, "D", FIRST_WEEKDAY)),
        tuple(_calendar(pair, MONTHS, "M", 0)),
    )


def _calendar(
    pair: NumericPair, names: Sequence[str], unit: str, first: int
) -> Iterator[ComparedStatistic]:
    """The shares of weekdays or months; none if a table has no dates, or coarser ones.

    Args:
        pair: The column.
        names: The names of weekdays or months.
        unit: The NumPy unit that is counted: days or months.
        first: The place of the day or the month of 1970-01-01 among the names.
    """
    column = pair.column
    if not isinstance(column, Date | Datetime) or column.unit in ("Y", "M")[: 1 + (unit == "D")]:
        return
    if not all(len(values) for values in pair.present):
        return
    counts = []
    for values in pair.present:
        moments = values.astype(np.int64).astype(f"datetime64[{column.unit}]")
        places = (moments.astype(f"datetime64[{unit}]").astype(np.int64) + first) % len(names)
        counts.append(_shares(np.bincount(places, minlength=len(names)), len(values)))
    for each in zip(names, *counts, strict=True):
        yield share(*each)


def _groups(
    by: Discrete, codes: tuple[Values, Values], pairs: Iterable[NumericPair]
) -> Iterator[GroupStatistics]:
    """The means and medians of columns in each group with enough real rows."""
    labels = [str(value) for value in by.values]
    rows = [[each == code for each in codes] for code in range(len(labels))]
    if by.nullable:
        labels.append("null")
        rows.append([np.isnan(each) for each in codes])
    pairs = list(pairs)
    for label, (real, synthetic) in zip(labels, rows, strict=True):
        for pair in pairs:
            one, two = pair.values[0][real], pair.values[1][synthetic]
            one, two = one[~np.isnan(one)], two[~np.isnan(two)]
            if len(one) < GROUP_ROWS:
                continue
            medians = [pair.quantiles(each, [0.5])[0] for each in (one, two)]
            yield GroupStatistics(
                pair.column.name,
                by.name,
                label,
                (len(one), len(two)),
                pair.place("mean", mean(one), mean(two)),
                pair.place("median", *medians),
            )


def _shares(counts: NDArray[np.int64], total: int) -> list[float]:
    shares: list[float] = (counts / max(1, total)).tolist()
    return shares


def _share(chosen: NDArray[np.bool_]) -> float:
    return float(chosen.mean()) if len(chosen) else 0.0


def _size(group: GroupStatistics) -> float:
    """The size of a group's difference; infinite if there is no unit to measure it in."""
    found = group.mean.standardised
    if found is None:
        return 0.0 if group.mean.difference == 0 else np.inf
    return abs(found)


def _mean_errors(means: Sequence[ComparedStatistic]) -> Iterator[float | None]:
    """The mean absolute relative difference, and the mean absolute standardised difference."""
    for found in ([each.relative for each in means], [each.standardised for each in means]):
        sizes = [abs(each) for each in found if each is not None]
        yield float(np.mean(sizes)) if sizes else None
