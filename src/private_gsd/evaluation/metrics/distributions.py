"""Distributions: each column by itself, real and synthetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.metrics.column_bins import cells_of
from private_gsd.schema import Numeric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import TableSample
    from private_gsd.schema import Column, Schema

    Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnComparison:
    """One column of the real and the synthetic table.

    Attributes:
        name: The name of the column.
        kind: The kind of the column.
        labels: The label of each cell of the column: values, or bins, then spikes; null is last.
        real: The share of the real rows in each cell.
        synthetic: The share of the synthetic rows in each cell.
        spikes: The place of each spike, a number that many rows have, among the bins.
        distance: The total variation distance between these shares, from 0 to 1.
        ks: The largest difference of the two cumulative shares of a numeric column
            (Kolmogorov-Smirnov), without nulls; None if a table has nulls only.
        nulls: The share of nulls among all rows, real and synthetic.
        means: The means of a numeric column without nulls, real and synthetic, as encoded: a date
            counts days since 1970, a datetime its units; None if a table has nulls only.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    real: Values
    synthetic: Values
    spikes: tuple[float, ...]
    distance: float
    ks: float | None
    nulls: tuple[float, float]
    means: tuple[float, float] | None


def compare_columns(
    schema: Schema, real: TableSample, synthetic: TableSample
) -> list[ColumnComparison]:
    """Compare all columns."""
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
        if ks is not None:
            means = mean_of(one), mean_of(two)
    return ColumnComparison(
        column.name,
        column.kind,
        cells.labels,
        *shares,
        cells.spike_places,
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


def mean_of(values: Values) -> float:
    """The mean of one or more values, however large they are; exact if all are equal."""
    if values.min() == values.max():
        return float(values[0])
    scale = scale_of(values)
    return float((values / scale).mean() * scale)


def scale_of(values: Values) -> float:
    """A power of two near the largest value. Divided by it, values can be added and squared."""
    return float(np.ldexp(1.0, int(np.frexp(np.abs(values).max())[1]) - 1)) or 1.0
