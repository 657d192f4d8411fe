"""Sums of a numeric column over the rows that meet a condition, between public bounds.

A value contributes a whole number of steps between the lower and the upper bound, so that sums get
the same noise as counts. A null contributes nothing.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from private_gsd.errors import WorkloadError, did_you_mean
from private_gsd.kernels.cells import fill_atoms
from private_gsd.kernels.sums import Parts, count_sums
from private_gsd.schema import Numeric
from private_gsd.sql.expressions import FALSE, TRUE, ColumnTest, ConstantTruth, both
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads.checks import require_sound
from private_gsd.workloads.family import Family
from private_gsd.workloads.layout import QueryLayout
from private_gsd.workloads.programs import compiled, cut_columns, depth_of
from private_gsd.workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.cells import Cuts
    from private_gsd.schema import Schema
    from private_gsd.schema.neighbours import Neighbours
    from private_gsd.sql.expressions import Truth
    from private_gsd.workloads.family import Arrays
    from private_gsd.workloads.layout import SumQuery

# The number of steps between the bounds of a column.
STEPS = 1000
MAX_SUMS = 10_000


class Part(NamedTuple):
    """A summand of a query.

    Attributes:
        factor: The whole number that each row's contribution is multiplied by.
        column: The name of the column whose steps are summed, or None to count rows.
        where: The condition that rows must meet, as SQL; empty for none.
    """

    factor: int
    column: str | None
    where: str = ""


class Sums(Family):
    """Queries that are sums of parts, each in a group of its own.

    Args:
        schema: The public schema.
        queries: The parts of each query.
    """

    name: ClassVar[str] = "sums"
    title: ClassVar[str] = "sums"

    def __init__(self, schema: Schema, queries: Sequence[Sequence[Part]]) -> None:
        self.schema = schema
        self.queries = tuple(tuple(Part(*part) for part in parts) for parts in queries)
        if not self.queries or len(self.queries) > MAX_SUMS or not all(self.queries):
            raise WorkloadError(f"there must be from 1 to {MAX_SUMS:,} sums, none of them empty")
        self.truths: tuple[tuple[Truth, ...], ...] = tuple(
            tuple(_checked(schema, part) for part in parts) for parts in self.queries
        )

    def __getstate__(self) -> dict[str, object]:
        return {"schema": self.schema, "queries": self.queries}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of queries in each group, which is 1."""
        return np.ones(len(self.queries), dtype=np.int64)

    @property
    def max_contributions(self) -> NDArray[np.float64]:
        """For each sum, the largest difference between the contributions of two rows."""
        return np.array(
            [max(_ends(parts)[1] - _ends(parts)[0], 1) for parts in self.queries], float
        )

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """The square of the largest difference between two rows' contributions.

        Under add-remove neighbours, the square of the largest absolute contribution.
        """
        if neighbours == "replace-one":
            return self.max_contributions**2
        most = [max(abs(end) for end in _ends(parts)) for parts in self.queries]
        return np.maximum(np.array(most, dtype=np.float64), 1) ** 2

    def select(self, groups: NDArray[np.int64]) -> Sums:
        """The family of some of the sums."""
        return Sums(self.schema, [self.queries[group] for group in groups.tolist()])

    def join(self, other: Family) -> Sums | None:
        """Both families of sums as one."""
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

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Add the contributions of rows to a state."""
        parts, cuts, depth = self._compiled
        atoms = np.empty(matrix.shape, dtype=np.int32)
        fill_atoms(cuts, matrix, atoms)
        count_sums(parts, matrix, atoms, np.zeros(depth), state)

    @cached_property
    def _compiled(self) -> tuple[Parts, Cuts, int]:
        truths = [truth for each in self.truths for truth in each]
        cuts, kernel_cuts = cut_columns(self.schema, truths)
        parts = parts_of(self.schema, QueryLayout.of([self]).sums, cuts)
        return parts, kernel_cuts, depth_of(truths)

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The parts of each sum, for JSON."""
        return {"queries": [[list(part) for part in parts] for parts in self.queries]}, {}

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Sums:  # noqa: ARG003
        """The inverse of ``to_document``."""
        queries = [[Part(*part) for part in parts] for parts in values["queries"]]
        for part in (each for parts in queries for each in parts):
            words = isinstance(part.column, str | None) and isinstance(part.where, str)
            require_sound(words, "sums")
        return cls(schema, queries)

    def lay_out(self, layout: QueryLayout) -> None:
        """Add the sums to a layout."""
        for parts, truths in zip(self.queries, self.truths, strict=True):
            layout.add_sum(parts, truths)


def parts_of(
    schema: Schema, sums: Sequence[SumQuery], cuts: Sequence[NDArray[np.float64]]
) -> Parts:
    """Sums as the arrays that the kernels read.

    Args:
        schema: The schema.
        sums: The sums.
        cuts: The cut points of each column, sorted; they include all breaks of conditions.
    """
    parts = [part for each in sums for part in each.parts]
    queries = [each.query for each in sums for _ in each.parts]
    truths = [truth for each in sums for truth in each.truths]
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
    """Bounds on the contribution of a row: the smallest and the largest."""
    ends = [part.factor * (1 if part.column is None else STEPS) for part in parts]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)


def _checked(schema: Schema, part: Part) -> Truth:
    """The condition of a part, which no row with a null in the part's column meets."""
    if type(part.factor) is not int or not 0 < abs(part.factor) <= 2**20:
        raise WorkloadError(
            f"a sum's factor is a whole number of at most a million, not {part.factor!r}"
        )
    truth: Truth = ConstantTruth(TRUE)
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
    known = ColumnTest(schema.names.index(part.column), (TRUE,), FALSE)
    return both([truth, known])
