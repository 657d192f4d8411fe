"""The family of histograms: partitions of single numeric columns, level by level ever finer.

They are measured before all else, and say where to cut a column in tables of several columns, and
how its values are distributed within a cell. See ``measurements.column_distributions``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import expect_type
from private_gsd.schema import Numeric
from private_gsd.workloads.checks import require_sound
from private_gsd.workloads.family import Family
from private_gsd.workloads.features import Feature
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.marginals import Marginal, Marginals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.schema.neighbours import Neighbours
    from private_gsd.workloads.family import Arrays
    from private_gsd.workloads.layout import QueryLayout


class Histograms(Family):
    """A family of histograms, each in a group of its own. Every row is in one cell of each.

    Args:
        schema: The public schema.
        histograms: For each histogram, its column and its cells.
    """

    name: ClassVar[str] = "histograms"
    title: ClassVar[str] = "histograms"

    def __init__(self, schema: Schema, histograms: Iterable[Feature]) -> None:
        self.schema = schema
        self.histograms = tuple(histograms)

    @cached_property
    def _tables(self) -> Marginals:
        """The histograms as marginals of one column each, which count the same."""
        return Marginals(self.schema, [Marginal(((feature,),)) for feature in self.histograms])

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of cells of each histogram."""
        return np.array([feature.size for feature in self.histograms], dtype=np.int64)

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """The squared L2 sensitivity of each histogram; a row is in one of its cells."""
        return self._tables.squared_sensitivities(neighbours)

    def select(self, groups: NDArray[np.int64]) -> Histograms:
        """The family of some of the histograms."""
        return Histograms(self.schema, (self.histograms[group] for group in groups.tolist()))

    def describe(self, group: int) -> str:
        """The column, and the number of cells."""
        feature = self.histograms[group]
        return f"{self.schema.names[feature.position]} (histogram of {feature.size:,} cells)"

    def query(self, group: int, cell: int) -> str:
        """The condition of one cell."""
        return self.histograms[group].condition(self.schema, cell)

    def start(self) -> NDArray[np.int64]:
        """The state before any row was counted."""
        return self._tables.start()

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows in the cells."""
        self._tables.count(matrix, state)

    def finish(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of all cells."""
        return self._tables.finish(state)

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The cells of each histogram."""
        return {"features": [feature.to_dict() for feature in self.histograms]}, {}

    @classmethod
    def from_document(cls, schema: Schema, values: Mapping[str, Any], arrays: Arrays) -> Histograms:  # noqa: ARG003
        """The inverse of ``to_document``."""
        features = [Feature.from_dict(schema, each) for each in values["features"]]
        for feature in features:
            numeric = isinstance(schema.columns[feature.position], Numeric)
            require_sound(numeric and not feature.has_gap, "histograms")
        return cls(schema, features)

    def lay_out(self, layout: QueryLayout) -> None:
        """Add the histograms to a layout, as tables of one column."""
        for group, feature in enumerate(self.histograms):
            layout.add_table((feature,), group)

    @property
    def search_cost(self) -> float:
        """The estimated cost in the search; histograms are summed to coarser cells before it."""
        return float(len(self.histograms))


def histogram_feature(schema: Schema, position: int, starts: NDArray[np.int64]) -> Feature:
    """The feature of a histogram.

    Args:
        schema: The public schema.
        position: The position of the column.
        starts: The first step of each cell on the column's grid.
    """
    column = expect_type(Numeric, schema.columns[position])
    breaks = Grid.of(column).breaks(starts)
    return Feature(position, tuple(range(len(starts))), breaks, column.nullable)


def numeric_positions(schema: Schema) -> list[int]:
    """The positions of the numeric columns, dates included."""
    return [place for place, column in enumerate(schema) if isinstance(column, Numeric)]


def first_histograms(schema: Schema) -> Histograms:
    """The first, coarsest histogram of every numeric column."""
    places = numeric_positions(schema)
    columns = [expect_type(Numeric, schema.columns[place]) for place in places]
    return Histograms(
        schema,
        [
            histogram_feature(schema, place, Grid.of(column).first_cells())
            for place, column in zip(places, columns, strict=True)
        ],
    )
