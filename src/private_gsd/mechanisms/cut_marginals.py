"""Cut marginals: marginals with measured cut points in place of the cells of binary trees."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence, Set
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import MeasurementError, WorkloadError, expect_type
from private_gsd.schema import Numeric
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import Feature, is_tree_level
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import histogram_feature, numeric_positions
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.knowledge import KnowledgeOf
    from private_gsd.schema import Schema

# The largest numbers of cells of a numeric column in marginals.
CELLS = (4, 8, 16)
# The numbers of cells that a numeric column may have in the joint table of all columns.
JOINT_CELLS = (2, 4, 8, 16)
# The least count of a cell is this many times the noise on a count of a marginal.
CELL_NOISE = 3.0
# Which of them the tables of a marginal have, with one numeric column and with more: coarse cells
# have less noise, fine ones tell more apart.
LEVELS = ((0, 2), (0, 1))


def cut(
    workload: Workload,
    features: Mapping[int, tuple[Feature, ...]],
    levels: Sequence[int] = range(len(CELLS)),
) -> Workload:
    """A workload whose marginals have the given features of some columns, in place of even cells.

    Ranges that the user has named stay as they are, also beside a column that is cut.

    Args:
        workload: The workload.
        features: For each column that is cut, by its position, its features as in ``CELLS``.
        levels: Which of its features the marginal of a single column has.
    """
    even = _even_features(workload)
    families = [
        Marginals(
            workload.schema,
            [_cut_marginal(each, features, even, levels) for each in family.marginals],
        )
        if family.marginals
        else family
        for family in workload.families
    ]
    return Workload(workload.schema, tuple(families))


def _cut_marginal(
    marginal: Marginal,
    features: Mapping[int, tuple[Feature, ...]],
    even: Set[Feature],
    of_columns: Sequence[int],
) -> Marginal:
    even = {each for table in marginal.tables for each in table} & even
    numeric = {each.position for each in even} & set(features)
    if not numeric:
        return marginal
    if len(marginal.positions) > 2 and len(marginal.tables) == 1:
        (table,) = marginal.tables
        return Marginal((tuple(_of_as_many(each, features, even) for each in table),))
    levels = of_columns if len(marginal.positions) == 1 else LEVELS[len(numeric) > 1]
    tables = (
        tuple(
            features[each.position][level] if each in even and each.position in numeric else each
            for each in table
        )
        for table in marginal.tables
        for level in levels
    )
    return Marginal(tuple(dict.fromkeys(tables)))


def _of_as_many(
    feature: Feature, features: Mapping[int, tuple[Feature, ...]], even: Set[Feature]
) -> Feature:
    """The feature that is cut where the data is, with as many cells: of a joint table."""
    if feature not in even or feature.position not in features:
        return feature
    number = feature.size - feature.nullable
    joint = features[feature.position][len(CELLS) :]
    return joint[int(np.searchsorted(JOINT_CELLS[:-1], number))]


def without_single_numbers(workload: Workload, *, drop: bool = True) -> Workload | None:
    """A workload without the marginals of one numeric column, of which histograms say more.

    Histograms and patterns of another run are left out too.

    Args:
        workload: The workload.
        drop: Whether marginals of one numeric column are left out.
    """
    numeric = set(numeric_positions(workload.schema))
    even = _even_features(workload)
    chosen: list[bool] = []
    for family in workload.families:
        if family.marginals:
            chosen += [
                not drop
                or len(each.positions) > 1
                or not set(each.positions) <= numeric
                or not _all_in(each, numeric, even)
                for each in family.marginals
            ]
        else:
            chosen += [not family.fine] * len(family.group_sizes)
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
    starts = (_even_starts(_grid(schema, place), number) for number in (*CELLS, *JOINT_CELLS))
    return tuple(histogram_feature(schema, place, each) for each in starts)


def coarser_number(schema: Schema, feature: Feature, number: int) -> Feature:
    """A feature of a numeric column with fewer cells: even ones, or its own ones, joined.

    Args:
        schema: The schema.
        feature: The feature.
        number: The number of cells beside null.
    """
    place = feature.position
    if feature in even_cells(schema, place):
        return histogram_feature(schema, place, _even_starts(_grid(schema, place), number))
    places = np.arange(1, number) * len(feature.segments) // number
    if feature.has_gap:
        raise WorkloadError(
            f"column {schema.names[place]!r}: a joint table needs ranges that leave no value out"
        )
    breaks = tuple(feature.breaks[cell - 1] for cell in places.tolist())
    return Feature(place, tuple(range(len(breaks) + 1)), breaks, feature.nullable)


def _even_starts(grid: Grid, number: int) -> NDArray[np.int64]:
    """The first step of each of some cells of equal width."""
    cells = np.arange(number, dtype=np.float64) / number
    span = grid.last + 1 - grid.first
    return np.unique(grid.first + np.floor(cells * span).astype(np.int64))


def without_cuts(workload: Workload, places: Container[int]) -> Workload:
    """A workload in which measured cut points of some columns are none: they are not known yet.

    Args:
        workload: The workload, with even cells.
        places: The positions of the columns.
    """
    schema = workload.schema
    whole = {
        place: (histogram_feature(schema, place, np.array([_grid(schema, place).first])),)
        for place in numeric_positions(schema)
        if place in places
    }
    number = len(CELLS) + len(JOINT_CELLS)
    return cut(workload, {place: each * number for place, each in whole.items()})


def check_conditions(knowledge: KnowledgeOf, certain: Workload) -> None:
    """Refuse derived statistics with conditions whose cut points may not be measured.

    Args:
        knowledge: What is known beside the measurements.
        certain: The candidate queries that are measured in any case, with even cells.
    """
    places = knowledge.cut_numbers
    try:
        knowledge.check(without_cuts(certain, places))
    except MeasurementError as error:
        names = ", ".join(certain.schema.names[place] for place in sorted(places))
        raise WorkloadError(
            f"a derived statistic has a condition on {names}, and numbers-first cuts columns where "
            "the data is; name the ranges of the condition in the workload, or use another "
            "mechanism, such as 'one-shot'"
        ) from error


def most_atoms(workload: Workload, other: Workload | None) -> Workload:
    """A workload whose even cells are replaced by cells with as many atoms as any measured ones.

    Where a cut point is also one of a range that the user has named, or of other queries, it makes
    no atom. Here none of them is, where the grid of the column has room.

    Args:
        workload: The workload, with even cells.
        other: Other queries that are fitted with it.
    """
    schema, even = workload.schema, _even_features(workload)
    named: dict[int, set[float]] = {place: set() for place in numeric_positions(schema)}
    tables = [
        *((feature, True) for table in marginal_tables(workload) for feature in table.features),
        *(
            (feature, False)
            for table in ([] if other is None else marginal_tables(other))
            for feature in table.features
        ),
    ]
    for feature, mine in tables:
        if feature.position in named and not (mine and feature in even):
            named[feature.position].update(feature.breaks)
    return cut(workload, {place: _cells_apart(schema, place, named[place]) for place in named})


def _cells_apart(schema: Schema, place: int, breaks: Set[float]) -> tuple[Feature, ...]:
    """Features of a column with about even cells.

    No cut point is among some others, while the grid has room; a model of some groups only does
    not have those others, and may have as many cells as there are steps.
    """
    grid = _grid(schema, place)
    taken = {grid.first, *grid.starts(tuple(sorted(breaks))).tolist()}
    starts = [grid.first]
    for start in _even_starts(grid, CELLS[-1])[1:].tolist():
        for others in (taken, starts):
            # A grid may have far more steps than fit into memory.
            steps = itertools.chain(range(start, grid.last + 1), range(start, grid.first, -1))
            apart = next((step for step in steps if step not in others), None)
            if apart is not None:
                starts.append(apart)
                taken.add(apart)
                break
    finest = np.array(sorted(starts), dtype=np.int64)
    # The cells of each feature are those of the next, joined; as many as there may be.
    return tuple(
        histogram_feature(
            schema, place, finest[np.unique(np.arange(number) * len(finest) // number)]
        )
        for number in (*CELLS, *JOINT_CELLS)
    )


def _grid(schema: Schema, place: int) -> Grid:
    return Grid.of(expect_type(Numeric, schema.columns[place]))
