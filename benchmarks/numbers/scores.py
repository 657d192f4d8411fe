"""Scores of synthetic tables against the real one: what people see when they look at numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.evaluation.metrics.classifiers import MODELS, Classifier
from private_gsd.evaluation.metrics.machine_learning import default_targets, learn
from private_gsd.evaluation.metrics.model_features import Features
from private_gsd.evaluation.metrics.propensity import propensity
from private_gsd.evaluation.table_sample import TableSample, sample_table, take
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads import random_halfspaces, random_prefixes
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd import Schema

    Matrix = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Values that at least this share of the rows have are spikes. The share of a spike is right within
# a tenth of it, or one percentage point.
SPIKE = 0.02
SPIKE_ERROR = 0.1, 0.01
# Groups of rows are by discrete columns of at most this many values, and have at least this many
# real rows.
GROUPS, GROUP_ROWS = 12, 20
UNSEEN = 2000
PAIRS = ["categorical:2", "tree:2"]


def read(table: Any, schema: Schema) -> TableSample:
    """All rows of a table, encoded."""
    return sample_table(table, schema, limit=2**31)


def numeric(schema: Schema) -> dict[str, int]:
    """The numeric columns, and their positions."""
    return {
        column.name: place for place, column in enumerate(schema) if isinstance(column, Numeric)
    }


def scores(schema: Schema, real: TableSample, made: TableSample, seed: int) -> dict[str, Any]:
    """All scores of one synthetic table, by name; those of columns are dictionaries.

    Args:
        schema: The public schema.
        real: The real table.
        made: The synthetic table.
        seed: The seed of models.
    """
    truth, rows = real.sample, made.sample
    columns = {
        name: column_scores(truth[:, place], rows[:, place])
        for name, place in numeric(schema).items()
    }
    found: dict[str, Any] = {
        score: {name: each[score] for name, each in columns.items()}
        for score in ("KS", "quantiles", "mean", "spikes missed", "spikes", "nulls")
    }
    found["group means"] = group_means(schema, truth, rows)
    found["correlations"] = correlations(schema, truth, rows)
    workloads = {
        "pairs": workload_of(schema, PAIRS),
        "prefixes": random_prefixes(schema, UNSEEN, seed=1),
        "halfspaces": random_halfspaces(schema, UNSEEN, seed=1),
    }
    for name, queries in workloads.items():
        errors = count(queries, truth) / len(truth) - count(queries, rows) / len(rows)
        found[name] = float(np.abs(errors).mean())
    targets = default_targets(schema, truth)
    found["F1"] = {
        task.target: task.f1("synthetic") for task in learn(schema, rows, truth, truth, targets)
    }
    apart = propensity(schema, real, made, seed=seed)
    found["area"] = None if apart is None else apart.auc
    found["gives away"] = giveaways(schema, truth, rows, seed)
    return found


def column_scores(real: Matrix, made: Matrix) -> dict[str, float]:
    """The scores of one numeric column; nulls are left out of all but the share of nulls."""
    nulls = abs(float(np.isnan(real).mean() - np.isnan(made).mean()))
    everybody, all_made = len(real), len(made)
    real, made = np.sort(real[~np.isnan(real)]), np.sort(made[~np.isnan(made)])
    values, counts = np.unique(real, return_counts=True)
    frequent = counts >= SPIKE * everybody
    errors, missed = [], 0
    for value, number in zip(values[frequent], counts[frequent], strict=True):
        share, found = number / everybody, float((made == value).sum() / all_made)
        errors.append(abs(found - share))
        missed += abs(found - share) > max(SPIKE_ERROR[0] * share, SPIKE_ERROR[1])
    if not len(made):
        made = np.full(1, np.inf)
    points = np.union1d(real, made)
    below = [np.searchsorted(each, points, side="right") / len(each) for each in (real, made)]
    truth = np.quantile(real, QUANTILES)
    spread = float(real.std())
    relative = np.abs(np.quantile(made, QUANTILES) - truth) / np.where(
        truth == 0, spread, np.abs(truth)
    )
    mean = float(real.mean())
    return {
        "KS": float(np.abs(below[0] - below[1]).max()),
        "quantiles": float(relative.mean()),
        "mean": float(abs(made.mean() - mean) / (abs(mean) or spread)),
        "spikes": float(np.sum(errors)),
        "spikes missed": float(missed),
        "nulls": nulls,
    }


def group_means(schema: Schema, real: Matrix, made: Matrix) -> float:
    """The mean error of the means of groups, in standard deviations of the columns."""
    errors = []
    for place, column in enumerate(schema):
        if not isinstance(column, Discrete) or len(column.values) > GROUPS:
            continue
        for group in range(len(column.values)):
            mine, theirs = real[real[:, place] == group], made[made[:, place] == group]
            for number in numeric(schema).values():
                known = mine[~np.isnan(mine[:, number]), number]
                if len(known) < GROUP_ROWS:
                    continue
                spread = float(np.nanstd(real[:, number]))
                others = theirs[~np.isnan(theirs[:, number]), number]
                mean = others.mean() if len(others) else np.nanmean(made[:, number])
                errors.append(abs(mean - known.mean()) / spread)
    return float(np.mean(errors))


def correlations(schema: Schema, real: Matrix, made: Matrix) -> float:
    """The mean error of the rank correlations of two numeric columns."""
    places = list(numeric(schema).values())
    errors = []
    for number, one in enumerate(places):
        for two in places[number + 1 :]:
            pair = [rank_correlation(each[:, one], each[:, two]) for each in (real, made)]
            errors.append(abs(pair[0] - pair[1]))
    return float(np.mean(errors))


def rank_correlation(one: Matrix, two: Matrix) -> float:
    """Spearman's correlation of the rows without nulls."""
    from scipy.stats import spearmanr  # of scikit-learn's dependencies

    known = ~(np.isnan(one) | np.isnan(two))
    if known.sum() < 2 or len(np.unique(one[known])) < 2 or len(np.unique(two[known])) < 2:
        return 0.0
    return float(spearmanr(one[known], two[known]).statistic)


def giveaways(schema: Schema, real: Matrix, made: Matrix, seed: int) -> dict[str, float]:
    """For each column, how well it tells synthetic from real rows by itself: areas above 0.52."""
    from sklearn.metrics import roc_auc_score

    number = min(10_000, len(real), len(made))
    both = np.concatenate([take(real, number, seed), take(made, number, seed)])
    labels = np.repeat(np.array([0, 1]), number)
    train = np.random.default_rng(seed).random(len(both)) < 0.5
    found = {}
    for place, name in enumerate(schema.names):
        features = Features(schema, [place], both[train])
        model = Classifier(MODELS[1], features, both[train], labels[train], seed)
        area = float(roc_auc_score(labels[~train], model.probability(both[~train])))
        if area > 0.52:
            found[name] = area
    return found
