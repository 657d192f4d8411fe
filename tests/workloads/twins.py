"""Slow, obvious twins: each query counted by its definition, with plain NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_gsd import Schema
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads import Conjunctions, Halfspaces

Mask = NDArray[np.bool_]
Matrix = NDArray[np.float64]


def value_masks(schema: Schema, matrix: Matrix, name: str) -> list[Mask]:
    """For a discrete column, the rows with each value, then those with null."""
    position = schema.names.index(name)
    column, values = schema.columns[position], matrix[:, position]
    assert isinstance(column, Discrete)
    masks = [values == code for code in range(len(column.values))]
    return masks + [np.isnan(values)] * column.nullable


def level_masks(schema: Schema, matrix: Matrix, name: str, level: int) -> list[Mask]:
    """For a numeric column, the rows in each interval of width 1/2^level, then those with null."""
    position = schema.names.index(name)
    column, values = schema.columns[position], matrix[:, position]
    assert isinstance(column, Numeric)
    low, high = column.bounds
    cuts = [low + (high - low) * (cut / 2**level) for cut in range(2**level + 1)]
    masks = [
        (values >= cuts[i]) & ((values < cuts[i + 1]) if i + 1 < 2**level else (values <= high))
        for i in range(2**level)
    ]
    return masks + [np.isnan(values)] * column.nullable


def crossed(masks: list[list[Mask]]) -> list[int]:
    """Counts of all combinations, the last column changing fastest."""
    return [int(np.logical_and.reduce(each).sum()) for each in itertools.product(*masks)]


def categorical(schema: Schema, matrix: Matrix, k: int) -> list[int]:
    names = [column.name for column in schema if isinstance(column, Discrete)]
    counts = []
    for chosen in itertools.combinations(names, k):
        counts += crossed([value_masks(schema, matrix, name) for name in chosen])
    return counts


def conjunctions(family: Conjunctions, matrix: Matrix) -> list[int]:
    counts = []
    for query in range(len(family.category)):
        column = family.schema.columns[family.category[query]]
        assert isinstance(column, Discrete)
        values = matrix[:, family.category[query]]
        wanted = family.value[query]
        meets = np.isnan(values) if wanted == len(column.values) else values == wanted
        for place, threshold in zip(family.numbers[query], family.thresholds[query], strict=True):
            meets = meets & (matrix[:, place] < threshold)
        counts.append(int(meets.sum()))
    return counts


def halfspaces(family: Halfspaces, matrix: Matrix) -> list[int]:
    """Dot products with a one-hot matrix, summed in float32, discrete columns first."""
    schema = family.schema
    coefficients, thresholds = family.parameters(np.arange(len(family.indices)))
    sums = np.zeros((len(matrix), len(thresholds)), dtype=np.float32)
    parts: dict[bool, list[Any]] = {True: [], False: []}
    dimension = 0
    for position, column in enumerate(schema):
        values = matrix[:, position]
        if isinstance(column, Discrete):
            hot = [values == code for code in range(len(column.values))]
        else:
            assert isinstance(column, Numeric)
            low, high = column.bounds
            hot = [np.nan_to_num((values - low) / (high - low))]
        hot = hot + [np.isnan(values)] * column.nullable
        block = np.array(hot, dtype=np.float32)
        parts[isinstance(column, Discrete)].append((block, dimension))
        dimension += len(hot)
    assert dimension == family.dimensions
    for discrete in (True, False):
        for block, begin in parts[discrete]:
            # Each row has one entry that is not zero in each column, so that this sum is exact.
            sums += np.einsum(
                "er,eq->rq", block, coefficients[begin : begin + len(block)], dtype=np.float32
            )
    return [int(each) for each in (sums <= thresholds).sum(axis=0)]
