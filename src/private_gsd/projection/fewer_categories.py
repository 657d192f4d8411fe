"""Fewer categories: columns whose rare categories were joined are fitted by their joined cells.

A column of thousands of categories is measured by itself, and in other marginals by joined cells
(``mechanisms.joined_categories``). A projector would try thousands of categories for every value,
of which it cannot tell one cell's apart but by the single column. So it gets a schema in which each
cell is a category, and each value of its table is then drawn among the categories of its cell, as
often as the single column says. All marginals stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.level_estimates import on_simplex
from private_gsd.measurements.measurements import Measurements
from private_gsd.schema import Categorical
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import Feature
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from private_gsd.workloads.layout import MarginalTable

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FewerCategories:
    """Measurements in which cells are the categories of some columns.

    Attributes:
        measured: The measurements, of another schema.
        cells: For each of these columns, by its position, the cell of each category.
        shares: For each of these columns, the estimated share of each category.
    """

    measured: Measurements
    cells: Mapping[int, NDArray[np.int64]]
    shares: Mapping[int, Vector]

    @classmethod
    def of(cls, measured: Measurements) -> FewerCategories | None:
        """The measurements with fewer categories; None where no column has joined ones.

        Not with rules or with queries other than marginals, which may ask for a category.
        """
        schema, families = measured.workload.schema, measured.workload.families
        if schema.constraints or not all(family.marginals for family in families):
            return None
        tables = marginal_tables(measured.workload)
        joined = _joined_columns(tables)
        if not joined:
            return None
        columns = list(schema.columns)
        for place, (feature, _) in joined.items():
            numbers = list(range(feature.size - feature.nullable))
            known = columns[place]
            columns[place] = Categorical(known.name, values=numbers, nullable=known.nullable)
        fewer = replace(schema, columns=tuple(columns))
        groups: list[list[tuple[Feature, ...]]] = []
        counts, scales = [], measured.scales.copy()
        for table in tables:
            if table.group == len(groups):
                groups.append([])
            cells = table.of(measured.counts)
            groups[table.group].append(tuple(_renamed(each, joined) for each in table.features))
            [*others, last] = table.features
            if not others and last.position in joined and not last.joins_categories:
                feature = joined[last.position][0]
                owners = feature.cells_of_atoms(np.empty(0))
                summed = np.bincount(owners, weights=cells, minlength=feature.size)
                cells = summed.astype(np.float64)
                # The root mean square: cells of many categories have more noise than others.
                scales[table.group] *= np.sqrt(len(owners) / feature.size)
            counts.append(cells.ravel())
        found = Measurements(
            Workload(fewer, (Marginals(fewer, [Marginal(tuple(each)) for each in groups]),)),
            np.concatenate(counts),
            scales,
            measured.n_records,
            measured.charges,
            measured.private,
            measured.neighbours,
        )
        shares = {
            place: on_simplex(single.of(measured.counts) / measured.n_records)
            for place, (_, single) in joined.items()
        }
        cells_of = {place: np.array(f.segments) for place, (f, _) in joined.items()}
        return cls(found, cells_of, shares)

    def joined(self, matrix: Matrix) -> Matrix:
        """A table with the categories of the schema, with cells in their place.

        Args:
            matrix: The table.
        """
        made = matrix.copy(order="F")
        for place, cells in self.cells.items():
            known = ~np.isnan(matrix[:, place])
            made[known, place] = cells[matrix[known, place].astype(np.int64)]
        return made

    def expanded(self, matrix: Matrix, seed: int) -> Matrix:
        """A table of the projector with the categories of the schema.

        Args:
            matrix: The table.
            seed: The seed of the projection.
        """
        rng = np.random.default_rng([seed, 3])
        made = matrix.copy(order="F")
        for place, cells in self.cells.items():
            for cell in range(int(cells.max()) + 1):
                rows = np.flatnonzero(matrix[:, place] == cell)
                members = np.flatnonzero(cells == cell)
                weights = self.shares[place][members]
                made[rows, place] = members[_spread(weights, len(rows), rng)]
        return made


def _joined_columns(
    tables: list[MarginalTable],
) -> dict[int, tuple[Feature, MarginalTable]]:
    """For columns that are joined in all marginals but a single one: the feature, and that one."""
    several: dict[int, set[Feature]] = {}
    single: dict[int, MarginalTable] = {}
    for table in tables:
        for feature in table.features:
            if len(table.features) == 1 and not feature.joins_categories:
                single[feature.position] = table
            else:
                several.setdefault(feature.position, set()).add(feature)
    return {
        place: (feature, single[place])
        for place, (feature, *more) in several.items()
        if feature.joins_categories and not more and place in single
    }


def _renamed(feature: Feature, joined: Mapping[int, tuple[Feature, object]]) -> Feature:
    """The feature in a schema in which cells are categories."""
    if feature.position not in joined:
        return feature
    cells = joined[feature.position][0]
    return Feature(
        feature.position, tuple(range(cells.size - cells.nullable)), nullable=cells.nullable
    )


def _spread(weights: Vector, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """So many members, in random order, each as often as its weight says, to a whole number."""
    total = weights.sum()
    even = np.full(len(weights), 1 / len(weights))
    edges = np.cumsum(weights / total if total > 0 else even) * number
    # Systematic sampling: each member has the whole numbers between its edges, moved by chance.
    at = (np.arange(number) + rng.random()).clip(max=number)
    chosen = np.minimum(np.searchsorted(edges, at, side="right"), len(weights) - 1)
    return rng.permutation(chosen)
