"""Kernel arrays: tables, conjunctions and halfspaces as the flat arrays that the kernels read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.conjunctions import Conditions
from private_gsd.kernels.halfspaces import Directions
from private_gsd.kernels.marginals import LANES, MarginalTables
from private_gsd.schema import Discrete
from private_gsd.workloads.offsets import starts_of
from private_gsd.workloads.programs import cuts_of_truths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from private_gsd.schema import Schema
    from private_gsd.sql.expressions import Truth
    from private_gsd.workloads.layout import (
        ConjunctionQueries,
        HalfspaceQueries,
        MarginalTable,
        QueryLayout,
    )


def cuts_of(
    schema: Schema, layout: QueryLayout, truths: Sequence[Truth]
) -> list[NDArray[np.float64]]:
    """For each column, the sorted cut points of all queries.

    Args:
        schema: The schema.
        layout: The queries.
        truths: All conditions, including those of sums and of the schema's rules.
    """
    found = cuts_of_truths(schema, truths)
    for feature in {feature for table in layout.tables for feature in table.features}:
        found[feature.position].update(feature.breaks)
    for family in layout.conjunctions:
        for place in np.unique(family.numbers).tolist():
            low, high = schema.columns[place].bounds
            thresholds = family.thresholds[family.numbers == place]
            inside = thresholds[(thresholds > low) & (thresholds <= high)]
            found[place].update(inside.tolist())
    return [np.array(sorted(each), dtype=np.float64) for each in found]


def tables_of(
    schema: Schema,
    tables: Sequence[MarginalTable],
    cuts: Sequence[NDArray[np.float64]],
    weights: NDArray[np.float64],
) -> MarginalTables:
    """Lay out residuals so that, for each feature of a table, one copy has it as the last axis.

    Args:
        schema: The schema.
        tables: The tables; all queries of a table have the same weight.
        cuts: The cut points of each column.
        weights: The weight of each query.
    """
    features = sorted(
        {feature for table in tables for feature in table.features},
        key=lambda feature: (feature.position, feature.size, feature.segments, feature.breaks),
    )
    number = {feature: place for place, feature in enumerate(features)}
    maps = [feature.cells_of_atoms(cuts[feature.position]) for feature in features]
    most = max((len(table.features) for table in tables), default=1)
    rest = max(most - 1, 1)
    by_feature: list[list[tuple[MarginalTable, int, list[int], list[list[int]]]]] = [
        [] for _ in features
    ]
    sources = []
    base = 0
    for table in tables:
        shape = [feature.size for feature in table.features]
        cells = table.query + np.arange(math.prod(shape)).reshape(shape)
        bases, strides = [], []
        for own in range(len(shape)):
            axes = [axis for axis in range(len(shape)) if axis != own] + [own]
            sources.append(cells.transpose(axes).ravel())
            apart = [0] * len(shape)
            step = 1
            for axis in reversed(axes):
                apart[axis] = step
                step *= shape[axis]
            bases.append(base)
            strides.append(apart)
            base += cells.size
        for own, feature in enumerate(table.features):
            by_feature[number[feature]].append((table, own, bases, strides))
    entries = [entry for each in by_feature for entry in each]
    size = len(entries)
    others = np.full((size, rest), len(features), dtype=np.int64)
    near = np.zeros((size, rest), dtype=np.int64)
    query_strides = np.zeros((size, rest), dtype=np.int64)
    query_own = np.zeros(size, dtype=np.int64)
    orders = np.zeros(size, dtype=np.int64)
    order_bases = np.zeros((size, most), dtype=np.int64)
    order_own = np.zeros((size, most), dtype=np.int64)
    order_strides = np.zeros((size, most, rest), dtype=np.int64)
    for place, (table, own, bases, strides) in enumerate(entries):
        shape = [feature.size for feature in table.features]
        axes = [axis for axis in range(len(shape)) if axis != own]
        orders[place] = len(shape)
        query_own[place] = math.prod(shape[own + 1 :])
        for other, axis in enumerate(axes):
            others[place, other] = number[table.features[axis]]
            near[place, other] = strides[own][axis]
            query_strides[place, other] = math.prod(shape[axis + 1 :])
        for order in range(len(shape)):
            order_bases[place, order] = bases[order]
            order_own[place, order] = strides[order][own]
            order_strides[place, order, : len(axes)] = [strides[order][axis] for axis in axes]
    positions = [feature.position for feature in features]
    lanes = [-(-feature.size // LANES) * LANES for feature in features]
    return MarginalTables(
        feature_starts=np.searchsorted(positions, np.arange(len(schema) + 1)),
        atom_cells=_joined(maps, np.int32),
        atom_starts=starts_of([len(each) for each in maps]),
        slots=starts_of(lanes),
        entry_starts=starts_of([len(each) for each in by_feature]),
        weights=np.array([weights[entry[0].query] for entry in entries], dtype=np.float64),
        weight_sums=np.array(
            [sum(weights[entry[0].query] for entry in each) for each in by_feature], float
        ),
        others=others,
        bases=np.array([entry[2][entry[1]] for entry in entries], dtype=np.int64),
        strides=near,
        first=np.array([entry[1] == 0 for entry in entries], dtype=np.bool_),
        queries=np.array([entry[0].query for entry in entries], dtype=np.int64),
        query_own=query_own,
        query_strides=query_strides,
        orders=orders,
        order_bases=order_bases,
        order_own=order_own,
        order_strides=order_strides,
        sources=_joined(sources, np.int32),
    )


def conditions_of(
    schema: Schema, families: Sequence[ConjunctionQueries], cuts: Sequence[NDArray[np.float64]]
) -> Conditions:
    """Each conjunction as spans of atoms, with an entry for each of its columns.

    Args:
        schema: The schema.
        families: Conjunctions, family by family.
        cuts: Where each column is cut.
    """
    most = max((1 + family.numbers.shape[1] for family in families), default=1)
    always = np.iinfo(np.int64).max
    parts = []
    for family in families:
        size = len(family.category)
        columns = np.full((size, most), -1, dtype=np.int64)
        lows = np.zeros((size, most), dtype=np.int64)
        highs = np.full((size, most), always, dtype=np.int64)
        columns[:, 0] = family.category
        lows[:, 0] = family.value
        highs[:, 0] = family.value + 1
        for at in range(family.numbers.shape[1]):
            columns[:, 1 + at] = family.numbers[:, at]
            for place in np.unique(family.numbers[:, at]).tolist():
                mine = family.numbers[:, at] == place
                thresholds = family.thresholds[mine, at]
                # All atoms below the cut at the threshold; none or all if it is no cut.
                below = np.searchsorted(cuts[place], thresholds, side="left") + 1
                highs[mine, 1 + at] = np.where(
                    thresholds <= schema.columns[place].bounds[0], 0, below
                )
        for later in range(most):  # two conditions on one column become one
            for earlier in range(later):
                same = (columns[:, later] >= 0) & (columns[:, later] == columns[:, earlier])
                highs[same, earlier] = np.minimum(highs[same, earlier], highs[same, later])
                columns[same, later], lows[same, later], highs[same, later] = -1, 0, always
        parts.append((family.query + np.arange(size), columns, lows, highs))
    queries = _joined([part[0] for part in parts], np.int64)
    columns, lows, highs = (
        np.concatenate([np.empty((0, most), dtype=np.int64), *(part[at] for part in parts)])
        for at in (1, 2, 3)
    )
    # One entry for each condition, sorted by column, with the other conditions of its query.
    at_query, at_condition = np.nonzero(columns >= 0)
    order = np.argsort(columns[at_query, at_condition], kind="stable")
    at_query, at_condition = at_query[order], at_condition[order]
    own = columns[at_query, at_condition]
    beside = np.array(
        [[other for other in range(most) if other != own] for own in range(most)], dtype=np.int64
    ).reshape(most, most - 1)[at_condition]
    others = columns[at_query[:, None], beside]
    return Conditions(
        starts=np.searchsorted(own, np.arange(len(schema) + 1)),
        queries=queries[at_query],
        lows=lows[at_query, at_condition],
        highs=highs[at_query, at_condition],
        others=np.maximum(others, 0),
        other_lows=lows[at_query[:, None], beside],
        other_highs=highs[at_query[:, None], beside],
        first=at_condition == (columns[at_query] >= 0).argmax(axis=1),
    )


def directions_of(
    schema: Schema, families: Sequence[HalfspaceQueries], weights: NDArray[np.float64]
) -> Directions:
    """The halfspaces of all families in one set of arrays.

    Args:
        schema: The schema.
        families: Halfspaces, family by family.
        weights: For each query.
    """
    queries = _joined([np.arange(each.size) + each.query for each in families], np.int64)
    parameters = [each.parameters(np.arange(each.size)) for each in families]
    discrete = np.array([isinstance(column, Discrete) for column in schema])
    bounds = np.array([column.bounds for column in schema])
    sizes = [
        (len(column.values) if isinstance(column, Discrete) else 1) + column.nullable
        for column in schema
    ]
    return Directions(
        queries=queries,
        coefficients=np.concatenate(
            [np.empty((sum(sizes), 0), dtype=np.float32), *(each[0] for each in parameters)], axis=1
        ),
        thresholds=_joined([each[1] for each in parameters], np.float32),
        weights=weights[queries].astype(np.float32),
        order=np.argsort(~discrete, kind="stable"),
        begins=starts_of(sizes)[:-1],
        lows=bounds[
            :, 0
        ].copy(),  # a copy, since the type of a view depends on the number of columns
        spans=bounds[:, 1] - bounds[:, 0],
    )


def _joined(parts: Sequence[NDArray[np.generic]], dtype: DTypeLike) -> NDArray[np.generic]:
    """Concatenate arrays; an empty array if there are none."""
    return np.concatenate([np.empty(0, dtype=dtype), *parts]).astype(dtype)
