"""The family: queries of one kind, and everything that the program needs to know of them.

A new family is one class in one file, a line in ``families.FAMILIES``, and, where users are to name
it in a text such as ``prefix:1000``, a line in ``specs.SPECS``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from private_gsd.errors import WorkloadError

if TYPE_CHECKING:
    from private_gsd.schema import Schema
    from private_gsd.workloads.layout import QueryLayout
    from private_gsd.workloads.marginals import Marginal

Arrays = Mapping[str, NDArray[Any]]
Neighbours = Literal["replace-one", "add-remove"]

# What a column of a single query costs the search, where a column of a table costs 1.
QUERY_COST = 0.2


class Family(ABC):
    """Queries of one kind.

    Queries stand in groups, which are measured and selected as one, and both are numbered from 0
    within the family. The counts of a family are one vector of whole numbers, group after group.

    Counting has three steps, so that batches and threads can share the work: ``start`` gives a zero
    state, ``count`` adds rows to a state, and ``finish`` turns a state into counts. States are
    vectors of whole numbers, and add up.

    The genetic search scores edits with kernels. ``lay_out`` says how the queries are laid out for
    them: as tables, conjunctions, halfspaces, conditions or sums. A family that fits none of these
    defines ``met`` instead, and the search calls it for batches of rows, which is slower.

    Attributes:
        name: The name in the registry and in files: a plural, in lower case.
        title: The name in messages: a plural.
        array_names: The names of the arrays that ``to_document`` gives.
        schema: The public schema.
        marginals: The groups as marginals, where they are marginals: denoising, some mechanisms
            and some projectors take nothing else. Empty for other families.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    array_names: ClassVar[tuple[str, ...]] = ()
    schema: Schema
    marginals: tuple[Marginal, ...] = ()

    # Queries and groups

    @property
    @abstractmethod
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of queries in each group."""

    @property
    def size(self) -> int:
        """The number of queries."""
        return int(self.group_sizes.sum())

    @property
    def max_contributions(self) -> NDArray[np.float64]:
        """For each group, the most that one row can move one of its counts: 1 but for sums."""
        return np.ones(len(self.group_sizes))

    @abstractmethod
    def select(self, groups: NDArray[np.int64]) -> Family:
        """The family of some of the groups."""

    def join(self, other: Family) -> Family | None:  # noqa: ARG002
        """Both families as one, where that counts faster; the groups keep their order."""
        return None

    # Words

    @abstractmethod
    def describe(self, group: int) -> str:
        """A group in words, on one line."""

    def query(self, group: int, cell: int) -> str:  # noqa: ARG002
        """One query of a group in words: as SQL, where that is possible."""
        return self.describe(group)

    # Sensitivity

    @abstractmethod
    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """For each group, the square of the L2 sensitivity of its counts."""

    # Counting

    def start(self) -> NDArray[np.int64]:
        """The state before any row was counted."""
        return np.zeros(self.size, dtype=np.int64)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Add the rows of a matrix to a state."""
        state += self.met(matrix).sum(axis=0)

    def finish(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of a state: for every query, how many rows meet it."""
        return state

    def met(self, matrix: NDArray[np.float64]) -> NDArray[np.bool_]:  # noqa: ARG002
        """For each row of a matrix and each query, whether the row meets the query."""
        raise WorkloadError(f"the genetic search has no kernel for {type(self).__name__} queries")

    # Files

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The family as values for JSON and as arrays with names, to be saved."""
        raise WorkloadError(f"a family of {type(self).__name__} cannot be saved")

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Family:  # noqa: ARG003
        """The inverse of ``to_document``.

        What is read may be damaged or forged, and kernels check nothing: a document that is not
        sound must raise an error here.
        """
        raise WorkloadError(f"unknown family of queries {cls.name!r}")

    # The search

    def lay_out(self, layout: QueryLayout) -> None:
        """Add all queries to a layout, in their order."""
        if self.marginals:
            for group, marginal in enumerate(self.marginals):
                for features in marginal.tables:
                    layout.add_table(features, group)
        else:
            layout.add_functions(self.met, self.size)

    @property
    def search_cost(self) -> float:
        """What the search spends on these queries, where a table of a single column costs 1."""
        if self.marginals:
            tables = (table for marginal in self.marginals for table in marginal.tables)
            return float(sum(len(features) for features in tables))
        return QUERY_COST * float(self.size) * len(self.schema)


class SingleQueries(Family):
    """Conditions that a row meets or not, each a group of its own."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of queries."""

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """One query a group."""
        return np.ones(self.size, dtype=np.int64)

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:  # noqa: ARG002
        """One row more or less, or another in its place, changes a count by at most one."""
        return np.ones(self.size)
