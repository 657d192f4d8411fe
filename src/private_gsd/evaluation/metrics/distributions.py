"""Distributions: each column by itself, real beside synthetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.metrics.column_bins import cells_of, words_of
from private_gsd.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.rows import Rows
    from private_gsd.schema import Column, Schema

    Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnComparison:
    """One column of two tables.

    Attributes:
        name: The column.
        kind: Its kind.
        labels: The cells it was cut into, in words.
        real: The share of the real rows in each.
        synthetic: The share of the synthetic rows in each.
        distance: The total variation distance between the two, from 0 to 1.
        ks: Of a numeric column, the largest difference of the two cumulative shares
            (Kolmogorov-Smirnov), nulls left out; None where a table has nothing but nulls.
        nulls: The share of nulls, real and synthetic, among all rows.
        means: Of a numeric column, the means in words, real and synthetic.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    real: Values
    synthetic: Values
    distance: float
    ks: float | None
    nulls: tuple[float, float]
    means: tuple[str, str] | None


def compare_columns(schema: Schema, real: Rows, synthetic: Rows) -> list[ColumnComparison]:
    """Compare every column."""
    return [
        _compare(
            column,
            real.sample[:, place],
            synthetic.sample[:, place],
            (
                float(real.nulls[place] / real.total),
                float(synthetic.nulls[place] / synthetic.total),
            ),
        )
        for place, column in enumerate(schema)
    ]


def _compare(
    column: Column, real: Values, synthetic: Values, nulls: tuple[float, float]
) -> ColumnComparison:
    cells = cells_of(column, [real, synthetic])
    shares = cells.shares(real), cells.shares(synthetic)
    ks = means = None
    if isinstance(column, Numeric):
        one, two = real[~np.isnan(real)], synthetic[~np.isnan(synthetic)]
        ks = kolmogorov_smirnov(one, two)
        means = _mean(column, one), _mean(column, two)
    return ColumnComparison(
        column.name,
        column.kind,
        cells.labels,
        *shares,
        total_variation(*shares),
        ks,
        nulls,
        means,
    )


def total_variation(one: Values, two: Values) -> float:
    """Half of the sum of absolute differences between two vectors of shares."""
    return float(np.abs(one - two).sum() / 2)


def kolmogorov_smirnov(one: Values, two: Values) -> float | None:
    """The largest difference between the cumulative shares of two samples."""
    if not len(one) or not len(two):
        return None
    points = np.concatenate([one, two])
    below = [
        np.searchsorted(np.sort(values), points, side="right") / len(values)
        for values in (one, two)
    ]
    return float(np.abs(below[0] - below[1]).max())


def _mean(column: Column, values: Values) -> str:
    if not len(values):
        return "none"
    mean = float(values.mean())
    return f"{mean:,.2f}" if column.kind == "integer" else words_of(column, mean)
