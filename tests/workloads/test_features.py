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
    range_features,
    tree_features,
)

SCHEMA = Schema(
    [
        Categorical("sex", values=("f", "m"), nullable=True),
        Integer("age", lower=0, upper=99),
        Real("pay", lower=0, upper=10, nullable=True),
    ]
)
FEATURES = [
    discrete_feature(SCHEMA, 0),
    *tree_features(SCHEMA, 1, 3),
    *range_features(SCHEMA, 2, [(1, 3), (2, 5), (6, 10)]),
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
