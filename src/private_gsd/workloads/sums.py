"""Sums: of a number over the rows that meet a condition, between public bounds.

A value counts as a whole number of steps from the lower bound to the upper one, so that sums get
noise as counts do. A null counts as nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import WorkloadError, did_you_mean
from private_gsd.kernels.cells import fill_atoms
from private_gsd.kernels.sums import Parts, count_sums
from private_gsd.schema import Numeric
from private_gsd.sql.expressions import FALSE, TRUE, Known, Test, both
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads.programs import compiled, cut_columns, depth_of
from private_gsd.workloads.workload import Family, Neighbours, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.cells import Cuts
    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth

# Steps between the bounds of a column.
STEPS = 1000
MAX_SUMS = 10_000


class Part(NamedTuple):
    """Something that is summed up.

    Attributes:
        factor: How often it counts; a whole number.
        column: The name of the column whose steps are summed, or None to count rows.
        where: The condition that rows must meet, as SQL; empty for none.
    """

    factor: int
    column: str | None
    where: str = ""


class Sums(Family):
    """Sums of parts, each query a group.

    Args:
        schema: The public schema.
        queries: For each, its parts.
    """

    def __init__(self, schema: Schema, queries: Sequence[Sequence[Part]]) -> None:
        self.schema = schema
        self.queries = tuple(tuple(Part(*part) for part in parts) for parts in queries)
        if not self.queries or len(self.queries) > MAX_SUMS or not all(self.queries):
            raise WorkloadError(f"there must be from 1 to {MAX_SUMS:,} sums, none of them empty")
        self.truths: tuple[Truth, ...] = tuple(
            _checked(schema, part) for parts in self.queries for part in parts
        )

    def __getstate__(self) -> dict[str, object]:
        return {"schema": self.schema, "queries": self.queries}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """One each."""
        return np.ones(len(self.queries), dtype=np.int64)

    @property
    def units(self) -> NDArray[np.float64]:
        """For each sum, the most that one row can move it."""
        return np.array(
            [max(_ends(parts)[1] - _ends(parts)[0], 1) for parts in self.queries], float
        )

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """A row gives at least so much and at most so much, and another row replaces that."""
        if neighbours == "replace-one":
            return self.units**2
        most = [max(abs(end) for end in _ends(parts)) for parts in self.queries]
        return np.maximum(np.array(most, dtype=np.float64), 1) ** 2

    def select(self, groups: NDArray[np.int64]) -> Sums:
        """Some of the sums."""
        return Sums(self.schema, [self.queries[group] for group in groups.tolist()])

    def join(self, other: Family) -> Sums | None:
        """Both as one."""
        if not isinstance(other, Sums):
            return None
        return Sums(self.schema, (*self.queries, *other.queries))

    def describe(self, group: int) -> str:
        """The sum in words."""
        words = []
        for part in self.queries[group]:
            times = "" if part.factor == 1 else f"{part.factor:,} × "
            what = "count(*)" if part.column is None else f"sum({part.column})"
            words.append(times + what + (f" where {part.where}" if part.where else ""))
        return " + ".join(words)

    def query(self, group: int, cell: int) -> str:  # noqa: ARG002
        """The sum in words."""
        return self.describe(group)

    def start(self) -> NDArray[np.int64]:
        """Zeros, one for each sum."""
        return np.zeros(len(self.queries), dtype=np.int64)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Add rows."""
        parts, cuts, depth = self._compiled
        atoms = np.empty(matrix.shape, dtype=np.int32)
        fill_atoms(cuts, matrix, atoms)
        count_sums(parts, matrix, atoms, np.zeros(depth), state)

    def finish(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sums, in steps."""
        return state

    @cached_property
    def _compiled(self) -> tuple[Parts, Cuts, int]:
        cuts, kernel_cuts = cut_columns(self.schema, self.truths)
        return parts_of(self.schema, [(self, 0)], cuts), kernel_cuts, depth_of(self.truths)


def parts_of(
    schema: Schema, families: Sequence[tuple[Sums, int]], cuts: Sequence[NDArray[np.float64]]
) -> Parts:
    """The kernels' view of some sums.

    Args:
        schema: The schema.
        families: Sums, and the number of the first query of each family.
        cuts: For each column, in order; all breaks of conditions are among them.
    """
    parts = [part for family, _ in families for query in family.queries for part in query]
    queries = [
        first + number
        for family, first in families
        for number, query in enumerate(family.queries)
        for _ in query
    ]
    truths = [truth for family, _ in families for truth in family.truths]
    bounds = np.array([column.bounds for column in schema])
    return Parts(
        compiled(schema, truths, np.array(queries), cuts),
        np.array([part.factor for part in parts], dtype=np.int64),
        np.array(
            [-1 if part.column is None else schema.names.index(part.column) for part in parts],
            dtype=np.int64,
        ),
        bounds[:, 0].copy(),
        STEPS / np.maximum(bounds[:, 1] - bounds[:, 0], 1e-300),
    )


def sums(schema: Schema, columns: Sequence[str] | None = None, where: str = "") -> Workload:
    """Sums of numbers, each between the public bounds of its column.

    >>> from private_gsd import datasets
    >>> sums(datasets.census_schema(), ["age", "income"], where="sex = 'female'")
    <Workload of 2 queries in 2 groups: sums>

    Args:
        schema: The public schema.
        columns: Numeric columns; all of them by default.
        where: A condition in SQL that rows must meet.
    """
    names = columns
    if names is None:
        names = [column.name for column in schema if isinstance(column, Numeric)]
    if isinstance(names, str) or not names:
        raise WorkloadError(f"give a list of columns of numbers, not {columns!r}")
    return Workload(schema, (Sums(schema, [[Part(1, name, where)] for name in names]),))


def _ends(parts: Sequence[Part]) -> tuple[int, int]:
    """The least and the most that a row can give, or less and more."""
    ends = [part.factor * (1 if part.column is None else STEPS) for part in parts]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)


def _checked(schema: Schema, part: Part) -> Truth:
    """The condition of a part; met only where its column is not null."""
    if type(part.factor) is not int or not 0 < abs(part.factor) <= 2**20:
        raise WorkloadError(
            f"a sum's factor is a whole number of at most a million, not {part.factor!r}"
        )
    truth: Truth = Known(TRUE)
    if part.where:
        truth = parse_predicate(schema, part.where)
    if part.column is None:
        return truth
    if part.column not in schema:
        hint = did_you_mean(part.column, schema.names)
        raise WorkloadError(f"the schema has no column {part.column!r}{hint}")
    column = schema[part.column]
    if not isinstance(column, Numeric):
        raise WorkloadError(f"column {part.column!r} is {column.kind}; only numbers can be summed")
    known = Test(schema.names.index(part.column), (TRUE,), FALSE)
    return both([truth, known])
