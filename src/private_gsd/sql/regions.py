"""Regions: sets of values of a column, as pieces of a line, with or without null.

Categories lie on the line as their codes. All ends belong to a piece.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from private_gsd.schema import Real
from private_gsd.sql.expressions import TRUE

if TYPE_CHECKING:
    import numpy as np

    from private_gsd.schema import Column
    from private_gsd.sql.expressions import ColumnTest

    Pieces = tuple[tuple[float, float], ...]

# The relative error that arithmetic on the ends of a piece may have.
SLACK = 1e-12


@dataclass(frozen=True)
class Region:
    """A set of values of a column.

    Attributes:
        pieces: Disjoint, in order, none empty.
        null: Whether null belongs to the set.
        grid: The number of steps in one unit; 0 for numbers without steps.
    """

    pieces: Pieces
    null: bool
    grid: float

    @classmethod
    def of(cls, column: Column) -> Region:
        """The whole domain of a column."""
        grid = 1.0
        if isinstance(column, Real):
            grid = 0.0 if column.decimals is None else 10.0**column.decimals
        return cls((column.bounds,), column.nullable, grid)

    @property
    def empty(self) -> bool:
        """Whether the region has no value."""
        return not self.pieces and not self.null

    @property
    def hull(self) -> tuple[float, float]:
        """The least and the greatest number; nothing where there is none."""
        return (self.pieces[0][0], self.pieces[-1][1]) if self.pieces else (math.inf, -math.inf)

    @property
    def single(self) -> bool:
        """Whether the region has one value, or numbers that differ by rounding alone."""
        if self.null or len(self.pieces) != 1:
            return self.null and not self.pieces
        low, high = self.pieces[0]
        if self.grid:
            return low == high
        return high - low <= 4 * SLACK * max(abs(low), abs(high), 1e-300)

    def holds(self, value: float) -> bool:
        """Whether a number belongs to the region."""
        return any(low <= value <= high for low, high in self.pieces)

    def meet(self, test: ColumnTest) -> Region:
        """The part in which a test is true."""
        if not test.breaks:
            if len(test.truths) == 1:
                pieces = self.pieces if test.truths[0] == TRUE else ()
            else:
                kept = [
                    (float(c), float(c)) for c, truth in enumerate(test.truths) if truth == TRUE
                ]
                pieces = _both(self.pieces, _joined(kept, self.grid))
        else:
            starts = (-math.inf, *test.breaks)
            ends = (*(self._before(each) for each in test.breaks), math.inf)
            kept = [
                (self._from(start), end)
                for start, end, truth in zip(starts, ends, test.truths, strict=True)
                if truth == TRUE
            ]
            pieces = _both(self.pieces, tuple(kept))
        return replace(self, pieces=pieces, null=self.null and test.null == TRUE)

    def within(self, low: float, high: float) -> Region:
        """The part between two numbers, without null; the numbers may have rounding errors."""
        low -= SLACK * abs(low)
        high += SLACK * abs(high)
        if self.grid and math.isfinite(low):
            low = math.ceil(low * self.grid - 1e-6) / self.grid
        if self.grid and math.isfinite(high):
            high = math.floor(high * self.grid + 1e-6) / self.grid
        return replace(self, pieces=_both(self.pieces, ((low, high),)), null=False)

    def join(self, other: Region) -> Region:
        """The union with another region."""
        pieces = _joined(sorted({*self.pieces, *other.pieces}), self.grid)
        return replace(self, pieces=pieces, null=self.null or other.null)

    def halves(self) -> tuple[Region, Region]:
        """Two disjoint parts, neither empty, of a region that is not single."""
        if self.null:
            return replace(self, null=False), replace(self, pieces=())
        if len(self.pieces) > 1:
            middle = len(self.pieces) // 2
            return replace(self, pieces=self.pieces[:middle]), replace(
                self, pieces=self.pieces[middle:]
            )
        low, high = self.pieces[0]
        middle_number = low + (high - low) / 2
        if self.grid:
            cut = math.floor(middle_number * self.grid) / self.grid
            after = (math.floor(middle_number * self.grid) + 1) / self.grid
        else:
            cut, after = middle_number, math.nextafter(middle_number, math.inf)
        return replace(self, pieces=((low, cut),)), replace(self, pieces=((after, high),))

    def draw(self, rng: np.random.Generator) -> float:
        """A random value; numbers are uniform, and NaN is null."""
        sizes = [self._size(piece) for piece in self.pieces]
        # Null has the probability 1/3.
        if not sizes or (self.null and rng.random() < 1 / 3):
            return math.nan
        total = sum(sizes)
        at = rng.random() * total
        for (low, high), size in zip(self.pieces, sizes, strict=True):
            if at < size or (low, high) == self.pieces[-1]:
                if not self.grid:
                    return min(max(low + at, low), high)
                step = round(low * self.grid) + min(math.floor(at), round(size) - 1)
                return step / self.grid
            at -= size
        raise AssertionError

    def pick(self, rng: np.random.Generator) -> Region:
        """A region of one random value."""
        return self.just(self.draw(rng))

    def just(self, value: float) -> Region:
        """A region of one value; NaN is null."""
        if math.isnan(value):
            return replace(self, pieces=(), null=True)
        return replace(self, pieces=((value, value),), null=False)

    def _size(self, piece: tuple[float, float]) -> float:
        low, high = piece
        return round((high - low) * self.grid) + 1.0 if self.grid else high - low

    def _from(self, start: float) -> float:
        """The first number at or after a break."""
        if not self.grid or not math.isfinite(start):
            return start
        step = math.ceil(start * self.grid)
        while (step - 1) / self.grid >= start:
            step -= 1
        while step / self.grid < start:
            step += 1
        return step / self.grid

    def _before(self, end: float) -> float:
        """The last number before a break."""
        if not self.grid:
            return math.nextafter(end, -math.inf)
        return (round(self._from(end) * self.grid) - 1) / self.grid


def _both(one: Pieces, other: Pieces) -> Pieces:
    """The intersection."""
    found = []
    for low, high in one:
        for start, end in other:
            if max(low, start) <= min(high, end):
                found.append((max(low, start), min(high, end)))
    return tuple(sorted(found))


def _joined(pieces: list[tuple[float, float]], grid: float) -> Pieces:
    """Pieces in order, those that touch or overlap joined."""
    found: list[tuple[float, float]] = []
    for low, high in pieces:
        if found and (low <= found[-1][1] or (grid and low * grid - found[-1][1] * grid < 1.5)):
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)
