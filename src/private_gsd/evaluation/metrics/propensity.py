"""Propensity: how well a model tells synthetic rows from real rows.

The models see the same number of real and synthetic rows. The propensity mean squared error is that
of a logistic regression's probabilities against one half (Woo, Reiter, Oganian and Karr, 2009): 0
if the regression learned nothing, 0.25 if it is always certain and right. A perfect synthetic table
gives more than 0, because two samples differ at random. The ratio divides the error by its expected
value for such a table (Snoke, Raab, Nowok, Dibben and Slavkovic, 2018). The area under the curve is
that of gradient boosting on rows that it was not trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import require
from private_gsd.evaluation.metrics.classifiers import MODELS, Classifier
from private_gsd.evaluation.metrics.model_features import Features
from private_gsd.evaluation.metrics.nearness import keys_of

if TYPE_CHECKING:
    from private_gsd.evaluation.table_sample import TableSample
    from private_gsd.schema import Schema

ROWS = 10_000
FEWEST = 20
FOLDS = 3


@dataclass(frozen=True)
class Propensity:
    """How well models tell the two tables apart.

    Attributes:
        rows: The number of rows of each table.
        pmse: The propensity mean squared error, from 0 to 0.25.
        ratio: The propensity mean squared error over its expected value for a table drawn from the
            same population as the real table.
        auc: The area under the curve of gradient boosting: 0.5 for a guess, 1 for certainty.
    """

    rows: int
    pmse: float
    ratio: float
    auc: float


def propensity(
    schema: Schema, real: TableSample, synthetic: TableSample, *, seed: int = 0
) -> Propensity | None:
    """Try to tell two tables apart; None if there are too few rows."""
    number = min(ROWS, len(real.sample), len(synthetic.sample))
    if number < FEWEST:
        return None
    metrics = require("sklearn.metrics", what="Evaluation", extra="evaluation")
    parts = real.take(number, seed), synthetic.take(number, seed)
    both = np.concatenate(parts)
    labels = np.repeat(np.array([0, 1]), number)
    features = Features(schema, range(len(schema)), both)
    probability = Classifier(MODELS[0], features, both, labels, seed).probability(both)
    pmse = float(np.mean((probability - 0.5) ** 2))
    # Features that are always zero do not count, nor does one value of each discrete column.
    used = int((abs(features.linear(both)).sum(axis=0) > 0).sum()) - sum(features.discrete)
    expected = max(1, used) / (4 * len(both))
    # Equal rows of both tables go to one fold: otherwise a model would know their labels.
    fold = np.random.default_rng(seed).integers(0, FOLDS, len(both))
    keys = keys_of(both)
    waiting: dict[bytes, list[int]] = {}
    for place, key in enumerate(keys[:number]):
        waiting.setdefault(key, []).append(place)
    for place, key in enumerate(keys[number:], start=number):
        if waiting.get(key):
            fold[place] = fold[waiting[key].pop()]
    scores = np.empty(len(both))
    for each in range(FOLDS):
        out = fold == each
        model = Classifier(MODELS[1], features, both[~out], labels[~out], seed)
        scores[out] = model.probability(both[out])
    return Propensity(number, pmse, pmse / expected, float(metrics.roc_auc_score(labels, scores)))
