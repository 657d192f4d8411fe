"""Features: cells of a column, and documents that are refused if they are not sound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from private_gsd import Categorical, Integer, Real, Schema
from private_gsd.errors import WorkloadError
from private_gsd.workloads.features import (
    Feature,
    discrete_feature,
    joined_feature,
    range_features,
    tree_features,
)

SCHEMA = Schema(
    [
        Categorical("sex", values=("f", "m"), nullable=True),
        Integer("age", lower=0, upper=99),
        Real("pay", lower=0, upper=10, nullable=True),
        Categorical("job", values=("a", "b", "c'", "d")),
    ]
)
FEATURES = [
    discrete_feature(SCHEMA, 0),
    *tree_features(SCHEMA, 1, 3),
    *range_features(SCHEMA, 2, [(1, 3), (2, 5), (6, 10)]),
    joined_feature(discrete_feature(SCHEMA, 3), [4, 1, 4, 2]),
]


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_survives_its_document(feature: Feature) -> None:
    assert Feature.from_dict(SCHEMA, feature.to_dict()) == feature


def test_overlapping_ranges_are_two_features() -> None:
    first, second = range_features(SCHEMA, 2, [(1, 3), (2, 5), (6, 10)])
    assert (first.breaks, first.segments) == ((1, 3, 6), (-1, 0, -1, 1))
    assert (second.breaks, second.segments) == ((2, 5), (-1, 0, -1))
    assert first.has_gap
    assert first.size == 3  # two ranges and the null


def test_cells_of_finer_atoms() -> None:
    halves = tree_features(SCHEMA, 1, 2)[0]
    quarters = np.array(tree_features(SCHEMA, 1, 2)[1].breaks)
    assert halves.cells_of_atoms(quarters).tolist() == [0, 0, 1, 1]
    assert discrete_feature(SCHEMA, 0).cells_of_atoms(np.empty(0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (0, {"position": 9}, "a column's position"),
        (0, {"position": "0"}, "a column's position"),
        (0, {"nullable": False}, "nulls"),
        (0, {"segments": []}, "segments"),
        (0, {"segments": [0, True]}, "segments"),
        (0, {"segments": [1, 0]}, "segments"),
        (0, {"segments": [0]}, "categories"),
        (0, {"breaks": [0.5]}, "categories"),
        (1, {"segments": [0, 2]}, "cells"),
        (1, {"segments": [-1, -1]}, "cells"),
        (1, {"segments": [0, -2]}, "segments"),
        (1, {"breaks": [1.0, 2.0]}, "breaks"),
        (2, {"breaks": [1.0, 1.0, 2.0]}, "breaks"),
        (2, {"breaks": [1.0, 2.0, float("inf")]}, "breaks"),
    ],
)
def test_documents_that_are_not_sound(number: int, change: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=f"the queries are not sound: {message}"):
        Feature.from_dict(SCHEMA, {**FEATURES[number].to_dict(), **change})


def test_joined_categories() -> None:
    """Cells are numbered by their first category, and say themselves in SQL."""
    job = discrete_feature(SCHEMA, 3)
    found = joined_feature(job, [4, 1, 4, 2])
    assert (found.segments, found.size) == ((0, 1, 0, 2), 3)
    assert found.joins_categories
    assert not job.joins_categories
    assert not any(feature.joins_categories for feature in FEATURES[:-1])
    assert [found.condition(SCHEMA, cell) for cell in range(3)] == [
        "job IN ('a', 'c''')",
        "job = 'b'",
        "job = 'd'",
    ]
    assert found == joined_feature(job, [0, 1, 0, 2])
    assert hash(found) == hash(joined_feature(job, [0, 1, 0, 2]))
    sex = joined_feature(discrete_feature(SCHEMA, 0), [0, 0])
    assert sex.size == 2
    assert sex.condition(SCHEMA, 1) == "sex IS NULL"
    for segments in ([1, 0, 1, 2], [0, 0, 2, 2], [0, 1, 0], [0, -1, 0, 1]):
        with pytest.raises(WorkloadError):
            Feature.from_dict(SCHEMA, {**found.to_dict(), "segments": segments})
