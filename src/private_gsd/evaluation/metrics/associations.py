"""Associations: how strongly each pair of columns hangs together, real, synthetic, and apart.

Cramér's V for two discrete columns, the correlation ratio for a discrete and a numeric one, and
Spearman's rank correlation for two numeric ones. A column that is constant hangs together with
nothing: 0. Both tables are looked at with the same number of rows, for V and the correlation ratio
grow as rows get fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import require
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.evaluation.rows import Matrix, Rows
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]

ROWS = 10_000
COLUMNS = 60


class Pair(NamedTuple):
    """Two columns, and how strongly they hang together."""

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
        left_out: How many further columns were not looked at.
        rows: The number of rows looked at, of each table.
        real: The matrix of the real table.
        synthetic: That of the synthetic table.
        measures: For each pair, by which measure.
    """

    names: tuple[str, ...]
    left_out: int
    rows: int
    real: Values
    synthetic: Values
    measures: tuple[tuple[str, ...], ...]

    @property
    def difference(self) -> Values:
        """Synthetic less real."""
        return self.synthetic - self.real

    @property
    def mean_difference(self) -> float:
        """The mean absolute difference over all pairs; 0 where there is no pair."""
        return float(np.abs(self.difference[_above(len(self.names))]).mean()) if self.pairs else 0.0

    @property
    def pairs(self) -> list[Pair]:
        """Every pair, the largest difference first."""
        found = [
            Pair(
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
    schema: Schema,
    real: Rows,
    synthetic: Rows,
    *,
    seed: int = 0,
    progress: Callable[[], object] = lambda: None,
) -> Associations:
    """Measure all pairs of the first columns in both tables."""
    number = min(ROWS, len(real.sample), len(synthetic.sample))
    looked = Shape.of(schema, min(len(schema), COLUMNS))
    matrices = []
    for rows in (real, synthetic):
        matrices.append(association_matrix(looked, rows.take(number, seed)))
        progress()
    return Associations(
        schema.names[: looked.columns],
        len(schema) - looked.columns,
        number,
        matrices[0],
        matrices[1],
        looked.measures,
    )


class Shape(NamedTuple):
    """Which columns are discrete, and how many values each has, its null among them."""

    discrete: tuple[bool, ...]
    values: tuple[int, ...]

    @classmethod
    def of(cls, schema: Schema, columns: int) -> Shape:
        """The shape of the first columns of a schema."""
        each = schema.columns[:columns]
        return cls(
            tuple(isinstance(column, Discrete) for column in each),
            tuple(len(column.values) + 1 if isinstance(column, Discrete) else 0 for column in each),
        )

    @property
    def columns(self) -> int:
        """How many."""
        return len(self.discrete)

    @property
    def measures(self) -> tuple[tuple[str, ...], ...]:
        """By which measure each pair is looked at."""
        names = ("Spearman", "correlation ratio", "Cramér's V")
        return tuple(tuple(names[one + two] for two in self.discrete) for one in self.discrete)


def association_matrix(shape: Shape, matrix: Matrix) -> Values:
    """The measure of each pair of columns; 1 on the diagonal."""
    found = np.eye(shape.columns)
    columns = [np.ascontiguousarray(matrix[:, place]) for place in range(shape.columns)]
    codes = [
        np.where(np.isnan(values), size - 1, values).astype(np.int64) if size else None
        for values, size in zip(columns, shape.values, strict=True)
    ]
    for i, j in zip(*_above(shape.columns), strict=True):
        one, two = codes[i], codes[j]
        if one is not None and two is not None:
            value = cramers_v(one, shape.values[i], two, shape.values[j])
        elif one is not None:
            value = correlation_ratio(one, shape.values[i], columns[j])
        elif two is not None:
            value = correlation_ratio(two, shape.values[j], columns[i])
        else:
            value = spearman(columns[i], columns[j])
        found[i, j] = found[j, i] = value
    return found


def cramers_v(one: NDArray[np.int64], ones: int, two: NDArray[np.int64], twos: int) -> float:
    """Cramér's V of two columns of codes; null is a value like others."""
    rows, columns = np.bincount(one, minlength=ones), np.bincount(two, minlength=twos)
    least = min((rows > 0).sum(), (columns > 0).sum()) - 1
    if least < 1:
        return 0.0
    total = len(one)
    # Sums of squares over expected counts, for empty cells need not be looked at.
    cells, counts = np.unique(one * twos + two, return_counts=True)
    expected = rows[cells // twos] * (columns[cells % twos] / total)
    chi2 = float((counts.astype(np.float64) ** 2 / expected).sum() - total)
    return float(np.sqrt(max(0.0, chi2) / (total * least)))


def correlation_ratio(codes: NDArray[np.int64], sizes: int, values: Values) -> float:
    """The root of the share of a number's variance that lies between categories; nulls left out."""
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
    """The correlation of ranks of the rows in which neither is null."""
    stats = require("scipy.stats", what="Evaluation", extra="evaluation")
    there = ~(np.isnan(one) | np.isnan(two))
    one, two = one[there], two[there]
    if len(one) < 2 or one.min() == one.max() or two.min() == two.max():
        return 0.0
    return float(np.corrcoef(stats.rankdata(one), stats.rankdata(two))[0, 1])


def _above(number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places above the diagonal."""
    rows, columns = np.triu_indices(number, 1)
    return rows, columns
