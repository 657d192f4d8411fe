"""Denoising: estimates of the answers before the noise, from the measurements alone.

A search that fits noisy answers as closely as possible fits the noise. Here the answers are
replaced by their posterior means, estimated by a Gibbs sampler over tables (``gibbs``). The prior
distribution is learned from the noisy answers themselves, whose variances are public:

- Lower orders come first. Single columns are estimated from all pairs, and where there are triples,
  their pairs are denoised before them. A lower order is not fitted to the noise of a higher one.
- Each group has a variance component: the strength of its columns' dependence beyond the lower
  orders (``variance_components``). Where a group shows no dependence, hardly anything is fitted.
- The rows of the prior distribution follow a Chow–Liu forest of the columns (``chow_liu``), which
  is learned from the tables of the sampler. It captures what many groups have in common.

Pairs have a second estimate, by latent classes of rows (``latent_classes``) with each group's
excess over them. Its errors differ from those of the sampler, and the mean of both has a smaller
error than either.

Denoising uses the measurements only, and so it costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.projection.denoising.chow_liu import empty_chow_liu_forest
from private_gsd.projection.denoising.compromises import blended, translated
from private_gsd.projection.denoising.gibbs import GibbsSampler
from private_gsd.projection.denoising.interactions import with_interactions
from private_gsd.projection.denoising.latent_classes import LatentClasses
from private_gsd.projection.denoising.lower_orders import (
    cell_variance,
    complete_tables,
    has_marginals,
    is_wide,
    largest_order,
    marginals_alone,
    queries_of_marginals,
    split,
    summed_to,
)
from private_gsd.projection.denoising.variance_components import (
    PRIOR_STRENGTH,
    posterior_means,
    with_component_scales,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.watch import Watch
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import MarginalTable

    Shares = NDArray[np.float64]

# Prior strength, in rows, against the estimates of lower orders.
LOWER_ORDER_STRENGTH = 20.0
# The same, of triples against the estimates of their pairs, is at most this / (noise scale of pairs
# as a fraction of the records).
PAIRS_STRENGTH = 0.5
# Number of Chow–Liu forests that are learned, one after the other.
CHOW_LIU_ROUNDS = 2
# Number of tables that each chain samples to learn from, and for the answers.
SAMPLES = 5
LAST_SAMPLES = 10
# Weight of the latent classes in the mean of both estimates of pairs, where these are near.
LATENT_CLASS_WEIGHT = 0.45
# Rows of a sampled table = this / (smallest noise scale as a fraction of records); twice as many
# for triples.
ROWS_PER_SCALE = 8
# Least and largest number of rows of a sampled table.
ROWS = 1000, 8000
# Least variance of a target, in rows of a sampled table; with a smaller one the sampler would not
# move.
LEAST_VARIANCE = 0.5


class Denoising:
    """One denoising of measurements.

    Only marginals are denoised, and without the schema's rules. The search fits the other queries
    and keeps the rules.

    Args:
        measured: The noisy answers.
        seed: The seed of the search.
        threads: The number of threads.
        watch: The watch that reports progress.
        for_models: The position of the column that models will predict; None for none.
    """

    def __init__(
        self,
        measured: Measurements,
        seed: int,
        threads: int,
        watch: Watch,
        for_models: int | None = None,
    ) -> None:
        self._for_models = for_models
        self._all = measured
        self._measured = marginals_alone(measured)
        self._seed = seed
        self._threads = threads
        self._watch = watch
        self._tables = complete_tables(self._measured.workload)
        # Single columns have far less noise, and few cells.
        least = min(largest_order(self._tables), 2)
        groups = [table.group for table in self._tables if len(table.features) >= least]
        scales = self._measured.scales[groups] if groups else self._measured.scales
        self._least = float(scales.min()) / measured.n_records
        self._sampler: GibbsSampler | None = None
        self._chow_liu_forest = empty_chow_liu_forest(len(measured.workload.schema))

    @classmethod
    def of(
        cls,
        measured: Measurements,
        config: GeneticSearch,
        rows: int,
        seed: int,
        threads: int,
        watch: Watch,
    ) -> Denoising | None:
        """A denoising; None without marginals, or if ``rows`` rows cannot resolve the noise."""
        if not has_marginals(measured.workload) or config.generations == 0:
            return None
        if median_noise(marginals_alone(measured)) * min(rows, ROWS[1]) < 1:
            return None
        names = measured.workload.schema.names
        column = None if config.for_models is None else names.index(config.for_models)
        return cls(measured, seed, threads, watch, column)

    @staticmethod
    def prepare(measured: Measurements) -> None:
        """Compile the kernels for such measurements, or load them from the cache."""
        if has_marginals(measured.workload):
            learned = np.ones(len(measured.workload.schema), dtype=np.bool_)
            GibbsSampler(marginals_alone(measured), 1, 0, learned).prepare()

    def run(self) -> Measurements:
        """The same queries, with denoised answers to the marginals among them."""
        measured, tables = self._measured, self._tables
        order = largest_order(tables)
        if order < 2:
            alone = weakened(measured, PRIOR_STRENGTH)
            return self._with_answers(self._sample(alone, LAST_SAMPLES).means)
        pairs = measured if order == 2 else summed_to(measured, tables, 2, measured.shares)
        pair_tables = tables if order == 2 else complete_tables(pairs.workload)
        # Tables that fit all pairs give better single columns than the sums of the pairs do.
        sampler = self._sample(weakened(pairs, PRIOR_STRENGTH), SAMPLES)
        means, of_columns = sampler.means, sampler.column_shares()
        columns = summed_to(pairs, pair_tables, 1, means)
        shares = {
            table.features[0]: table.of(columns.shares)
            for table in complete_tables(columns.workload)
        }
        lower = weakened(columns, LOWER_ORDER_STRENGTH)
        for number in range(1 + CHOW_LIU_ROUNDS):
            if number:
                self._chow_liu_forest = sampler.chow_liu_forest(pair_tables)
            prior_means = sampler.tables_along(self._chow_liu_forest, of_columns, pair_tables)
            targets = with_component_scales(pairs, pair_tables, prior_means, 2, self._for_models)
            last = number == CHOW_LIU_ROUNDS and order == 2
            sampler = self._sample(targets + lower, LAST_SAMPLES if last else SAMPLES)
        answers = self._with_latent_classes(pairs, pair_tables, shares, sampler.means)
        if order > 2:
            estimated = summed_to(pairs, pair_tables, 2, answers)
            strength = min(LOWER_ORDER_STRENGTH, PAIRS_STRENGTH / median_noise(estimated))
            answers = self._upper_orders(weakened(estimated, strength), sampler)
        return self._with_answers(answers[: measured.workload.size])

    def _upper_orders(self, lower: Measurements, sampler: GibbsSampler) -> Shares:
        """Answers of all tables, where some are of three columns or more.

        Args:
            lower: The denoised pairs.
            sampler: The sampler of tables that fit them.
        """
        measured, tables = self._measured, self._tables
        upper = [table for table in tables if len(table.features) > 2]
        wide = [table for table in upper if is_wide(table)]
        known = measured
        if len(wide) < len(upper):
            if wide:
                groups = {table.group for table in wide}
                known = measured.select(
                    [group for group in range(measured.workload.num_groups) if group not in groups]
                )
            narrow = complete_tables(known.workload)
            prior_means = split(narrow, sampler.answers(known.workload))
            targets = with_component_scales(known, narrow, prior_means, 3, self._for_models)
            sampler = self._sample(targets + lower, LAST_SAMPLES)
            if not wide:
                return sampler.means
        answers = sampler.answers(measured.workload)
        pairs = {table.features: table for table in complete_tables(lower.workload)}
        for table in tables:
            if table.features in pairs:
                table.of(answers)[...] = pairs[table.features].of(lower.shares)
        estimates = with_interactions(measured, wide, split(wide, answers))
        for table, estimate in zip(wide, estimates, strict=True):
            table.of(answers)[...] = estimate
        targets = replace(measured, counts=answers * measured.n_records)
        sampler = self._sample(weakened(targets, LOWER_ORDER_STRENGTH) + lower, LAST_SAMPLES)
        # Lower orders stay as they were estimated.
        for table in wide:
            table.of(answers)[...] = table.of(sampler.means)
        return answers

    def values(self, rows: int, rng: np.random.Generator) -> NDArray[np.float64] | None:
        """A table of ``rows`` rows from the sampled tables; None if none has fitted pairs yet.

        The newest tables are taken whole, and some rows of the table before them. Rows are repeated
        only if all tables have fewer rows than that.

        Args:
            rows: The number of rows.
            rng: The random number generator that chooses the last rows.
        """
        sampler = self._sampler
        if sampler is None or not sampler.states or largest_order(self._tables) < 2:
            return None
        newest = [state.values for state in reversed(sampler.samples or sampler.states)]
        whole, rest = divmod(rows, len(newest[0]))
        chosen = [newest[number % len(newest)] for number in range(whole + 1)]
        chosen[-1] = chosen[-1][rng.permutation(len(newest[0]))[:rest]]
        return np.concatenate(chosen)

    def _sample(self, targets: Measurements, samples: int) -> GibbsSampler:
        """Sample tables whose answers are close to the targets, with the current forest.

        Args:
            targets: The targets.
            samples: The number of tables that each chain samples.
        """
        tables = complete_tables(targets.workload)
        learned = np.zeros(len(targets.workload.schema), dtype=np.bool_)
        for table in tables:
            learned[[feature.position for feature in table.features]] = True
        rows = sampled_rows(self._least, largest_order(tables))
        least = targets.n_records * math.sqrt(LEAST_VARIANCE / rows)
        targets = replace(targets, scales=np.maximum(targets.scales, least))
        before = [] if self._sampler is None else [state.values for state in self._sampler.states]
        start = [np.resize(values, (rows, values.shape[1])) for values in before]
        earlier = self._sampler
        self._sampler = GibbsSampler(
            targets, rows, self._seed, learned, self._chow_liu_forest, start
        )
        if earlier is not None:
            self._sampler.refine_chow_liu(earlier)
        with self._watch.compiling():
            self._sampler.prepare()
        self._sampler.run(samples, self._watch, self._threads)
        return self._sampler

    def _with_latent_classes(
        self,
        measured: Measurements,
        tables: Sequence[MarginalTable],
        columns: Mapping[Feature, Shares],
        answers: Shares,
    ) -> Shares:
        """Compromises between answers, estimates of pairs by latent classes, and noisy answers."""
        pairs = [table for table in tables if len(table.features) == 2]
        others: Sequence[Shares] = [table.of(answers) for table in pairs]
        if LatentClasses.few_enough(pairs):
            fitted = LatentClasses(measured, pairs, columns).answers(self._seed, self._watch)
            others = posterior_means(measured, pairs, fitted, self._for_models)
        answers = answers.copy()
        for table, other in zip(pairs, others, strict=True):
            mine, noisy = table.of(answers), table.of(measured.shares)
            variance = cell_variance(measured, table)
            both = blended(noisy, mine, other, LATENT_CLASS_WEIGHT, variance)
            first, second = (columns[feature] for feature in table.features)
            mine[...] = translated(noisy, both, first, second, variance)
        return answers

    def _with_answers(self, answers: Shares) -> Measurements:
        """All measurements, with these answers to the marginals."""
        counts = self._all.counts.copy()
        counts[queries_of_marginals(self._all.workload)] = answers * self._all.n_records
        return replace(self._all, counts=counts)


def sampled_rows(noise: float, order: int) -> int:
    """The number of rows of a sampled table.

    Args:
        noise: The smallest noise scale of an answer, as a fraction of the records.
        order: The largest number of columns of a marginal.
    """
    return int(np.clip(ROWS_PER_SCALE * max(order - 1, 1) / noise, *ROWS))


def median_noise(measured: Measurements) -> float:
    """The median noise scale of an answer, as a fraction of the records."""
    return float(np.median(measured.scales)) / measured.n_records


def weakened(measured: Measurements, prior_strength: float) -> Measurements:
    """Measurements with scales for a prior distribution of this strength, in rows."""
    return replace(measured, scales=measured.scales * math.sqrt(prior_strength))
