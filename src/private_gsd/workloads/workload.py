"""Workloads: queries of a table, in groups that are measured and selected as a whole.

A workload is a sequence of families (such as marginals or halfspaces); a family is a sequence of
groups, and a group has one or more queries. The counts of a workload are one vector: the number of
rows that meet each query, group after group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, get_args

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.schema.neighbours import Neighbours
from private_gsd.workloads.checks import group_numbers
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.family import Family

# The largest number of queries of a workload; their counts take 128 MiB.
CELL_LIMIT = 2**24
# The most that a row may add to a count of a table with units; so many units fit into 64 bits.
LARGEST_CONTRIBUTION = 2**31
MOST_UNITS = 2**32


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries of a table. Made by the constructors of ``private_gsd.workloads``.

    ``a + b`` has the queries of both. Groups are numbered from 0 in order.

    Attributes:
        schema: The public schema.
        families: The queries, family by family.
    """

    schema: Schema
    families: tuple[Family, ...]

    def __post_init__(self) -> None:
        if self.size > CELL_LIMIT:
            raise WorkloadError(
                f"the workload has {self.size:,} queries, more than the {CELL_LIMIT:,} allowed"
            )
        unit = self.schema.unit
        if unit is not None and unit.weight * self.max_contributions.max() > LARGEST_CONTRIBUTION:
            raise WorkloadError(
                f"the counts of a sum over units of at most {unit.at_most:,} rows would not fit "
                "into 64 bits; sum with a smaller factor, or let each row count: "
                "weighting = 'rows'"
            )

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of queries in each group."""
        return np.concatenate([family.group_sizes for family in self.families])

    @cached_property
    def max_contributions(self) -> NDArray[np.float64]:
        """For each group, the largest change of one of its counts by one row; 1 except for sums."""
        return np.concatenate([family.max_contributions for family in self.families])

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The start of each group in the vector of counts, and the end of the last group."""
        return starts_of(self.group_sizes)

    @property
    def num_groups(self) -> int:
        """The number of groups."""
        return len(self.group_sizes)

    @property
    def size(self) -> int:
        """The number of queries."""
        return int(self.group_sizes.sum())

    def __add__(self, other: object) -> Workload:
        if not isinstance(other, Workload):
            return NotImplemented
        if other.schema != self.schema:
            raise WorkloadError("workloads of different schemas cannot be joined")
        families = list(self.families)
        for family in other.families:
            joined = families[-1].join(family)
            if joined is None:
                families.append(family)
            else:
                families[-1] = joined
        return Workload(self.schema, tuple(families))

    def __repr__(self) -> str:
        names = ", ".join(family.name for family in self.families)
        return f"<Workload of {self.size:,} queries in {self.num_groups:,} groups: {names}>"

    def _place(self, group: int) -> tuple[Family, int]:
        place = group
        for family in self.families:
            if 0 <= place < len(family.group_sizes):
                return family, place
            place -= len(family.group_sizes)
        raise IndexError(f"no group {group}; there are {self.num_groups:,}")

    def describe(self, group: int) -> str:
        """A group in words."""
        family, place = self._place(group)
        return family.describe(place)

    def query(self, index: int) -> str:
        """One query in words; as a condition in SQL, if possible."""
        if not 0 <= index < self.size:
            raise IndexError(f"no query {index}; there are {self.size:,}")
        group = int(np.searchsorted(self.offsets, index, side="right")) - 1
        family, place = self._place(group)
        return family.query(place, index - int(self.offsets[group]))

    def select(self, groups: Sequence[int] | NDArray[np.int64]) -> Workload:
        """The workload of some of the groups, which stay in order."""
        wanted = np.sort(group_numbers(groups, self.num_groups))
        chosen = []
        first = 0
        for family in self.families:
            last = first + len(family.group_sizes)
            mine = wanted[(wanted >= first) & (wanted < last)]
            if len(mine):
                chosen.append(family.select(mine - first))
            first = last
        return Workload(self.schema, tuple(chosen))

    def squared_sensitivities(self, neighbours: Neighbours = "replace-one") -> NDArray[np.float64]:
        """The square of each group's L2 sensitivity, which is a whole number and so exact.

        Where the schema names a unit of protection, neighbours differ in one unit: in all of its
        rows. Of its rows at most K are taken, and each counts one, or they count one together.

        *Each unit counts one.* A unit adds to the counts a mean of what its rows would add alone
        (weights of at least 0 that add up to 1). The L2 norm is convex, and so the norm of a mean,
        or of the difference between two means, is no larger than that of a single row or of the
        difference between two: the sensitivity is that of a row.

        *Each row counts one.* A unit adds the sum over its k rows, k ≤ K. Of two units with rows
        a₁, …, aₖ and b₁, …, bₘ, m ≤ k, the sums differ by ``Σ(aᵢ - bᵢ)`` over the first m rows and
        Σaᵢ over the others, whose norm is at most m·R + (k - m)·A ≤ K·max(R, A), where R is the
        sensitivity to a row that is replaced and A that to a row that is added. K equal rows
        against K other ones attain K·R; K equal rows against no unit attain K·A.

        Args:
            neighbours: "replace-one", where one row is replaced by another (the number of rows is
                public, as in the paper), or "add-remove", where one row is added or removed.
        """
        return times_rounded_up(self._row_squares(neighbours), self._most**2)

    def absolute_sensitivities(self, neighbours: Neighbours = "replace-one") -> NDArray[np.float64]:
        """For each group a bound on the sum of the absolute changes of its counts: L1.

        The changes by a row are whole numbers z, for which |z| ≤ z²: their sum is at most the
        squared L2 sensitivity to a row. By a unit it is the same, or K times as much, with the
        argument of ``squared_sensitivities``, which holds for any norm.
        """
        return times_rounded_up(self._row_squares(neighbours), self._most)

    @property
    def _most(self) -> int:
        """The most that the unit of protection counts."""
        return 1 if self.schema.unit is None else self.schema.unit.most

    def _row_squares(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """The squared L2 sensitivities to a row; to one that also comes or goes, with units."""
        if neighbours not in get_args(Neighbours):
            raise WorkloadError(
                f"neighbours must be 'replace-one' or 'add-remove', not {neighbours!r}"
            )
        squares = np.concatenate(
            [family.squared_sensitivities(neighbours) for family in self.families]
        )
        if neighbours == "replace-one" and self._most > 1:
            # Units of different numbers of rows replace each other.
            squares = np.maximum(squares, self._row_squares("add-remove"))
        return squares

    def sensitivity(
        self,
        groups: Sequence[int] | NDArray[np.int64] | None = None,
        neighbours: Neighbours = "replace-one",
    ) -> float:
        """The L2 sensitivity of the counts of some groups together, or of all."""
        squares = self.squared_sensitivities(neighbours)
        if groups is not None:
            squares = squares[group_numbers(groups, self.num_groups)]
        return rounded_up_root(float(squares.sum()))


class RunningCounts:
    """The counts of a workload, updated batch by batch.

    Args:
        workload: The queries.
    """

    def __init__(self, workload: Workload) -> None:
        self._families = workload.families
        self._states = [family.start() for family in workload.families]

    def add(self, matrix: NDArray[np.float64]) -> None:
        """Count the rows of an encoded matrix."""
        for family, state in zip(self._families, self._states, strict=True):
            family.count(matrix, state)

    def merge(self, other: RunningCounts) -> None:
        """Add the counts of another object."""
        for state, more in zip(self._states, other._states, strict=True):
            state += more

    def finish(self) -> NDArray[np.int64]:
        """For every query, how many of the rows meet it."""
        states = zip(self._families, self._states, strict=True)
        return np.concatenate([family.finish(state) for family, state in states])


def times_rounded_up(squares: NDArray[np.float64], factor: int) -> NDArray[np.float64]:
    """Products, rounded up where they are not exact: a sensitivity must not be understated."""
    products = squares * factor
    inexact = (products > 2**53) & (factor > 1)
    return np.where(inexact, np.nextafter(products, math.inf), products)


def rounded_up_root(square: float) -> float:
    """A square root that is never below the true one: a sensitivity must not be understated."""
    root = math.sqrt(square)
    return root if float(round(root)) ** 2 == square else math.nextafter(root, math.inf)
