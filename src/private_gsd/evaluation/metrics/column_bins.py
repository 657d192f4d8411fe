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
# A number with at least this share of a table's rows has a cell of its own: a bin would hide it.
SPIKE = 0.05
# A value of fewer rows is not common, whatever its share is.
COMMON_ROWS = 5


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of a column: the values of a discrete column, or bins of a numeric column.

    The cells of a numeric column are its bins, then its spikes, then null. A row with the value of
    a spike is in no bin.

    Attributes:
        labels: The label of each cell.
        cuts: The cut points of a numeric column: bins are [a, b), the outer ones are open; None for
            a discrete column.
        nullable: Whether the last cell is null.
        spikes: Single values of a numeric column that have cells of their own, in order.
    """

    labels: tuple[str, ...]
    cuts: NDArray[np.float64] | None
    nullable: bool
    spikes: tuple[float, ...] = ()

    def codes(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each value."""
        null = np.isnan(values)
        if self.cuts is None:
            codes = np.where(null, 0, values).astype(np.int64)
        else:
            codes = np.searchsorted(self.cuts, values, side="right").astype(np.int64)
            for number, spike in enumerate(self.spikes, start=len(self.cuts) + 1):
                codes[values == spike] = number
        codes[null] = len(self.labels) - 1
        return codes

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the values in each cell."""
        counts = np.bincount(self.codes(values), minlength=len(self.labels))
        return counts / max(1, len(values))

    @property
    def spike_places(self) -> tuple[float, ...]:
        """The place of each spike on a line on which every bin is 1 wide."""
        if self.cuts is None or not self.spikes:
            return ()
        # The outer bins are open, and are drawn as wide as their neighbours.
        width = self.cuts[1] - self.cuts[0] if len(self.cuts) > 1 else 1.0
        ends = np.concatenate([[self.cuts[0] - width], self.cuts, [self.cuts[-1] + width]])
        places: list[float] = np.interp(self.spikes, ends, np.arange(len(ends))).tolist()
        return tuple(places)


def cells_of(column: Column, samples: Sequence[NDArray[np.float64]]) -> ColumnCells:
    """Cells to draw a column with: its values, or bins of equal width over most of its rows.

    A number of many rows has a cell of its own, which is drawn within the bins.

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
    if not isinstance(column, Real):
        least = float(min(values.min() for values in present))
        most = float(max(values.max() for values in present))
        if most - least < FEW:
            return _numeric(column, np.arange(least, most + 1)[1:])
    # By the first table: outliers of a synthetic table would make the bins too wide.
    low, high = np.quantile(present[0], [TAIL, 1 - TAIL]).tolist()
    if low == high:  # nearly all rows have one value
        cuts = np.array([low])
    elif isinstance(column, Real):
        cuts = np.unique(np.linspace(low, high, BINS + 1)[1:-1])
    else:
        step = max(1.0, np.ceil((high - low) / BINS))
        cuts = np.arange(np.floor(low), high + 1, step)[1:]
    spikes = np.unique(np.concatenate([common_values(values, SPIKE) for values in samples]))
    return _numeric(column, cuts, spikes)


def common_values(values: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """The values that have at least a share of the rows, and at least a few rows; never null."""
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return found[(counts >= least * len(values)) & (counts >= COMMON_ROWS)] + 0.0  # never -0.0


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


def value_words(column: Column, number: float) -> str:
    """An encoded value of a numeric column as text, with all of its digits."""
    if isinstance(column, Real) and column.decimals is not None and abs(number) < 1e15:
        return f"{number:,.{column.decimals}f}"
    return f"{number:,.10g}" if isinstance(column, Real) else words_of(column, number)


def _discrete(column: Discrete) -> ColumnCells:
    labels = [str(value) for value in column.values] + ["null"] * column.nullable
    return ColumnCells(tuple(labels), None, column.nullable)


def _numeric(
    column: Column, cuts: NDArray[np.float64], spikes: NDArray[np.float64] | None = None
) -> ColumnCells:
    """The cells of a numeric column; without spikes, each of a few values may have a bin."""
    if not len(cuts):
        labels = ["any"]
    else:
        ends = [words_of(column, float(cut)) for cut in cuts]
        grid = not isinstance(column, Real) and len(cuts) < FEW and (np.diff(cuts) == 1).all()
        if grid and spikes is None:  # a bin for each value
            labels = [words_of(column, float(cuts[0]) - 1), *ends]
        else:
            middle = [a if a == b else f"{a} to {b}" for a, b in itertools.pairwise(ends)]
            labels = [f"below {ends[0]}", *middle, f"{ends[-1]} or more"]
    alone: list[float] = [] if spikes is None else spikes.tolist()
    labels += [f"exactly {value_words(column, spike)}" for spike in alone]
    labels += ["null"] * column.nullable
    return ColumnCells(tuple(labels), cuts, column.nullable, tuple(alone))
