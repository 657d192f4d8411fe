"""Machine learning: train on synthetic rows, test on real ones that were held out.

As in section 5.6 of the paper; beside it a model trained on real rows, and one that always says
what is most frequent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import require
from private_gsd.evaluation.metrics.classifiers import MODELS, Model
from private_gsd.evaluation.metrics.model_features import Features
from private_gsd.evaluation.rows import take
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.rows import Matrix
    from private_gsd.schema import Schema

    Labels = NDArray[np.int64]

TARGETS = 3
CLASSES = 10
TRAIN_ROWS = 20_000
TEST_ROWS = 10_000
FEWEST = 20


class Score(NamedTuple):
    """How well one model does.

    Attributes:
        trained_on: "synthetic", "real", or "nothing" for the one that says what is most frequent.
        model: Which model.
        f1_macro: The mean of the F1 scores of all classes.
        f1_binary: Of two classes, the F1 score of the rarer one; None for more.
        accuracy: The share that it gets right.
    """

    trained_on: str
    model: str
    f1_macro: float
    f1_binary: float | None
    accuracy: float


class Task(NamedTuple):
    """One column, predicted from all others.

    Attributes:
        target: The column; of a numeric one, whether it is above its median.
        classes: How many classes it has in the real rows that models learn from.
        trained: How many synthetic and real rows they learn from.
        tested: How many rows they are tested on.
        scores: Of every model.
    """

    target: str
    classes: int
    trained: tuple[int, int]
    tested: int
    scores: tuple[Score, ...]

    def f1(self, trained_on: str, model: str = MODELS[0]) -> float:
        """The macro F1 of one model."""
        return next(
            score.f1_macro
            for score in self.scores
            if score.trained_on == trained_on and (score.model == model or trained_on == "nothing")
        )


def default_targets(schema: Schema, real: Matrix) -> list[str]:
    """Discrete columns with few classes, of which none is too rare: fewest classes first."""
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
    progress: Callable[[str], object] = lambda _: None,
) -> list[Task]:
    """Train and test models for each target; one with too few rows or classes is left out.

    Args:
        schema: The public schema.
        synthetic: Encoded synthetic rows.
        train: Encoded real rows to learn from.
        test: Encoded real rows that were held out.
        targets: The columns to predict.
        seed: Of sampling and training.
        progress: Told each target.
    """
    synthetic = take(synthetic, TRAIN_ROWS, seed)
    train, test = take(train, TRAIN_ROWS, seed), take(test, TEST_ROWS, seed)
    tasks = []
    for target in targets:
        progress(target)
        task = _task(schema, schema.names.index(target), synthetic, train, test, seed)
        if task is not None:
            tasks.append(task)
    return tasks


def _task(
    schema: Schema, place: int, synthetic: Matrix, train: Matrix, test: Matrix, seed: int
) -> Task | None:
    column = schema.columns[place]
    middle = None
    if not isinstance(column, Discrete):
        middle = float(np.nanmedian(train[:, place])) if _some(train[:, place]) else 0.0

    def labelled(matrix: Matrix) -> tuple[Matrix, Labels]:
        """Rows whose target is known, and their class."""
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
            # What is frequent and where numbers lie is learned from what the model learns from.
            model = Model(name, Features(schema, others, matrix), matrix, labels, seed)
            scores.append(_score(trained_on, name, truth, model.predict(tested), classes, counts))
    frequent = np.full(len(truth), classes[counts.argmax()])
    scores.append(_score("nothing", "most frequent class", truth, frequent, classes, counts))
    words = "" if middle is None else " (above its median)"
    return Task(
        column.name + words, len(classes), (len(made), len(real)), len(tested), tuple(scores)
    )


def _score(
    trained_on: str,
    model: str,
    truth: Labels,
    told: Labels,
    classes: Labels,
    counts: NDArray[np.int64],
) -> Score:
    metrics = require("sklearn.metrics", what="Evaluation", extra="evaluation")
    binary = None
    if len(classes) == 2:
        rarer = classes[counts.argmin()]
        binary = float(metrics.f1_score(truth == rarer, told == rarer, zero_division=0))
    return Score(
        trained_on,
        model,
        float(metrics.f1_score(truth, told, average="macro", zero_division=0)),
        binary,
        float(np.mean(truth == told)),
    )


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _some(values: NDArray[np.float64]) -> bool:
    return bool((~np.isnan(values)).any())
