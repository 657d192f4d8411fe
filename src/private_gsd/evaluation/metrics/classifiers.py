"""Models: the classifiers that evaluation trains, always in the same way."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from private_gsd.errors import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.metrics.model_features import Features
    from private_gsd.evaluation.rows import Matrix

    Labels = NDArray[np.int64]

MODELS = ("logistic regression", "gradient boosting")


class Model:
    """A classifier, trained.

    Args:
        name: Which of ``MODELS``.
        features: How rows become features.
        matrix: The rows to learn from.
        labels: The class of each.
        seed: Of the training.
    """

    def __init__(
        self, name: str, features: Features, matrix: Matrix, labels: Labels, seed: int
    ) -> None:
        self._features = features
        self._linear = name == MODELS[0]
        self.classes, counts = np.unique(labels, return_counts=True)
        self._most = int(self.classes[counts.argmax()])
        self._model: Any = None
        # Trees are given no column with nothing to split; of one with a single value, its nulls.
        plain = features.trees(matrix)
        distinct = [len(np.unique(column[~np.isnan(column)])) for column in plain.T]
        self._thin = np.array(distinct) < 2
        nulls = np.isnan(plain).mean(axis=0)
        self._kept = ~self._thin | ((nulls > 0) & (nulls < 1))
        if len(self.classes) < 2 or not self._kept.any():
            return  # it can only ever say one thing
        if self._linear:
            linear = require("sklearn.linear_model", what="Evaluation", extra="evaluation")
            self._model = linear.LogisticRegression(max_iter=300)
        else:
            ensemble = require("sklearn.ensemble", what="Evaluation", extra="evaluation")
            self._model = ensemble.HistGradientBoostingClassifier(
                max_iter=60,
                early_stopping=False,
                categorical_features=(np.array(features.categories) & ~self._thin)[self._kept],
                random_state=seed,
            )
        with warnings.catch_warnings(), _one_thread():
            # A model that has not quite converged is as good for this.
            warnings.simplefilter("ignore")
            self._model.fit(self._rows(matrix), labels)

    def _rows(self, matrix: Matrix) -> Any:
        if self._linear:
            return self._features.linear(matrix)
        rows = self._features.trees(matrix)
        return np.where(self._thin, np.isnan(rows), rows)[:, self._kept]

    def predict(self, matrix: Matrix) -> Labels:
        """The class of each row."""
        if self._model is None:
            return np.full(len(matrix), self._most)
        with _one_thread():
            return np.asarray(self._model.predict(self._rows(matrix)))

    def probability(self, matrix: Matrix) -> NDArray[np.float64]:
        """How likely each row is of the last class."""
        if self._model is None:
            return np.full(len(matrix), 0.5)
        with _one_thread():
            return np.asarray(self._model.predict_proba(self._rows(matrix))[:, -1])


def _one_thread() -> Any:
    """No more threads than one: on small tables, several mostly wait for each other.

    Boosting on 4,000 rows took 0.2 s with one, and 10 s with two on two cores that were busy.
    """
    return threadpool_limits(1)
