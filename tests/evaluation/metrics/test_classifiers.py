"""Classifiers that cannot learn still predict."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Boolean, Real, Schema
from private_gsd.evaluation.metrics.classifiers import MODELS, Classifier
from private_gsd.evaluation.metrics.model_features import Features
from tests.evaluation.tables import matrix_of

SCHEMA = Schema([Boolean("flag", nullable=True), Real("number", lower=0, upper=1)])
RNG = np.random.default_rng(0)


def trained(name: str, matrix: np.ndarray, labels: list[int] | np.ndarray) -> Classifier:
    return Classifier(name, Features(SCHEMA, [0, 1], matrix), matrix, np.array(labels), 0)


@pytest.mark.parametrize("name", MODELS)
def test_a_classifier_learns_a_threshold(name: str) -> None:
    matrix = matrix_of(RNG.integers(0, 2, 400), RNG.random(400))
    labels = (matrix[:, 1] > 0.5).astype(np.int64)
    model = trained(name, matrix, labels)
    assert (model.predict(matrix) == labels).mean() > 0.95
    assert ((model.probability(matrix) > 0.5) == labels).mean() > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_what_has_one_value_gives_one_prediction(name: str) -> None:
    same = matrix_of([1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    model = trained(name, same, [0, 1, 1, 1])
    assert model.predict(same).tolist() == [1, 1, 1, 1]
    assert model.probability(same).tolist() == [0.5] * 4
    varied = matrix_of([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4])
    assert trained(name, varied, [2, 2, 2, 2]).predict(varied).tolist() == [2] * 4


def test_nulls_of_a_column_with_one_value_are_learned() -> None:
    flags = np.where(np.arange(200) % 2 == 0, np.nan, 1.0)
    matrix = matrix_of(flags, np.full(200, 0.5))
    labels = np.isnan(flags).astype(np.int64)
    model = trained(MODELS[1], matrix, labels)
    assert (model.predict(matrix) == labels).all()
