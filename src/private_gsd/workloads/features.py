"""Features: discretised views of a column; a row is in at most one cell of a feature.

A discrete column has one feature. A numeric column has one feature for each level of its binary
tree, or for each set of disjoint ranges. Null has its own cell, the last one.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import SchemaError, WorkloadError, expect_type
from private_gsd.schema import Date, Datetime, Discrete, Numeric, Real
from private_gsd.workloads.checks import require_sound
from private_gsd.workloads.conditions import is_among, is_between, is_null

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Column, Schema


@dataclass(frozen=True)
class Feature:
    """One discretised view of one column.

    Attributes:
        position: The column's position in the schema.
        segments: The cell of each category, or of each segment between ``breaks``; -1 for none.
            Several categories may share a cell; cells are numbered by their first category.
        breaks: The cut points of a numeric column, inside its bounds. A segment is half-open,
            [a, b), except the last, which includes the upper bound.
        nullable: Whether a null has a cell of its own, the last.
    """

    position: int
    segments: tuple[int, ...]
    breaks: tuple[float, ...] = ()
    nullable: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Features are looked up again and again, and may have thousands of segments."""
        return hash((self.position, self.segments, self.breaks, self.nullable))

    @property
    def joins_categories(self) -> bool:
        """Whether several categories share a cell."""
        return not self.breaks and self.size - self.nullable < len(self.segments)

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return max(self.segments) + 1 + self.nullable

    @cached_property
    def has_gap(self) -> bool:
        """Whether a row may fall in no cell."""
        return min(self.segments) < 0

    def to_dict(self) -> dict[str, Any]:
        """The feature, for JSON."""
        return {
            "position": self.position,
            "segments": list(self.segments),
            "breaks": list(self.breaks),
            "nullable": self.nullable,
        }

    @classmethod
    def from_dict(cls, schema: Schema, values: Mapping[str, Any]) -> Feature:
        """The inverse of ``to_dict``; damaged values are refused."""
        position, segments, nullable = values["position"], values["segments"], values["nullable"]
        breaks = [float(cut) for cut in values["breaks"]]
        known = type(position) is int and 0 <= position < len(schema)
        require_sound(known, "a column's position")
        column = schema.columns[position]
        require_sound(nullable is column.nullable, "nulls")
        require_sound(segments and all(type(each) is int for each in segments), "segments")
        cells = sorted({each for each in segments if each >= 0})
        require_sound(cells == list(range(len(cells))) and len(cells) > 0, "cells")
        require_sound(min(segments) >= -1, "segments")
        if isinstance(column, Discrete):
            every = len(segments) == len(column.values) and min(segments) >= 0
            require_sound(not breaks and every, "categories")
            require_sound(list(dict.fromkeys(segments)) == cells, "segments")
        else:
            require_sound(segments == _in_order(segments), "segments")
            require_sound(len(segments) == len(breaks) + 1, "breaks")
            ordered = all(low < high for low, high in itertools.pairwise(breaks))
            require_sound(ordered and all(math.isfinite(cut) for cut in breaks), "breaks")
        return cls(position, tuple(segments), tuple(breaks), nullable)

    def condition(self, schema: Schema, cell: int) -> str:
        """The condition of a cell, as SQL."""
        column = schema.columns[self.position]
        if self.nullable and cell == self.size - 1:
            return is_null(column)
        if isinstance(column, Discrete):
            return is_among(column, [code for code, own in enumerate(self.segments) if own == cell])
        segment = self.segments.index(cell)
        edges = (-math.inf, *self.breaks, math.inf)
        return is_between(expect_type(Numeric, column), edges[segment], edges[segment + 1])

    def cells_of_atoms(self, breaks: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each atom.

        Args:
            breaks: All cut points of the column; they include those of this feature.
        """
        if not self.breaks and breaks.size == 0:
            cells = list(self.segments)
        else:
            starts = np.concatenate([[-np.inf], breaks])
            cells = np.array(self.segments)[
                np.searchsorted(self.breaks, starts, side="right")
            ].tolist()
        return np.array(cells + [self.size - 1] * self.nullable, dtype=np.int64)


def _in_order(segments: Sequence[int]) -> list[int]:
    """The segments with their cells numbered from left to right, one segment to a cell."""
    number = itertools.count()
    return [-1 if each < 0 else next(number) for each in segments]


def discrete_feature(schema: Schema, position: int) -> Feature:
    """The one feature of a discrete column."""
    column = expect_type(Discrete, schema.columns[position])
    return Feature(position, tuple(range(len(column.values))), nullable=column.nullable)


def joined_feature(feature: Feature, cells: Sequence[int]) -> Feature:
    """A discrete column's feature, whose cells are joined to larger ones.

    Args:
        feature: The feature with a cell for each category.
        cells: For each category, the number of its larger cell, in any order.
    """
    number: dict[int, int] = {}
    segments = tuple(number.setdefault(each, len(number)) for each in cells)
    return Feature(feature.position, segments, nullable=feature.nullable)


def tree_features(schema: Schema, position: int, depth: int) -> tuple[Feature, ...]:
    """The levels 1 … depth of a numeric column's binary tree: intervals of width 1/2, 1/4, ….

    A column of whole numbers or dates has no more levels than it takes to separate its values:
    deeper levels would repeat the same queries.
    """
    column = expect_type(Numeric, schema.columns[position])
    low, high = column.bounds
    # Fractions of powers of two are exact, so that each level has the cut points of the level
    # above.
    return tuple(
        Feature(
            position,
            tuple(range(2**level)),
            tuple(low + (high - low) * (cut / 2**level) for cut in range(1, 2**level)),
            column.nullable,
        )
        for level in range(1, tree_depth(column, depth) + 1)
    )


def is_tree_level(schema: Schema, feature: Feature) -> bool:
    """Whether a feature is a level of its numeric column's binary tree."""
    depth = len(feature.breaks).bit_length()
    column = schema.columns[feature.position]
    if not isinstance(column, Numeric) or feature.has_gap:
        return False
    return feature in tree_features(schema, feature.position, depth)


def tree_depth(column: Numeric, depth: int) -> int:
    """The number of levels of a column's tree that are not repetitions."""
    low, high = column.bounds
    if isinstance(column, Real):
        # In a very small span, finer cut points would be the same floats.
        step = max(math.ulp(low), math.ulp(high))
        return min(depth, max(1, math.floor(math.log2((high - low) / step))))
    return min(depth, max(1, math.ceil(math.log2(high - low + 1))))


def range_features(
    schema: Schema, position: int, intervals: Sequence[tuple[Any, Any]]
) -> tuple[Feature, ...]:
    """Features for given intervals of a numeric column: one for each set of disjoint intervals.

    Intervals of whole numbers and dates include both ends. Intervals of reals are half-open,
    [a, b), except those that end at the upper bound, which include it.
    """
    column = expect_type(Numeric, schema.columns[position])
    low, high = column.bounds
    spans = []
    for interval in intervals:
        start, stop = _ends(column, interval)
        stop = stop if not isinstance(column, Real) or stop < high else math.inf
        spans.append((start if start > low else -math.inf, stop if stop <= high else math.inf))
    if len(set(spans)) < len(spans):
        raise WorkloadError(f"column {column.name!r}: the same interval is given twice")
    # From left to right, each span goes to the first set in which it overlaps no other span. This
    # gives the least number of sets.
    levels: list[list[tuple[float, float]]] = []
    for span in sorted(spans):
        for level in levels:
            if level[-1][1] <= span[0]:
                level.append(span)
                break
        else:
            levels.append([span])
    return tuple(_disjoint(position, column, level) for level in levels)


def _disjoint(position: int, column: Column, spans: Sequence[tuple[float, float]]) -> Feature:
    """One feature of disjoint spans, in order; values between the spans have no cell."""
    breaks: list[float] = []
    segments = [] if spans[0][0] == -math.inf else [-1]
    for cell, (start, stop) in enumerate(spans):
        if start != -math.inf and (not breaks or breaks[-1] != start):
            breaks.append(start)
            if cell and spans[cell - 1][1] != start:
                segments.append(-1)
        segments.append(cell)
        if stop != math.inf:
            breaks.append(stop)
    if spans[-1][1] != math.inf:
        segments.append(-1)
    return Feature(position, tuple(segments), tuple(breaks), column.nullable)


def _ends(column: Numeric, interval: tuple[Any, Any]) -> tuple[float, float]:
    """The start of an interval, and its end, which is excluded."""
    try:
        first, last = interval
    except (TypeError, ValueError):
        raise WorkloadError(
            f"column {column.name!r}: an interval is a pair (lower, upper), not {interval!r}"
        ) from None
    start, final = _number(column, first), _number(column, last)
    low, high = column.bounds
    whole_day = isinstance(column, Datetime) and _is_day(last)
    if isinstance(column, Datetime) and whole_day:  # the end of the day, not its start
        day = np.array(column.moment(last), dtype="datetime64[D]") + np.timedelta64(1, "D")
        final = float(day.astype(f"datetime64[{column.unit}]").astype(np.int64)) - 1
    if start < low or (final > high and not whole_day):
        raise WorkloadError(
            f"column {column.name!r}: interval {interval!r} leaves the domain, {column.domain}"
        )
    if start > final or (start == final and isinstance(column, Real)):
        raise WorkloadError(f"column {column.name!r}: interval {interval!r} is empty")
    return start, final if isinstance(column, Real) else final + 1


def _is_day(end: object) -> bool:
    """Whether a date is given without a time."""
    if isinstance(end, str):
        return len(end) == 10
    return isinstance(end, dt.date) and not isinstance(end, dt.datetime)


def _number(column: Numeric, end: Any) -> float:
    """One end of an interval, on the encoded scale."""
    if isinstance(column, Date | Datetime):
        try:
            moment = column.moment(end)
        except SchemaError:
            raise WorkloadError(
                f"column {column.name!r}: the ends of an interval are dates, not {end!r}"
            ) from None
        return float(np.array(moment, dtype=f"datetime64[{column.unit}]").astype(np.int64))
    if isinstance(end, bool) or not isinstance(end, int | float | np.integer | np.floating):
        raise WorkloadError(
            f"column {column.name!r}: the ends of an interval are numbers, not {end!r}"
        )
    if math.isnan(end) or (not isinstance(column, Real) and end != int(end)):
        kind = "numbers" if isinstance(column, Real) else "whole numbers"
        raise WorkloadError(
            f"column {column.name!r}: the ends of an interval are {kind}, not {end!r}"
        )
    return float(end)
