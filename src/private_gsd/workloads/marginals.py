"""The family of marginals: tables of cells over sets of columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.workloads.checks import require_sound
from private_gsd.workloads.family import Family
from private_gsd.workloads.features import Feature
from private_gsd.workloads.joint_tables import JointTables, View, atoms_of, views_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.schema.neighbours import Neighbours
    from private_gsd.workloads.family import Arrays

# The largest number of cells of the finest tables, in which marginals are counted.
FINEST_LIMIT = 2**25


@dataclass(frozen=True)
class Marginal:
    """A set of columns with one or more tables; a table has one feature of each column."""

    tables: tuple[tuple[Feature, ...], ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the columns in the schema."""
        return tuple(feature.position for feature in self.tables[0])

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The view that the marginal has of each of its columns."""
        return views_of(self)

    @cached_property
    def size(self) -> int:
        """The number of cells in all tables."""
        return sum(math.prod(feature.size for feature in table) for table in self.tables)


class Marginals(Family):
    """A family of marginals, each in a group of its own.

    Args:
        schema: The public schema.
        marginals: The marginals.
    """

    name: ClassVar[str] = "marginals"
    title: ClassVar[str] = "marginals"

    def __init__(self, schema: Schema, marginals: Iterable[Marginal]) -> None:
        self.schema = schema
        self.marginals = tuple(marginals)
        finest = {marginal.views for marginal in self.marginals}
        cells = sum(
            math.prod(atoms_of(schema.columns[view.position], view) for view in each)
            for each in finest
        )
        if cells > FINEST_LIMIT:
            raise WorkloadError(
                f"the marginals would be counted in {cells:,} cells, more than the "
                f"{FINEST_LIMIT:,} allowed; take fewer columns, levels or intervals at once"
            )

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of cells of each marginal."""
        return np.array([marginal.size for marginal in self.marginals], dtype=np.int64)

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """The squared L2 sensitivity of each marginal; a row is in at most one cell of a table."""
        if neighbours == "add-remove":
            each = [float(len(marginal.tables)) for marginal in self.marginals]
        else:
            each = [float(sum(map(_replaced, marginal.tables))) for marginal in self.marginals]
        return np.array(each)

    def select(self, groups: NDArray[np.int64]) -> Marginals:
        """The family of some of the marginals."""
        return Marginals(self.schema, (self.marginals[group] for group in groups.tolist()))

    def join(self, other: Family) -> Marginals | None:
        """Both families of marginals as one, which is counted in one pass."""
        if not isinstance(other, Marginals):
            return None
        return Marginals(self.schema, self.marginals + other.marginals)

    def describe(self, group: int) -> str:
        """The names of the marginal's columns."""
        return " x ".join(self.schema.names[place] for place in self.marginals[group].positions)

    def query(self, group: int, cell: int) -> str:
        """The condition of one cell of the marginal's tables."""
        for table in self.marginals[group].tables:
            sizes = [feature.size for feature in table]
            if cell < math.prod(sizes):
                cells = np.unravel_index(cell, sizes)
                words = [
                    feature.condition(self.schema, int(each))
                    for feature, each in zip(table, cells, strict=True)
                ]
                return " AND ".join(words)
            cell -= math.prod(sizes)
        raise IndexError(cell)

    @cached_property
    def _joint(self) -> JointTables:
        return JointTables(self.schema, self.marginals)

    def start(self) -> NDArray[np.int64]:
        """Zeros, one for each cell of the joint tables."""
        return np.zeros(self._joint.size, dtype=np.int64)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows in the joint tables."""
        self._joint.count(matrix, state)

    def finish(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum the joint tables down to the marginals."""
        return np.concatenate(
            [self._joint.counts_of(number, state) for number in range(len(self.marginals))]
        )

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The features, and the tables of each marginal as numbers of features."""
        features: dict[Feature, int] = {}
        groups = [
            [[features.setdefault(f, len(features)) for f in table] for table in marginal.tables]
            for marginal in self.marginals
        ]
        return {"features": [each.to_dict() for each in features], "groups": groups}, {}

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Marginals:  # noqa: ARG003
        """The inverse of ``to_document``."""
        features = [Feature.from_dict(schema, each) for each in values["features"]]
        marginals = [
            Marginal(tuple(tuple(features[f] for f in table) for table in group))
            for group in values["groups"]
        ]
        for marginal in marginals:
            places = [tuple(feature.position for feature in table) for table in marginal.tables]
            same = len(set(places)) == 1 and len(places[0]) > 0
            require_sound(same, "tables of different columns")
            require_sound(len(set(places[0])) == len(places[0]), "a column that stands twice")
        return cls(schema, marginals)


def _replaced(table: tuple[Feature, ...]) -> int:
    """The squared change of a table if a row is replaced: one cell loses it, another gains it."""
    cells = math.prod(feature.size for feature in table)
    if cells > 1:
        return 2
    return int(any(feature.has_gap for feature in table))
