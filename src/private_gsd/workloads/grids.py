"""Grids: the values of a numeric column as whole steps, and cells of round widths on them.

A histogram of a column is refined level by level. Its first cells are the magnitudes of a number
(1, 2, 5, 10, 20, 50, … on both sides of 0), so that bounds that are far too wide cost a few empty
cells. Moments, and numbers far from 0, begin with cells of equal width. The bounds and 0 have cells
of their own. Cells are split at round numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.schema import Date, Datetime, Real

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Numeric

    Steps = NDArray[np.int64]

# A real number without decimals is treated as if it had so many that its span has this many steps.
SPAN_STEPS = 10**15
# Real numbers that differ by no more than this fraction are told apart by no cell: a cell that is
# not wider holds one value, the round number that it begins with.
SAME = 1e-6
# The largest step, and the largest number of decimals, that floats can tell from the next.
LARGEST_STEP = 2**51
MOST_DECIMALS = 300
# The largest number of cells that a cell is split into, at each level; the last one repeats.
BRANCHES = (10, 10, 20, 50, 100, 1000)
# The number of cells of equal width that moments, and numbers far from 0, begin with.
FIRST_CELLS = 20
# Numbers whose upper bound is less than so many times their lower bound are far from 0.
FAR_FROM_ZERO = 10
# The largest number of levels of a histogram.
MOST_LEVELS = 9

# The steps of a day, by the unit of a resolution. Months and years have none.
_PER_DAY = {"D": 1, "h": 24, "m": 1440}
_PER_DAY |= {unit: 86_400 * 10**digits for unit, digits in (("s", 0), ("ms", 3), ("us", 6))}
# Round stretches of time, in seconds.
_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600)
_DAY = 86_400


@dataclass(frozen=True)
class Grid:
    """The steps of a numeric column: a value is a step divided by ``per_one``.

    Attributes:
        first: The first step.
        last: The last step.
        per_one: The number of steps per 1 of the encoded value.
        exact: Whether all values stand on steps; otherwise a step stands for the values up to the
            next one.
        unit: The NumPy unit of the steps of dates and moments; empty for numbers.
        magnitudes: Whether the first cells are magnitudes.
    """

    first: int
    last: int
    per_one: float
    exact: bool
    unit: str
    magnitudes: bool

    @classmethod
    def of(cls, column: Numeric) -> Grid:
        """The grid of a column."""
        low, high = column.bounds
        per_one, exact = 1.0, True
        if isinstance(column, Real):
            largest = max(abs(low), abs(high))
            most = math.floor(math.log10(LARGEST_STEP) - math.log10(largest))
            decimals = column.decimals
            exact = decimals is not None and decimals <= most
            if decimals is None:
                decimals = math.ceil(math.log10(SPAN_STEPS) - math.log10(high - low))
            per_one = 10.0 ** min(decimals, most, MOST_DECIMALS)
        unit = column.unit if isinstance(column, Date | Datetime) else ""
        first, last = _step_below(low, per_one), _step_below(high, per_one)
        if exact:
            first, last = round(low * per_one), round(high * per_one)
        near = low <= 0 <= high or max(abs(low), abs(high)) >= FAR_FROM_ZERO * min(
            abs(low), abs(high)
        )
        return cls(first, last, per_one, exact, unit, near and not unit)

    def is_single(self, starts: Steps, widths: Steps) -> NDArray[np.bool_]:
        """Whether cells hold a single value each, the one that they begin with.

        Args:
            starts: The first step of each cell.
            widths: The number of steps of each cell.
        """
        if self.exact:
            return np.asarray(widths <= 1)
        return np.asarray(widths <= np.maximum(1, SAME * np.abs(starts)))

    @property
    def per_day(self) -> int:
        """The number of steps of a day, for dates and moments; 0 for months, years and numbers."""
        return _PER_DAY.get(self.unit, 0)

    def breaks(self, starts: Steps) -> tuple[float, ...]:
        """The cut points of cells that begin at these steps; the first begins at the bound."""
        return tuple((starts[1:] / self.per_one).tolist())

    def starts(self, breaks: tuple[float, ...]) -> Steps:
        """The first step of each cell, from the cut points."""
        cuts = np.array(breaks, dtype=np.float64)
        # The first step at or after each cut; the product may be rounded.
        steps = np.ceil(cuts * self.per_one).astype(np.int64)
        steps -= (steps - 1) / self.per_one >= cuts
        steps += steps / self.per_one < cuts
        return np.append(np.int64(self.first), steps)

    def first_cells(self) -> Steps:
        """The first step of each cell of the first level."""
        found = {self.first, self.last, min(self.first + 1, self.last)}
        if self.first <= 0 <= self.last and self.magnitudes:
            found |= {0, 1}
        if self.magnitudes:
            for size in _round_numbers(max(abs(self.first), abs(self.last))):
                found |= {size, 1 - size}
        else:
            found |= set(self._multiples(self.first, self.last + 1, FIRST_CELLS))
        return np.array(sorted(s for s in found if self.first <= s <= self.last), dtype=np.int64)

    def even_shares(self, starts: Steps) -> NDArray[np.float64]:
        """The shares of cells where nothing is known: those of magnitudes, or of equal widths.

        Args:
            starts: The first step of each cell.
        """
        edges = np.append(starts, self.last + 1)
        shares = np.diff(edges).astype(np.float64)
        if self.magnitudes:
            # The differences of log(1 + |edge|), to all digits; no cell has 0 inside.
            shares = np.log1p(shares / (1 + np.minimum(np.abs(edges[1:]), np.abs(edges[:-1]))))
        return np.asarray(shares / shares.sum())

    def split(self, start: int, end: int, level: int) -> list[int]:
        """The first steps of the cells that a cell is split into.

        Args:
            start: The first step of the cell.
            end: The step after its last.
            level: The level of the cell, from 0.
        """
        branches = BRANCHES[min(level, len(BRANCHES) - 1)]
        return [start, *self._multiples(start, end, branches)]

    @cached_property
    def levels(self) -> int:
        """The largest number of levels that a histogram on this grid may have."""
        starts = self.first_cells()
        widths = np.diff(starts, append=self.last + 1)
        # Parts of a cell may begin anywhere in it; nearest to 0, they are split the longest.
        nearest = np.minimum(np.abs(starts), np.abs(starts + widths - 1))
        found = 1
        while not self.is_single(nearest, widths).all() and found < MOST_LEVELS:
            branches = BRANCHES[min(found - 1, len(BRANCHES) - 1)]
            widths = np.array([self._width(width / branches) for width in widths.tolist()])
            found += 1
        return found

    def _multiples(self, start: int, end: int, most: int) -> list[int]:
        """The multiples of a round width between two steps, both excluded."""
        width = self._width((end - start) / most)
        return list(range((start // width + 1) * width, end, width))

    def _width(self, least: float) -> int:
        """The least round width that is no less than a number."""
        widths = self.times(_SECONDS)
        if not widths or least <= widths[0] / 2:
            return _round_up(least)
        if least <= widths[-1]:
            return widths[bisect_left(widths, least)]
        return self.per_day * _round_up(least / self.per_day)

    def times(self, seconds: Sequence[int]) -> list[int]:
        """Stretches of time as numbers of steps; those of no whole number of steps are left out."""
        steps = [self.per_day * each for each in seconds]
        return [each // _DAY for each in steps if each and each % _DAY == 0]


def _step_below(value: float, per_one: float) -> int:
    """The last step that is no greater than a value; the product of both may be rounded."""
    step = math.floor(value * per_one)
    while (step + 1) / per_one <= value:
        step += 1
    while step / per_one > value:
        step -= 1
    return step


def _round_numbers(most: int) -> Iterator[int]:
    """1, 2, 5, 10, 20, 50, … up to a number."""
    power = 1
    while power <= most:
        yield from (each * power for each in (1, 2, 5) if each * power <= most)
        power *= 10


def _round_up(number: float) -> int:
    """The least of 1, 2, 5, 10, 20, 50, … that is no less than a number."""
    if number <= 1:
        return 1
    power: int = 10 ** math.floor(math.log10(number))
    return next(each * power for each in (1, 2, 5, 10, 20) if each * power >= number)
