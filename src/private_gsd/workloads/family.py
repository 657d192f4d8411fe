"""The family: queries of one kind, and everything that the program needs to know about them.

A new family is one class in one file and a line in ``families.FAMILIES``. A line in ``specs.SPECS``
gives users a name for its queries, such as ``prefix:1000``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_gsd.errors import WorkloadError

if TYPE_CHECKING:
    from private_gsd.schema import Schema
    from private_gsd.schema.neighbours import Neighbours
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import QueryLayout
    from private_gsd.workloads.marginals import Marginal
    from private_gsd.workloads.patterns import Pattern

Arrays = Mapping[str, NDArray[Any]]

# The cost of one column of a single query in the search, relative to one column of a table.
QUERY_COST = 0.2


class Family(ABC):
    """Queries of one kind.

    Queries form groups, which are measured and selected as a whole. Queries and groups are numbered
    from 0 within the family. The counts of a family are one vector of whole numbers, group after
    group.

    Counting has three steps, so that batches and threads can share the work: ``start`` returns a
    zero state, ``count`` adds rows to a state, and ``finish`` turns a state into counts. States are
    vectors of whole numbers, and can be added.

    The genetic search scores edits with kernels. ``lay_out`` lays the queries out for the kernels:
    as tables, conjunctions, halfspaces, conditions or sums. A family that fits none of these
    defines ``met`` instead, and the search calls ``met`` for batches of rows (see
    ``FunctionSearch``), which is slower.

    Attributes:
        name: The name in the registry and in files: a plural, in lower case.
        title: The name in messages: a plural.
        array_names: The names of the arrays that ``to_document`` returns.
        schema: The public schema.
        marginals: The groups as marginals, if they are marginals; empty for other families.
            Denoising, some mechanisms and some projectors use marginals only.
        histograms: The groups as histograms of single columns, if they are histograms.
        patterns: The groups as patterns of single columns, if they are patterns.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    array_names: ClassVar[tuple[str, ...]] = ()
    schema: Schema
    marginals: tuple[Marginal, ...] = ()
    histograms: tuple[Feature, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    @property
    def fine(self) -> bool:
        """Whether the queries are of single numeric columns, finer than a search looks at them."""
        return bool(self.histograms or self.patterns)

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
        """For each group, the largest change of one of its counts by one row; 1 except for sums."""
        return np.ones(len(self.group_sizes))

    @abstractmethod
    def select(self, groups: NDArray[np.int64]) -> Family:
        """The family of some of the groups."""

    def join(self, other: Family) -> Family | None:  # noqa: ARG002
        """Both families as one, if that counts faster, with the groups in order; else None."""
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
        """For each row of a matrix and each query, whether the row meets the query.

        Args:
            matrix: Encoded rows, with one column for each column of the schema. A number is stored
                as the encoder writes it (see ``data.encoding.encoder``). A category is stored as
                its position in the column's own list of values, so that two categorical columns
                cannot be compared directly. A null is NaN.

        Returns:
            An array of booleans with the shape (rows, queries).
        """
        raise WorkloadError(f"the genetic search has no kernel for {type(self).__name__} queries")

    # Files

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The family as values for JSON and as arrays with names, to be saved."""
        raise WorkloadError(f"a family of {type(self).__name__} cannot be saved")

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Family:  # noqa: ARG003
        """The inverse of ``to_document``.

        A document may be damaged or forged, and kernels check nothing. This method must raise an
        error for every document that the kernels could not handle.
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
        """The estimated cost of these queries in the search; a table of one column costs 1."""
        if self.marginals:
            tables = (table for marginal in self.marginals for table in marginal.tables)
            return float(sum(len(features) for features in tables))
        return QUERY_COST * float(self.size) * len(self.schema)


class SingleQueries(Family):
    """Queries that a row meets or does not meet, each in a group of its own."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of queries."""

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of queries in each group, which is 1."""
        return np.ones(self.size, dtype=np.int64)

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:  # noqa: ARG002
        """1 for each group: adding, removing or replacing a row changes a count by at most 1."""
        return np.ones(self.size)
