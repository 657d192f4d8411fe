"""Two sections of the evaluation report: the statistics of columns, and those of groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.evaluation.metrics.numeric_pairs import COMMON
from private_gsd.evaluation.metrics.summary_statistics import GROUP_ROWS, GROUPS
from private_gsd.evaluation.report.page import folded, joined, paragraph, wide_table
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from private_gsd.evaluation.metrics.numeric_pairs import ComparedStatistic
    from private_gsd.evaluation.metrics.summary_statistics import (
        ColumnStatistics,
        GroupStatistics,
    )
    from private_gsd.evaluation.result import Evaluation

# With more numeric columns, the tables of each column are folded.
COLUMNS = 12
# Longer lists of shares are folded.
SHARES = 8
# Groups that are listed, and further ones that are listed in a folded table.
FIRST_GROUPS, MORE_GROUPS = 15, 500


def columns(found: Evaluation) -> Markup:
    """The statistics of each numeric column."""
    statistics = found.statistics
    if not statistics.columns:
        return paragraph("The schema has no numbers and no dates.")
    errors = statistics.errors
    parts = [
        paragraph(
            "Nulls are left out of means, standard deviations and percentiles. A relative "
            "difference is one in percent of the real number; it is given for numbers that are "
            "mostly on one side of zero. A standardised difference is one in standard deviations "
            "of the real column. Differences of shares are in percentage points."
        ),
        _overall("columns", errors.relative, errors.standardised),
    ]
    tables = [_column(each) for each in statistics.columns]
    if len(tables) > COLUMNS:
        tables = [
            folded(f"{column.name}, {column.kind}", table)
            for column, table in zip(statistics.columns, tables, strict=True)
        ]
    return joined([*parts, *tables])


def groups(found: Evaluation) -> Markup:
    """The means and medians of groups, those with the largest differences first."""
    statistics = found.statistics
    if not statistics.groups:
        return paragraph(
            f"There are no groups: no discrete column with at most {GROUPS} values, no numeric "
            f"column, or no group of {GROUP_ROWS} rows."
        )
    errors = statistics.errors
    text = (
        "The mean and the median of each numeric column over the rows with one value of a discrete "
        f"column, for columns with at most {GROUPS} values and groups of at least {GROUP_ROWS} "
        "real rows. Standardised differences are in standard deviations of the whole real column. "
        "Means of small groups differ at random, too."
    )
    if statistics.left_out:
        text += f" {statistics.left_out:,} further columns of the schema were left out."
    parts = [
        paragraph(text),
        _overall("groups", errors.group_relative, errors.group_standardised),
    ]
    if statistics.missing:
        parts.append(
            paragraph(f"The synthetic table has no rows in {statistics.missing:,} of the groups.")
        )
    first = statistics.groups[:FIRST_GROUPS]
    more = statistics.groups[FIRST_GROUPS:][:MORE_GROUPS]
    number = f"{len(statistics.groups):,} groups"
    parts.append(_group_table(f"{len(first):,} of {number}, the largest differences first", first))
    if more:
        table = _group_table(f"{len(more):,} of {number}, those that follow", more)
        parts.append(folded(f"{len(more):,} further groups in a table", table))
    return joined(parts)


def _overall(what: str, relative: float | None, standardised: float | None) -> Markup:
    """The mean errors of a section."""
    known = []
    if relative is not None:
        known.append(f"{relative:.2%} (mean relative error)")
    if standardised is not None:
        known.append(f"{standardised:.3f} standard deviations (mean standardised error)")
    if not known:
        return Markup("")
    words = f"The means of {what} differ by {' and by '.join(known)}."
    return Markup(f"<p><strong>{escape(words)}</strong></p>")


def _column(column: ColumnStatistics) -> Markup:
    """The tables of one column."""
    shares = [
        each._replace(name=f"share of {name}")
        for name, each in (("nulls", column.nulls), ("zeros", column.zeros))
        if each is not None
    ]
    headers = ("statistic", "real", "synthetic", "difference", "relative", "standardised")
    rows = [
        (
            each.name,
            *each.texts,
            _signed(each.relative, ".1%"),
            _signed(each.standardised, ".3f"),
        )
        for each in (*column.numbers, *shares)
    ]
    parts = [wide_table(f"{column.name}, {column.kind}", headers, rows)]
    for what, found in (
        (f"{column.name}: values with at least {COMMON:.0%} of the rows", column.values),
        (f"{column.name}: weekdays", _seen(column.weekdays)),
        (f"{column.name}: months", _seen(column.months)),
    ):
        if found:
            parts.append(_share_table(what, found))
    return Markup(f'<div class="beside">{joined(parts)}</div>')


def _seen(shares: Iterable[ComparedStatistic]) -> list[ComparedStatistic]:
    """The shares that are not 0 in both tables."""
    return [each for each in shares if each.real or each.synthetic]


def _share_table(caption: str, shares: Sequence[ComparedStatistic]) -> Markup:
    table = wide_table(
        caption,
        ("value", "real", "synthetic", "difference"),
        [(each.name, *each.texts) for each in shares],
    )
    return table if len(shares) <= SHARES else folded(f"{caption} ({len(shares)})", table)


def _group_table(caption: str, found: Iterable[GroupStatistics]) -> Markup:
    headers = (
        *("column", "group", "rows, real", "rows, synthetic", "mean, real", "mean, synthetic"),
        *("relative", "standardised", "median, real", "median, synthetic"),
    )
    rows = [
        (
            group.column,
            f"{group.by} = {group.value}",
            *(f"{number:,}" for number in group.rows),
            *group.mean.texts[:2],
            _signed(group.mean.relative, ".1%"),
            _signed(group.mean.standardised, ".3f"),
            *group.median.texts[:2],
        )
        for group in found
    ]
    return wide_table(caption, headers, rows, words=(1,))


def _signed(difference: float | None, form: str) -> str:
    """A difference with its sign; nothing if there is none."""
    if difference is None:
        return ""
    text = f"{difference:+{form}}"
    return text if text.strip("+-0.%") else "0"
