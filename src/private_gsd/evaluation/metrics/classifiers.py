"""Classifiers: the models that an evaluation trains, always in the same way."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from private_gsd.errors import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.metrics.model_features import Features
    from private_gsd.evaluation.table_sample import Matrix

    Labels = NDArray[np.int64]

MODELS = ("logistic regression", "gradient boosting")


class Classifier:
    """A trained classifier.

    Args:
        name: One of ``MODELS``.
        features: The conversion of rows to features.
        matrix: The training rows.
        labels: The class of each training row.
        seed: The seed of the training.
    """

    def __init__(
        self, name: str, features: Features, matrix: Matrix, labels: Labels, seed: int
    ) -> None:
        self._features = features
        self._linear = name == MODELS[0]
        self.classes, counts = np.unique(labels, return_counts=True)
        self._most = int(self.classes[counts.argmax()])
        self._model: Any = None
        # Trees need two values in a column. A column with one value is replaced by its nulls.
        plain = features.trees(matrix)
        distinct = [len(np.unique(column[~np.isnan(column)])) for column in plain.T]
        self._thin = np.array(distinct) < 2
        nulls = np.isnan(plain).mean(axis=0)
        self._used = ~self._thin | ((nulls > 0) & (nulls < 1))
        if len(self.classes) < 2 or not self._used.any():
            return  # there is one possible prediction
        if self._linear:
            linear = require("sklearn.linear_model", what="Evaluation", extra="evaluation")
            self._model = linear.LogisticRegression(max_iter=300)
        else:
            ensemble = require("sklearn.ensemble", what="Evaluation", extra="evaluation")
            self._model = ensemble.HistGradientBoostingClassifier(
                max_iter=60,
                early_stopping=False,
                categorical_features=(np.array(features.categories) & ~self._thin)[self._used],
                random_state=seed,
            )
        with warnings.catch_warnings(), _one_thread():
            # A model that has not quite converged is good enough here.
            warnings.simplefilter("ignore")
            self._model.fit(self._rows(matrix), labels)

    def _rows(self, matrix: Matrix) -> Any:
        if self._linear:
            return self._features.linear(matrix)
        rows = self._features.trees(matrix)
        return np.where(self._thin, np.isnan(rows), rows)[:, self._used]

    def predict(self, matrix: Matrix) -> Labels:
        """The class of each row."""
        if self._model is None:
            return np.full(len(matrix), self._most)
        with _one_thread():
            return np.asarray(self._model.predict(self._rows(matrix)))

    def probability(self, matrix: Matrix) -> NDArray[np.float64]:
        """The probability of the last class for each row."""
        if self._model is None:
            return np.full(len(matrix), 0.5)
        with _one_thread():
            return np.asarray(self._model.predict_proba(self._rows(matrix))[:, -1])


def _one_thread() -> Any:
    """Limit training to one thread: on small tables several threads mostly wait for each other."""
    return threadpool_limits(1)
