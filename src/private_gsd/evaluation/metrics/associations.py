"""Associations: how strongly each pair of columns is associated, in both tables.

The measures are Cramér's V for two discrete columns, the correlation ratio for a discrete and a
numeric column, and Spearman's rank correlation for two numeric columns. The association of a
constant column is 0. Both tables are compared on the same number of rows, since V and the
correlation ratio grow as the number of rows gets smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import require
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import Matrix, TableSample
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]

ROWS = 10_000
COLUMNS = 60


class AssociatedPair(NamedTuple):
    """The association of two columns in both tables."""

    one: str
    two: str
    measure: str
    real: float
    synthetic: float


@dataclass(frozen=True, eq=False)
class Associations:
    """All pairs of columns of two tables.

    Attributes:
        names: The columns.
        left_out: The number of further columns, which were not compared.
        rows: The number of rows of each table that were compared.
        real: The matrix of associations in the real table.
        synthetic: The matrix of associations in the synthetic table.
        measures: The measure of each pair.
    """

    names: tuple[str, ...]
    left_out: int
    rows: int
    real: Values
    synthetic: Values
    measures: tuple[tuple[str, ...], ...]

    @property
    def difference(self) -> Values:
        """The association in the synthetic table minus that in the real table."""
        return self.synthetic - self.real

    @property
    def mean_difference(self) -> float:
        """The mean absolute difference over all pairs; 0 if there is no pair."""
        return float(np.abs(self.difference[_above(len(self.names))]).mean()) if self.pairs else 0.0

    @property
    def pairs(self) -> list[AssociatedPair]:
        """All pairs, the largest difference first."""
        found = [
            AssociatedPair(
                self.names[i],
                self.names[j],
                self.measures[i][j],
                float(self.real[i, j]),
                float(self.synthetic[i, j]),
            )
            for i, j in zip(*_above(len(self.names)), strict=True)
        ]
        return sorted(found, key=lambda pair: -abs(pair.synthetic - pair.real))


def compare_associations(
    schema: Schema, real: TableSample, synthetic: TableSample, *, seed: int = 0
) -> Associations:
    """Measure the association of all pairs of the first columns in both tables."""
    number = min(ROWS, len(real.sample), len(synthetic.sample))
    columns = ColumnTypes.of(schema, min(len(schema), COLUMNS))
    return Associations(
        schema.names[: len(columns.discrete)],
        len(schema) - len(columns.discrete),
        number,
        association_matrix(columns, real.take(number, seed)),
        association_matrix(columns, synthetic.take(number, seed)),
        columns.measures,
    )


class ColumnTypes(NamedTuple):
    """The types of the columns that are compared.

    Attributes:
        discrete: Whether each column is discrete.
        values: The number of values of each discrete column, null included; 0 for a numeric column.
    """

    discrete: tuple[bool, ...]
    values: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, columns: int) -> ColumnTypes:
        """The types of the first columns of a schema."""
        each = schema.columns[:columns]
        return cls(
            tuple(isinstance(column, Discrete) for column in each),
            tuple(len(column.values) + 1 if isinstance(column, Discrete) else 0 for column in each),
        )

    @property
    def measures(self) -> tuple[tuple[str, ...], ...]:
        """The measure of each pair of columns."""
        names = ("Spearman", "correlation ratio", "Cramér's V")
        return tuple(tuple(names[one + two] for two in self.discrete) for one in self.discrete)


def association_matrix(types: ColumnTypes, matrix: Matrix) -> Values:
    """The association of each pair of columns; 1 on the diagonal."""
    number = len(types.discrete)
    found = np.eye(number)
    columns = [np.ascontiguousarray(matrix[:, place]) for place in range(number)]
    codes = [
        np.where(np.isnan(values), size - 1, values).astype(np.int64) if size else None
        for values, size in zip(columns, types.values, strict=True)
    ]
    for i, j in zip(*_above(number), strict=True):
        one, two = codes[i], codes[j]
        if one is not None and two is not None:
            value = cramers_v(one, types.values[i], two, types.values[j])
        elif one is not None:
            value = correlation_ratio(one, types.values[i], columns[j])
        elif two is not None:
            value = correlation_ratio(two, types.values[j], columns[i])
        else:
            value = spearman(columns[i], columns[j])
        found[i, j] = found[j, i] = value
    return found


def cramers_v(one: NDArray[np.int64], ones: int, two: NDArray[np.int64], twos: int) -> float:
    """Cramér's V of two columns of codes; null is a value like any other."""
    rows, columns = np.bincount(one, minlength=ones), np.bincount(two, minlength=twos)
    least = min((rows > 0).sum(), (columns > 0).sum()) - 1
    if least < 1:
        return 0.0
    total = len(one)
    # Sums of squares over expected counts: empty cells contribute nothing.
    cells, counts = np.unique(one * twos + two, return_counts=True)
    expected = rows[cells // twos] * (columns[cells % twos] / total)
    chi2 = float((counts.astype(np.float64) ** 2 / expected).sum() - total)
    return float(np.sqrt(max(0.0, chi2) / (total * least)))


def correlation_ratio(codes: NDArray[np.int64], sizes: int, values: Values) -> float:
    """The root of the share of a column's variance between categories; nulls are left out."""
    there = ~np.isnan(values)
    codes, values = codes[there], values[there]
    if len(values) < 2 or values.min() == values.max():
        return 0.0
    values = values - values.mean()
    counts = np.bincount(codes, minlength=sizes)
    sums = np.bincount(codes, weights=values, minlength=sizes)
    between = float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
    return float(np.sqrt(min(1.0, between / float((values**2).sum()))))


def spearman(one: Values, two: Values) -> float:
    """The correlation of the ranks, over the rows in which neither column is null."""
    stats = require("scipy.stats", what="Evaluation", extra="evaluation")
    there = ~(np.isnan(one) | np.isnan(two))
    one, two = one[there], two[there]
    if len(one) < 2 or one.min() == one.max() or two.min() == two.max():
        return 0.0
    return float(np.corrcoef(stats.rankdata(one), stats.rankdata(two))[0, 1])


def _above(number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices above the diagonal."""
    rows, columns = np.triu_indices(number, 1)
    return rows, columns
