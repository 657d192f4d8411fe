"""The layout: the queries of a workload, sorted by the kernels and projectors that handle them.

Families add their queries to a layout (see ``Family.lay_out``). Queries and groups are numbered as
in the workload.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from private_gsd.sql.expressions import Truth
    from private_gsd.workloads.family import Family
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.sums import Part
    from private_gsd.workloads.workload import Workload

    Parameters = Callable[[NDArray[np.int64]], tuple[NDArray[np.float32], NDArray[np.float32]]]
    Met = Callable[[NDArray[np.float64]], NDArray[np.bool_]]


class MarginalTable(NamedTuple):
    """One table of a marginal: its features, its group, and the number of its first query."""

    features: tuple[Feature, ...]
    group: int
    query: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells of each feature."""
        return tuple(feature.size for feature in self.features)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    def of(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """A view of the cells of this table in a vector of counts or shares of all queries."""
        return counts[self.query : self.query + self.size].reshape(self.shape)


class ConjunctionQueries(NamedTuple):
    """Conjunctions; see ``Conjunctions`` for the arrays.

    Attributes:
        query: The number of the first query.
        category: For each query, the position of its discrete column.
        value: For each query, the code of the value.
        numbers: For each query, the positions of its numeric columns.
        thresholds: For each of these columns, the number that its value must be less than.
    """

    query: int
    category: NDArray[np.int64]
    value: NDArray[np.int64]
    numbers: NDArray[np.int64]
    thresholds: NDArray[np.float64]


class HalfspaceQueries(NamedTuple):
    """Halfspaces over the one-hot encoding of all columns.

    Attributes:
        query: The number of the first query.
        size: The number of halfspaces.
        parameters: Returns coefficients (dimensions x queries) and thresholds of some halfspaces.
    """

    query: int
    size: int
    parameters: Parameters


class SumQuery(NamedTuple):
    """One sum.

    Attributes:
        query: The number of the query.
        parts: The parts of the sum.
        truths: The condition of each part.
    """

    query: int
    parts: tuple[Part, ...]
    truths: tuple[Truth, ...]


class FunctionQueries(NamedTuple):
    """Queries without a kernel.

    Attributes:
        query: The number of the first query.
        size: The number of queries.
        met: Decides for each row and each query whether the row meets the query.
    """

    query: int
    size: int
    met: Met


class QueryLayout:
    """The queries of some families, sorted by kernel.

    Attributes:
        size: The number of queries that were added.
        tables: Tables of marginals.
        conjunctions: Conjunctions, family by family.
        halfspaces: Halfspaces, family by family.
        conditions: Conditions on a row, each with the number of its query.
        sums: Sums.
        functions: Queries without a kernel, family by family.
    """

    def __init__(self) -> None:
        self.size = 0
        self._first_group = 0
        self.tables: list[MarginalTable] = []
        self.conjunctions: list[ConjunctionQueries] = []
        self.halfspaces: list[HalfspaceQueries] = []
        self.conditions: list[tuple[int, Truth]] = []
        self.sums: list[SumQuery] = []
        self.functions: list[FunctionQueries] = []

    @classmethod
    def of(cls, families: Iterable[Family]) -> QueryLayout:
        """The layout of families, one after the other."""
        layout = cls()
        for family in families:
            end = layout.size + family.size
            family.lay_out(layout)
            if layout.size != end:
                raise WorkloadError(f"{family.name} must lay out each of their queries once")
            layout._first_group += len(family.group_sizes)
        return layout

    @property
    def forms(self) -> frozenset[str]:
        """The forms that queries have here: the names of the attributes that are not empty."""
        names = ("tables", "conjunctions", "halfspaces", "conditions", "sums", "functions")
        return frozenset(name for name in names if getattr(self, name))

    def add_table(self, features: tuple[Feature, ...], group: int) -> None:
        """Add a table of a marginal; its cells are the next queries, in C order.

        Args:
            features: The features.
            group: The number of the group within its family.
        """
        self.tables.append(MarginalTable(features, self._first_group + group, self.size))
        self.size += self.tables[-1].size

    def add_conjunctions(
        self,
        category: NDArray[np.int64],
        value: NDArray[np.int64],
        numbers: NDArray[np.int64],
        thresholds: NDArray[np.float64],
    ) -> None:
        """Add conjunctions as the next queries."""
        found = ConjunctionQueries(self.size, category, value, numbers, thresholds)
        self.conjunctions.append(found)
        self.size += len(category)

    def add_halfspaces(self, parameters: Parameters, size: int) -> None:
        """Add halfspaces as the next queries."""
        self.halfspaces.append(HalfspaceQueries(self.size, size, parameters))
        self.size += size

    def add_conditions(self, truths: Sequence[Truth]) -> None:
        """Add conditions as the next queries."""
        self.conditions += enumerate(truths, self.size)
        self.size += len(truths)

    def add_sum(self, parts: Sequence[Part], truths: Sequence[Truth]) -> None:
        """Add a sum as the next query."""
        self.sums.append(SumQuery(self.size, tuple(parts), tuple(truths)))
        self.size += 1

    def add_functions(self, met: Met, size: int) -> None:
        """Add queries without a kernel as the next queries."""
        self.functions.append(FunctionQueries(self.size, size, met))
        self.size += size


def marginal_tables(workload: Workload) -> list[MarginalTable]:
    """The tables of all marginals in a workload."""
    return QueryLayout.of(workload.families).tables
