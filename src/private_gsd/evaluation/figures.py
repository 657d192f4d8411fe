"""Figures: the results of an evaluation as one table of numbers, and as the texts of its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from private_gsd.evaluation.metrics.classifiers import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from private_gsd.evaluation.metrics.associations import Associations
    from private_gsd.evaluation.metrics.attacks import Attacks
    from private_gsd.evaluation.metrics.distributions import ColumnComparison
    from private_gsd.evaluation.metrics.intervals import Estimate
    from private_gsd.evaluation.metrics.k_marginals import KMarginal
    from private_gsd.evaluation.metrics.machine_learning import PredictionTask
    from private_gsd.evaluation.metrics.numeric_pairs import ComparedStatistic
    from private_gsd.evaluation.metrics.propensity import Propensity
    from private_gsd.evaluation.metrics.summary_statistics import SummaryStatistics
    from private_gsd.evaluation.metrics.workload_errors import WorkloadErrors

# The figures that matter most, in the order in which they are shown.
SUMMARY = (
    "mean query error",
    "largest query error",
    "query error over noise",
    "mean column distance",
    "largest column distance",
    "mean relative error of means",
    "mean relative error of group means",
    "mean association difference",
    "2-marginal score",
    "3-marginal score",
    "propensity mean squared error",
    "propensity AUC",
    f"macro F1, {MODELS[0]}",
    "largest share of rows that break a rule",
    "membership attack, AUC",
)
# The formats of some metrics; all others have three digits after the point.
FORMATS = {
    "mean query error": ".3%",
    "RMS query error": ".3%",
    "largest query error": ".2%",
    "query error over noise": ".2f",
    "mean relative error of means": ".2%",
    "mean relative error of group means": ".2%",
    "1-marginal score": ".0f",
    "2-marginal score": ".0f",
    "3-marginal score": ".0f",
    "propensity mean squared error": ".4f",
    "propensity ratio": ".1f",
    "share of rows that break a rule": ".3%",
    "largest share of rows that break a rule": ".2%",
    "synthetic rows equal to a training row": ".2%",
    "synthetic rows equal to a training row that occurs once": ".2%",
    "synthetic rows equal to a sampled training row": ".2%",
    "distance to the nearest training row, 5th percentile": ".4f",
    "distance to the nearest training row, median": ".4f",
    "synthetic rows nearer to training rows": ".2%",
    "membership attack, true positives at 1 % false positives": ".2%",
    "right guesses by the nearest synthetic row": ".2%",
}
SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("of", pa.string()),
        ("value", pa.float64()),
        ("reference", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)


class Figure(NamedTuple):
    """One number of an evaluation.

    Attributes:
        metric: The name of the metric.
        of: The column, value of a column, group of rows, pair of columns, query group, target or
            rule; empty for the whole table.
        value: The value for the synthetic table.
        reference: The value for the real data or for a perfect synthetic table, where there is one.
        low: The lower end of the 95 % interval, where there is one.
        high: The upper end of the 95 % interval, where there is one.
    """

    metric: str
    of: str
    value: float
    reference: float | None = None
    low: float | None = None
    high: float | None = None

    def texts(self) -> tuple[str, str, str]:
        """The name, the value and the reference, as texts."""
        form = FORMATS.get(self.metric, ".3f")
        value = f"{self.value:{form}}"
        if self.low is not None and self.high is not None:
            value += f" ({self.low:{form}} to {self.high:{form}})"
        reference = "" if self.reference is None else f"{self.reference:{form}}"
        if self.reference == 0:
            reference = "0"
        return f"{self.metric}: {self.of}" if self.of else self.metric, value, reference


def table_of_figures(figures: Iterable[Figure]) -> pa.Table:
    """Figures as a table, with one row per figure."""
    columns = zip(*figures, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def summarised(figures: Sequence[Figure]) -> list[Figure]:
    """The figures that matter most, in the order of ``SUMMARY``."""
    return [figure for metric in SUMMARY for figure in figures if figure.metric == metric]


def error_figures(errors: WorkloadErrors) -> Iterator[Figure]:
    """The errors of all queries together, and of each query group."""
    yield Figure("mean query error", "", errors.mean, 0)
    yield Figure("RMS query error", "", errors.rms, 0)
    yield Figure("largest query error", "", errors.largest, 0)
    if errors.noise and errors.measured_rms is not None:
        yield Figure("query error over noise", "", errors.measured_rms / errors.noise, 0)
    for group in errors.groups:
        yield Figure("RMS error of a query group", group.name, group.rms, 0)
        if group.noise is not None:
            yield Figure("noise of a query group", group.name, group.noise)


def column_figures(columns: Sequence[ColumnComparison]) -> Iterator[Figure]:
    """The distances of the columns, their shares of nulls and their means."""
    distances = [column.distance for column in columns]
    yield Figure("mean column distance", "", float(np.mean(distances)), 0)
    yield Figure("largest column distance", "", max(distances), 0)
    for column in columns:
        yield Figure("column distance", column.name, column.distance, 0)
        if column.ks is not None:
            yield Figure("column KS", column.name, column.ks, 0)
        yield Figure("share of nulls", column.name, column.nulls[1], column.nulls[0])
        if column.means is not None:
            yield Figure("column mean", column.name, column.means[1], column.means[0])


def statistic_figures(statistics: SummaryStatistics) -> Iterator[Figure]:
    """The statistics of numeric columns and of groups; the reference is that of the real rows.

    The means and the shares of nulls of columns are among the figures of columns.
    """
    errors = statistics.errors
    for metric, error in (
        ("mean relative error of means", errors.relative),
        ("mean standardised error of means", errors.standardised),
        ("mean relative error of group means", errors.group_relative),
        ("mean standardised error of group means", errors.group_standardised),
    ):
        if error is not None:
            yield Figure(metric, "", error, 0)
    for column in statistics.columns:
        for each in column.numbers[1:]:
            yield from _compared(f"column {each.name}", column.name, each)
        if column.zeros is not None:
            yield from _compared("share of zeros", column.name, column.zeros)
        for metric, shares in (
            ("share of a value", column.values),
            ("share of a weekday", column.weekdays),
            ("share of a month", column.months),
        ):
            for each in shares:
                yield from _compared(metric, f"{column.name} = {each.name}", each)
    for group in statistics.groups:
        yield from _compared("group mean", group.name, group.mean)
        yield from _compared("group median", group.name, group.median)


def _compared(metric: str, of: str, each: ComparedStatistic) -> Iterator[Figure]:
    """The figure of a statistic; none if the synthetic table does not have it."""
    if each.synthetic is not None:
        yield Figure(metric, of, each.synthetic, each.real)


def association_figures(associations: Associations) -> Iterator[Figure]:
    """The association of each pair of columns, by its measure."""
    yield Figure("mean association difference", "", associations.mean_difference, 0)
    for pair in associations.pairs:
        yield Figure(pair.measure, f"{pair.one} and {pair.two}", pair.synthetic, pair.real)


def whole_table_figures(
    marginals: Sequence[KMarginal], propensity: Propensity | None
) -> Iterator[Figure]:
    """The k-marginal scores and the propensity scores."""
    for marginal in marginals:
        yield Figure(f"{marginal.k}-marginal score", "", marginal.score, 1000)
    if propensity is not None:
        yield Figure("propensity mean squared error", "", propensity.pmse, 0)
        yield Figure("propensity ratio", "", propensity.ratio, 1)
        yield Figure("propensity AUC", "", propensity.auc, 0.5)


def prediction_figures(tasks: Sequence[PredictionTask]) -> Iterator[Figure]:
    """The scores of models trained on synthetic rows; the reference is trained on real rows."""
    for task in tasks:
        for model in MODELS:
            synthetic, real = (task.score(rows, model) for rows in ("synthetic", "real"))
            yield Figure(f"macro F1, {model}", task.target, synthetic.f1_macro, real.f1_macro)
            if synthetic.f1_binary is not None:
                yield Figure(
                    f"binary F1, {model}", task.target, synthetic.f1_binary, real.f1_binary
                )
            yield Figure(f"accuracy, {model}", task.target, synthetic.accuracy, real.accuracy)


def rule_figures(rules: Sequence[tuple[str, float, float]]) -> Iterator[Figure]:
    """The share of rows that break each rule."""
    if rules:
        most = max(synthetic for _, _, synthetic in rules)
        yield Figure("largest share of rows that break a rule", "", most, 0)
    for rule, real, synthetic in rules:
        yield Figure("share of rows that break a rule", rule, synthetic, real)


def attack_figures(attacks: Attacks | None) -> Iterator[Figure]:
    """The results of the attacks; the reference is the result on held-out rows."""
    if attacks is None:
        return

    def estimated(metric: str, found: Estimate, reference: float | None, of: str = "") -> Figure:
        return Figure(metric, of, found.value, reference, found.low, found.high)

    matches, distances = attacks.holdout_matches, attacks.holdout_distances
    yield estimated("synthetic rows equal to a training row", attacks.matches, None)
    yield estimated("synthetic rows equal to a training row that occurs once", attacks.copies, None)
    yield estimated(
        "synthetic rows equal to a sampled training row",
        attacks.sample_matches,
        None if matches is None else matches.value,
    )
    for place, percentile in enumerate(("5th percentile", "median")):
        yield Figure(
            f"distance to the nearest training row, {percentile}",
            "",
            attacks.distances[place],
            None if distances is None else distances[place],
        )
    if attacks.closer is not None:
        yield estimated("synthetic rows nearer to training rows", attacks.closer, 0.5)
    if attacks.membership is not None:
        yield estimated("membership attack, AUC", attacks.membership, 0.5)
    if attacks.true_positives is not None:
        yield estimated(
            "membership attack, true positives at 1 % false positives", attacks.true_positives, 0.01
        )
    for each in attacks.inference:
        yield estimated(
            "right guesses by the nearest synthetic row",
            each.members,
            each.others.value,
            each.column,
        )
