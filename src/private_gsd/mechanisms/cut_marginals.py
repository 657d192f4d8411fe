"""Cut marginals: marginals with measured cut points in place of the cells of binary trees."""

from __future__ import annotations

from collections.abc import Container, Mapping, Set
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import expect_type
from private_gsd.schema import Numeric
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import Feature, is_tree_level
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import histogram_feature, numeric_positions
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from private_gsd.schema import Schema

# The largest numbers of cells of a numeric column in marginals.
CELLS = (4, 8, 16)
# Which of them the tables of a marginal have, with one numeric column and with more: coarse cells
# have less noise, fine ones tell more apart.
LEVELS = ((0, 2), (0, 1))


def cut(workload: Workload, features: Mapping[int, tuple[Feature, ...]]) -> Workload:
    """A workload whose marginals have the given features of some columns, in place of even cells.

    Ranges that the user has named stay as they are.

    Args:
        workload: The workload.
        features: For each column that is cut, by its position, its features as in ``CELLS``.
    """
    even = _even_features(workload)
    families = [
        Marginals(
            workload.schema, [_cut_marginal(each, features, even) for each in family.marginals]
        )
        if family.marginals
        else family
        for family in workload.families
    ]
    return Workload(workload.schema, tuple(families))


def _cut_marginal(
    marginal: Marginal, features: Mapping[int, tuple[Feature, ...]], even: Set[Feature]
) -> Marginal:
    numeric = len(set(marginal.positions) & set(features))
    if not numeric or not _all_in(marginal, features, even):
        return marginal
    # A single column has all levels, of which some mechanisms derive the marginals of more.
    single = len(marginal.positions) == 1
    levels = range(len(CELLS)) if single else LEVELS[numeric > 1]
    tables = (
        tuple(
            features[each.position][level] if each.position in features else each for each in table
        )
        for table in marginal.tables
        for level in levels
    )
    return Marginal(tuple(dict.fromkeys(tables)))


def without_single_numbers(workload: Workload) -> Workload | None:
    """A workload without the marginals of one numeric column, of which histograms say more."""
    numeric = set(numeric_positions(workload.schema))
    even = _even_features(workload)
    chosen: list[bool] = []
    for family in workload.families:
        if family.marginals:
            chosen += [
                len(each.positions) > 1
                or not set(each.positions) <= numeric
                or not _all_in(each, numeric, even)
                for each in family.marginals
            ]
        else:
            chosen += [True] * len(family.group_sizes)
    return workload.select(np.flatnonzero(chosen)) if any(chosen) else None


def _even_features(workload: Workload) -> set[Feature]:
    """The features of numeric columns that are levels of binary trees, or ``even_cells``."""
    schema = workload.schema
    numeric = set(numeric_positions(schema))
    features = {
        feature
        for family in workload.families
        for marginal in family.marginals
        for table in marginal.tables
        for feature in table
        if feature.position in numeric
    }
    return {
        each
        for each in features
        if is_tree_level(schema, each) or each in even_cells(schema, each.position)
    }


def _all_in(marginal: Marginal, numeric: Container[int], even: Set[Feature]) -> bool:
    """Whether all features of numeric columns are even ones."""
    return all(
        feature in even
        for table in marginal.tables
        for feature in table
        if feature.position in numeric
    )


def even_cells(schema: Schema, place: int) -> tuple[Feature, ...]:
    """Features with cells of equal width: what marginals have before a column is measured."""
    grid = Grid.of(expect_type(Numeric, schema.columns[place]))
    span = grid.last + 1 - grid.first
    found = []
    for number in CELLS:
        cells = np.arange(number, dtype=np.float64) / number
        starts = grid.first + np.floor(cells * span).astype(np.int64)
        found.append(histogram_feature(schema, place, np.unique(starts)))
    return tuple(found)
