"""Column bins: the cells into which a column is cut, to be counted, compared and drawn."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.schema import Date, Datetime, Discrete, Integer, Real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Column

BINS = 24
# A column of whole numbers or dates with at most this number of values has a bin for each value.
FEW = 40
# Values beyond these quantiles go into the first and the last bin. With long tails, one bin would
# otherwise hold nearly all values.
TAIL = 0.01


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of a column: the values of a discrete column, or bins of a numeric column.

    Attributes:
        labels: The label of each cell.
        cuts: The cut points of a numeric column: bins are [a, b), the outer ones are open; None for
            a discrete column.
        nullable: Whether the last cell is null.
    """

    labels: tuple[str, ...]
    cuts: NDArray[np.float64] | None
    nullable: bool

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value."""
        null = np.isnan(values)
        if self.cuts is None:
            codes = np.where(null, 0, values).astype(np.int64)
        else:
            codes = np.searchsorted(self.cuts, values, side="right").astype(np.int64)
        codes[null] = len(self.labels) - 1
        return codes

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the values in each cell."""
        counts = np.bincount(self.codes(values), minlength=len(self.labels))
        return counts / max(1, len(values))


def cells_of(column: Column, samples: Sequence[NDArray[np.float64]]) -> ColumnCells:
    """Cells to draw a column with: its values, or bins of equal width over most of its rows.

    Args:
        column: The column.
        samples: Encoded values of the column in one or more tables. The first table decides where
            the bins are.
    """
    if isinstance(column, Discrete):
        return _discrete(column)
    present = [values[~np.isnan(values)] for values in samples]
    present = [values for values in present if len(values)]
    if not present:
        return _numeric(column, np.empty(0))
    # By the first table: outliers of a synthetic table would make the bins too wide.
    low, high = np.quantile(present[0], [TAIL, 1 - TAIL]).tolist()
    if not isinstance(column, Real):
        least = float(min(values.min() for values in present))
        most = float(max(values.max() for values in present))
        if most - least < FEW:
            return _numeric(column, np.arange(least, most + 1)[1:])
        if low < high:
            step = max(1.0, np.ceil((high - low) / BINS))
            return _numeric(column, np.arange(np.floor(low), high + 1, step)[1:])
    if low == high:  # nearly all rows have one value: cells below, at and above it
        return _numeric(column, np.array([low, _after(column, low)]))
    return _numeric(column, np.unique(np.linspace(low, high, BINS + 1)[1:-1]))


def quantile_cells(column: Column, values: NDArray[np.float64], bins: int) -> ColumnCells:
    """Cells that each hold about the same number of the given values."""
    if isinstance(column, Discrete):
        return _discrete(column)
    present = values[~np.isnan(values)]
    if not len(present):
        return _numeric(column, np.empty(0))
    cuts = np.quantile(present, np.arange(1, bins) / bins, method="inverted_cdf")
    # A value of many rows has a cell of its own.
    heavy, often = np.unique(cuts, return_counts=True)
    beyond = [_after(column, float(value)) for value in heavy[often > 1]]
    return _numeric(column, np.unique(np.concatenate([cuts, beyond])))


def _after(column: Column, number: float) -> float:
    """The next number of a column."""
    return float(np.nextafter(number, np.inf)) if isinstance(column, Real) else number + 1


def words_of(column: Column, number: float) -> str:
    """An encoded number of a numeric column, as text."""
    if isinstance(column, Date | Datetime):
        moment = np.array(int(np.rint(number))).astype(f"datetime64[{column.unit}]")
        return str(moment).replace("T", " ")
    if isinstance(column, Integer):
        return f"{int(np.ceil(number)):,}"
    return f"{number:,.4g}" if abs(number) < 1e4 else f"{number:,.0f}"


def _discrete(column: Discrete) -> ColumnCells:
    labels = [str(value) for value in column.values] + ["null"] * column.nullable
    return ColumnCells(tuple(labels), None, column.nullable)


def _numeric(column: Column, cuts: NDArray[np.float64]) -> ColumnCells:
    if not len(cuts):
        labels = ["any"]
    else:
        ends = [words_of(column, float(cut)) for cut in cuts]
        grid = not isinstance(column, Real) and len(cuts) < FEW and (np.diff(cuts) == 1).all()
        if grid:  # a bin for each value
            labels = [words_of(column, float(cuts[0]) - 1), *ends]
        else:
            middle = [a if a == b else f"{a} to {b}" for a, b in itertools.pairwise(ends)]
            labels = [f"below {ends[0]}", *middle, f"{ends[-1]} or more"]
    return ColumnCells(tuple(labels + ["null"] * column.nullable), cuts, column.nullable)
