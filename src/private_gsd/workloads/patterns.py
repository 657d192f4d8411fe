"""The family of patterns: how round the numbers of a column are, or on which days dates fall.

People report thousands and half hours, and much happens on weekdays. A pattern is a partition of
the values of one column: by the largest round number that divides a value, by weekday or by month.
It says which values are likely within a cell of a histogram (see ``projection.within_cells``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from private_gsd.errors import expect_type
from private_gsd.schema import Numeric
from private_gsd.workloads.checks import require_sound
from private_gsd.workloads.family import Family
from private_gsd.workloads.grids import Grid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.schema.neighbours import Neighbours
    from private_gsd.workloads.family import Arrays

    Kind = Literal["round", "weekday", "month"]
    Values = NDArray[np.float64]
    Steps = NDArray[np.int64]

# The least number of steps of a column whose roundness is measured; with fewer steps a histogram
# reaches single values.
LEAST_STEPS = 1000
# The least number of days of a column of dates whose weekdays, and whose months, are measured.
LEAST_DAYS = {"weekday": 60, "month": 800}

# The days of a step of a column by month.
_DAYS = {"M": 30.4}
_TIMES = (1, 60, 300, 900, 1800, 3600, 86_400)
_WEEK = 7
_THURSDAY = 3  # the first day of 1970


@dataclass(frozen=True)
class Pattern:
    """A partition of the values of one column.

    Attributes:
        schema: The public schema.
        position: The position of the column.
        kind: "round" for the largest round number that divides a value; "weekday"; or "month".
    """

    schema: Schema
    position: int
    kind: Kind

    @cached_property
    def column(self) -> Numeric:
        """The column."""
        return expect_type(Numeric, self.schema.columns[self.position])

    @cached_property
    def grid(self) -> Grid:
        """The grid of the column."""
        return Grid.of(self.column)

    @cached_property
    def divisors(self) -> tuple[int, ...]:
        """The round numbers of steps; each divides the next, and the first is 1."""
        times = self.grid.times(_TIMES)
        if times:
            return (*_powers(times[0], (10,))[:-1], *times)
        span = self.grid.last - self.grid.first
        return _powers(max(span // 2, 1), (5, 2) if self.grid.exact else (10,))

    @property
    def num_classes(self) -> int:
        """The number of classes of values, without null."""
        return {"round": len(self.divisors), "weekday": _WEEK, "month": 12}[self.kind]

    @property
    def size(self) -> int:
        """The number of classes, with null where the column has nulls."""
        return self.num_classes + self.column.nullable

    def classes(self, steps: Steps) -> NDArray[np.int64]:
        """The class of each step of the column's grid."""
        if self.kind == "round":
            found = np.zeros(len(steps), dtype=np.int64)
            for number, divisor in enumerate(self.divisors):
                found[steps % divisor == 0] = number
            return found
        moments = steps.astype(f"datetime64[{self.grid.unit}]")
        if self.kind == "month":
            return moments.astype("datetime64[M]").astype(np.int64) % 12
        return (moments.astype("datetime64[D]").astype(np.int64) + _THURSDAY) % _WEEK

    def cells(self, values: Values) -> NDArray[np.int64]:
        """The class of each encoded value; null is the last."""
        known = ~np.isnan(values)
        found = np.full(len(values), self.size - 1, dtype=np.int64)
        steps = values[known] * self.grid.per_one
        # A value on the grid is a step but for rounding; other values are in the step below.
        near = np.rint(steps)
        on_grid = self.grid.exact | (np.abs(steps - near) < 1e-6 + 4e-16 * np.abs(steps))
        found[known] = self.classes(np.where(on_grid, near, np.floor(steps)).astype(np.int64))
        return found

    def words(self, cell: int) -> str:
        """A class in words."""
        name = self.column.name
        if cell == self.num_classes:
            return f"{name} is null"
        if self.kind == "round":
            return f"{name} is a multiple of {self.divisors[cell] / self.grid.per_one:g}, no more"
        return f"{self.kind} of {name} is {cell + 1}"


class Patterns(Family):
    """A family of patterns, each in a group of its own. Every row is in one class of each.

    Args:
        schema: The public schema.
        patterns: The patterns.
    """

    name: ClassVar[str] = "patterns"
    title: ClassVar[str] = "patterns"

    def __init__(self, schema: Schema, patterns: Iterable[Pattern]) -> None:
        self.schema = schema
        self.patterns = tuple(patterns)

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of classes of each pattern."""
        return np.array([pattern.size for pattern in self.patterns], dtype=np.int64)

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """The squared L2 sensitivity of each pattern: a row is in one class."""
        return np.full(len(self.patterns), 1.0 if neighbours == "add-remove" else 2.0)

    def select(self, groups: NDArray[np.int64]) -> Patterns:
        """The family of some of the patterns."""
        return Patterns(self.schema, (self.patterns[group] for group in groups.tolist()))

    def describe(self, group: int) -> str:
        """The column, and the kind of pattern."""
        pattern = self.patterns[group]
        what = {"round": "how round", "weekday": "weekdays", "month": "months"}[pattern.kind]
        return f"{pattern.column.name} ({what})"

    def query(self, group: int, cell: int) -> str:
        """One class in words."""
        return self.patterns[group].words(cell)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows in the classes."""
        begin = 0
        for pattern in self.patterns:
            cells = pattern.cells(np.ascontiguousarray(matrix[:, pattern.position]))
            state[begin : begin + pattern.size] += np.bincount(cells, minlength=pattern.size)
            begin += pattern.size

    def met(self, matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For each row and each class, whether the row is in the class."""
        return np.concatenate(
            [
                pattern.cells(matrix[:, pattern.position])[:, None] == np.arange(pattern.size)
                for pattern in self.patterns
            ],
            axis=1,
        )

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The column and the kind of each pattern."""
        return {"patterns": [[each.position, each.kind] for each in self.patterns]}, {}

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Patterns:  # noqa: ARG003
        """The inverse of ``to_document``."""
        known = {repr([each.position, each.kind]): each for each in patterns_of(schema)}
        found = [repr(each) for each in values["patterns"]]
        require_sound(found and set(found) <= set(known), "patterns")
        return cls(schema, [known[each] for each in found])


def patterns_of(schema: Schema) -> list[Pattern]:
    """The patterns that columns of a schema may have."""
    found = []
    for position, column in enumerate(schema):
        if not isinstance(column, Numeric):
            continue
        grid = Grid.of(column)
        span = grid.last - grid.first
        if span >= LEAST_STEPS and (grid.per_day > 1 or not grid.unit):
            found.append(Pattern(schema, position, "round"))
        if grid.unit:
            days = span / grid.per_day if grid.per_day else span * _DAYS.get(grid.unit, 0.0)
            kinds: list[Kind] = ["weekday", "month"] if grid.per_day else ["month"]
            found += [Pattern(schema, position, kind) for kind in kinds if days >= LEAST_DAYS[kind]]
    return found


def _powers(most: int, factors: tuple[int, ...]) -> tuple[int, ...]:
    """1, and its products with some factors in turn, up to a number."""
    found = [1]
    while found[-1] * factors[(len(found) - 1) % len(factors)] <= most:
        found.append(found[-1] * factors[(len(found) - 1) % len(factors)])
    return tuple(found)
