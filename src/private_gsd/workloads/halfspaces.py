"""Halfspaces: random linear inequalities over the one-hot encoding of all columns.

Halfspaces are saved with their coefficients, since a later version of NumPy may draw other numbers
from the same seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.kernels.halfspaces import count_halfspaces
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.checks import require_sound, whole
from private_gsd.workloads.family import SingleQueries
from private_gsd.workloads.offsets import starts_of
from private_gsd.workloads.workload import CELL_LIMIT, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.family import Arrays
    from private_gsd.workloads.layout import QueryLayout

# Queries are drawn and counted in blocks of this size, so that the coefficients of a few hundred
# dimensions stay in the second-level cache.
BLOCK_QUERIES = 256
MAX_DIMENSIONS = 2**16  # a block of coefficients takes 64 MiB


class Halfspaces(SingleQueries):
    """Queries ``<coefficients, one-hot row> <= threshold``, each in a group of its own.

    A discrete column has a dimension for each value, and one for null if it is nullable. A numeric
    column has one dimension, for the number scaled to [0, 1], and one more for null if it is
    nullable. Coefficients are drawn anew from the seed when they are needed, block by block:
    storing 200,000 queries over 1,000 dimensions would take 800 MB.

    Queries that were read from a file have ``kept``, their saved coefficients and thresholds.

    Attributes:
        seed: The seed from which the queries are drawn.
        indices: The numbers of the queries in the sequence that the seed gives.
    """

    name: ClassVar[str] = "halfspaces"
    title: ClassVar[str] = "halfspaces"
    array_names: ClassVar[tuple[str, ...]] = ("indices", "coefficients", "thresholds")

    def __init__(
        self,
        schema: Schema,
        seed: int,
        indices: NDArray[np.int64],
        kept: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None,
    ) -> None:
        self.schema = schema
        self.seed = seed
        self.indices = indices
        self._kept = kept
        self._discrete = [p for p, column in enumerate(schema) if isinstance(column, Discrete)]
        self._numeric = [p for p, column in enumerate(schema) if isinstance(column, Numeric)]
        sizes = [
            (len(column.values) if isinstance(column, Discrete) else 1) + column.nullable
            for column in schema
        ]
        self._sizes = np.array(sizes, dtype=np.int32)
        self._begins = starts_of(sizes).astype(np.int32)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the one-hot encoding, d' in the paper."""
        return int(self._begins[-1])

    @property
    def size(self) -> int:
        """The number of queries."""
        return len(self.indices)

    def select(self, groups: NDArray[np.int64]) -> Halfspaces:
        """The family of some of the queries."""
        kept = None
        if self._kept is not None:
            kept = self._kept[0][:, groups], self._kept[1][groups]
        return Halfspaces(self.schema, self.seed, self.indices[groups], kept)

    def describe(self, group: int) -> str:
        """The number and the seed of the query, since its coefficients would fill a page."""
        return f"halfspace {self.indices[group]} of seed {self.seed}"

    def parameters(
        self, queries: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Coefficients (dimensions x queries) and thresholds of some of the queries."""
        if self._kept is not None:
            return np.ascontiguousarray(self._kept[0][:, queries]), self._kept[1][queries]
        wanted = self.indices[queries]
        coefficients = np.empty((self.dimensions, len(wanted)), dtype=np.float32)
        thresholds = np.empty(len(wanted), dtype=np.float32)
        blocks = wanted // BLOCK_QUERIES
        for block in np.unique(blocks).tolist():
            seeds = np.random.SeedSequence(self.seed, spawn_key=(block,))
            rng = np.random.Generator(np.random.PCG64(seeds))
            drawn = rng.standard_normal((self.dimensions, BLOCK_QUERIES), dtype=np.float32)
            cuts = rng.standard_normal(BLOCK_QUERIES, dtype=np.float32)
            mine = blocks == block
            within = wanted[mine] % BLOCK_QUERIES
            # The variance is 1/d for d columns, since a row has one nonzero entry in each column.
            coefficients[:, mine] = drawn[:, within] * np.float32(1 / np.sqrt(len(self.schema)))
            thresholds[mine] = cuts[within]
        return coefficients, thresholds

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows, a block of queries at a time."""
        rows = self.one_hot(matrix)
        for begin in range(0, len(self.indices), BLOCK_QUERIES):
            queries = np.arange(begin, min(begin + BLOCK_QUERIES, len(self.indices)))
            coefficients, thresholds = self.parameters(queries)
            count_halfspaces(*rows, coefficients, thresholds, state[begin : begin + len(queries)])

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The seed, and the coefficients and thresholds that were drawn from it."""
        coefficients, thresholds = self.parameters(np.arange(len(self.indices)))
        return {"seed": self.seed}, {
            "indices": self.indices,
            "coefficients": coefficients,
            "thresholds": thresholds,
        }

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Halfspaces:
        """The inverse of ``to_document``."""
        indices, coefficients, thresholds = (arrays[name] for name in cls.array_names)
        family = cls(schema, values["seed"], indices, (coefficients, thresholds))
        number = len(indices)
        require_sound(indices.dtype == np.int64 and indices.shape == (number,), "indices")
        require_sound(coefficients.shape == (family.dimensions, number), "coefficients")
        require_sound(thresholds.shape == (number,), "thresholds")
        for each in (coefficients, thresholds):
            require_sound(each.dtype == np.float32 and np.isfinite(each).all(), "coefficients")
        return family

    def lay_out(self, layout: QueryLayout) -> None:
        """Add the halfspaces to a layout."""
        layout.add_halfspaces(self.parameters, len(self.indices))

    def one_hot(
        self, matrix: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Rows as the arguments of the kernel ``count_halfspaces``."""
        null = np.isnan(matrix)
        categories = np.where(null, self._sizes - 1, matrix)[:, self._discrete].astype(np.int32)
        categories += self._begins[self._discrete]
        numbers = matrix[:, self._numeric]
        bounds = np.array(
            [self.schema.columns[p].bounds for p in self._numeric],
            dtype=np.float64,
        ).reshape(-1, 2)
        unit = (numbers - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
        null = null[:, self._numeric]
        dimensions = self._begins[self._numeric] + null.astype(np.int32)
        return categories, dimensions, np.where(null, 1, unit).astype(np.float32)


def random_halfspaces(schema: Schema, count: int, seed: int = 0) -> Workload:
    """Random halfspaces over the one-hot encoding of all columns, as in section 5.2 of the paper.

    Coefficients are normal with variance 1/d for d columns, and thresholds are standard normal.
    Each query is a group of its own. The first n queries do not depend on ``count``.

    Args:
        schema: The public schema.
        count: The number of queries.
        seed: The seed of the queries, which are public.
    """
    count = whole("count", count, 1, CELL_LIMIT)
    seed = whole("seed", seed, 0, 2**63 - 1)
    family = Halfspaces(schema, seed, np.arange(count))
    if family.dimensions > MAX_DIMENSIONS:
        raise WorkloadError(
            f"the one-hot encoding has {family.dimensions:,} dimensions, more than the "
            f"{MAX_DIMENSIONS:,} allowed; leave out the columns with the most values"
        )
    return Workload(schema, (family,))
