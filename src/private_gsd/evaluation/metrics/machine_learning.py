"""Machine learning: models are trained on synthetic rows and tested on held-out real rows.

This follows section 5.6 of the paper. For comparison, models are also trained on real rows, and one
model always predicts the most frequent class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import require
from private_gsd.evaluation.metrics.classifiers import MODELS, Classifier
from private_gsd.evaluation.metrics.model_features import Features
from private_gsd.evaluation.table_sample import take
from private_gsd.schema import Discrete
from private_gsd.system.progress import ignore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import Matrix
    from private_gsd.schema import Schema
    from private_gsd.system.progress import Progress

    Labels = NDArray[np.int64]

TARGETS = 3
CLASSES = 10
TRAIN_ROWS = 20_000
TEST_ROWS = 10_000
FEWEST = 20


class ModelScore(NamedTuple):
    """The scores of one model.

    Attributes:
        trained_on: "synthetic", "real", or "nothing" for the most frequent class.
        model: The name of the model.
        f1_macro: The mean of the F1 scores of all classes.
        f1_binary: The F1 score of the rarer of two classes; None for more classes.
        accuracy: The share of right predictions.
    """

    trained_on: str
    model: str
    f1_macro: float
    f1_binary: float | None
    accuracy: float


class PredictionTask(NamedTuple):
    """One column, predicted from all others.

    Attributes:
        target: The column; for a numeric column, whether it is above its median.
        classes: The number of classes in the real training rows.
        trained: The numbers of synthetic and real training rows.
        tested: The number of test rows.
        scores: The scores of all models.
    """

    target: str
    classes: int
    trained: tuple[int, int]
    tested: int
    scores: tuple[ModelScore, ...]

    def score(self, trained_on: str, model: str = MODELS[0]) -> ModelScore:
        """The scores of one model."""
        return next(
            score
            for score in self.scores
            if score.trained_on == trained_on and (score.model == model or trained_on == "nothing")
        )

    def f1(self, trained_on: str, model: str = MODELS[0]) -> float:
        """The macro F1 of one model."""
        return self.score(trained_on, model).f1_macro


def default_targets(schema: Schema, real: Matrix) -> list[str]:
    """Discrete columns with few classes and no dominant class, fewest classes first."""
    found = []
    for place, column in enumerate(schema):
        values = real[:, place]
        values = values[~np.isnan(values)]
        if not isinstance(column, Discrete) or len(values) < len(real) / 2:
            continue
        counts = np.bincount(values.astype(np.int64))
        counts = counts[counts > 0]
        if 2 <= len(counts) <= CLASSES and counts.max() <= 0.95 * counts.sum():
            found.append((len(counts), -float(_entropy(counts)), place))
    return [schema.names[place] for _, _, place in sorted(found)[:TARGETS]]


def learn(
    schema: Schema,
    synthetic: Matrix,
    train: Matrix,
    test: Matrix,
    targets: Sequence[str],
    *,
    seed: int = 0,
    progress: Progress = ignore,
) -> list[PredictionTask]:
    """Train and test models for each target; targets with too few rows or classes are left out.

    Args:
        schema: The public schema.
        synthetic: Encoded synthetic rows.
        train: Encoded real rows to learn from.
        test: Encoded held-out real rows.
        targets: The columns to predict.
        seed: The seed of sampling and training.
        progress: Called with the number of finished targets.
    """
    synthetic = take(synthetic, TRAIN_ROWS, seed)
    train, test = take(train, TRAIN_ROWS, seed), take(test, TEST_ROWS, seed)
    tasks = []
    for number, target in enumerate(targets):
        progress("training models", number, len(targets))
        task = _task(schema, schema.names.index(target), synthetic, train, test, seed)
        if task is not None:
            tasks.append(task)
    return tasks


def _task(
    schema: Schema, place: int, synthetic: Matrix, train: Matrix, test: Matrix, seed: int
) -> PredictionTask | None:
    column = schema.columns[place]
    middle = None
    if not isinstance(column, Discrete):
        middle = float(np.nanmedian(train[:, place])) if _some(train[:, place]) else 0.0

    def labelled(matrix: Matrix) -> tuple[Matrix, Labels]:
        """The rows whose target is not null, and their classes."""
        values = matrix[:, place]
        there = ~np.isnan(values)
        labels = values[there] if middle is None else values[there] > middle
        return matrix[there], labels.astype(np.int64)

    (made, made_labels), (real, real_labels), (tested, truth) = map(
        labelled, (synthetic, train, test)
    )
    if min(len(made), len(real), len(tested)) < FEWEST or len(np.unique(real_labels)) < 2:
        return None
    others = [each for each in range(len(schema)) if each != place]
    if not others:
        return None
    classes, counts = np.unique(real_labels, return_counts=True)
    scores = []
    for name in MODELS:
        for trained_on, matrix, labels in (
            ("synthetic", made, made_labels),
            ("real", real, real_labels),
        ):
            # The features are learned from the training rows of the model.
            model = Classifier(name, Features(schema, others, matrix), matrix, labels, seed)
            scores.append(_score(trained_on, name, truth, model.predict(tested), classes, counts))
    frequent = np.full(len(truth), classes[counts.argmax()])
    scores.append(_score("nothing", "most frequent class", truth, frequent, classes, counts))
    suffix = "" if middle is None else " (above its median)"
    return PredictionTask(
        column.name + suffix, len(classes), (len(made), len(real)), len(tested), tuple(scores)
    )


def _score(
    trained_on: str,
    model: str,
    truth: Labels,
    predicted: Labels,
    classes: Labels,
    counts: NDArray[np.int64],
) -> ModelScore:
    metrics = require("sklearn.metrics", what="Evaluation", extra="evaluation")
    binary = None
    if len(classes) == 2:
        rarer = classes[counts.argmin()]
        binary = float(metrics.f1_score(truth == rarer, predicted == rarer, zero_division=0))
    return ModelScore(
        trained_on,
        model,
        float(metrics.f1_score(truth, predicted, average="macro", zero_division=0)),
        binary,
        float(np.mean(truth == predicted)),
    )


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _some(values: NDArray[np.float64]) -> bool:
    return bool((~np.isnan(values)).any())
