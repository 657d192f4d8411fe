"""The numbers that models learn from."""

from __future__ import annotations

import numpy as np

from private_gsd import Boolean, Categorical, Integer, Schema
from private_gsd.evaluation.metrics.model_features import Features
from tests.evaluation.tables import matrix_of


def test_features_of_models() -> None:
    schema = Schema(
        [
            Categorical("many", values=[str(each) for each in range(300)]),
            Integer("n", lower=0, upper=100, nullable=True),
            Boolean("b", nullable=True),
        ]
    )
    matrix = matrix_of([0, 299, 5], [np.nan, 10, 30], [1, 0, np.nan])
    features = Features(schema, [0, 1, 2], matrix)
    assert features.categories == [False, False, True]
    dense = features.linear(matrix).toarray()
    assert dense.shape == (3, features.width)
    # One value of each category, the number in units of its spread, whether it is null.
    assert dense[:, :31].sum(axis=1).tolist() == [1, 1, 1]
    assert dense[:, 31].tolist() == [0, -1, 1]
    assert dense[:, 32].tolist() == [1, 0, 0]
    assert dense[:, 33:].sum(axis=1).tolist() == [1, 1, 1]
    assert len({tuple(row) for row in dense[:, 33:].tolist()}) == 3
