"""Denoising: what the answers most likely were before the noise.

A search that fits noisy answers as closely as it can fits the noise. Here the mean answers of many
tables are taken instead, tables that come the more often the better they answer and the less they
say beyond it (``chains``). Two things are learned from the noisy answers themselves, whose variance
is public:

- Lower orders first. Single columns are read off tables that answer all pairs together, and where
  there are triples, their pairs are denoised before them: what was learned there is not fitted to
  the noise again.
- How much there is to be learned in each group beyond the lower orders. Each group's excess over
  the noise says how strong its columns hang together, and all groups together say what is usual
  (empirical Bayes). Where there is nothing to see, hardly anything is fitted.
- Which columns hang together most, by the tables drawn so far: the next are drawn along them
  (``forest``), and groups tell what there is beyond. What many groups have in common, and none
  could tell by itself, is seen so.

Pairs are looked at in a second way as well, as those of rows of a few kinds (``kinds``), and what
groups tell beyond. It errs elsewhere than the tables do, and the mean of both errs less than each.

Nothing but measurements is looked at, so it costs no privacy.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising.gibbs import Chains
from private_gsd.projection.denoising.latent_classes import Kinds
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.layout import tables_asked
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.gibbs import Forest
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.watch import Watch
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import Asked

    Shares = NDArray[np.float64]
    Features = tuple[Feature, ...]

# How many rows' worth of doubt there is that columns hang together, before anything is learned of
# it; and in what was learned of lower orders. Half and twice as much changes errors on real data by
# up to 4 %.
DOUBT = 200.0
DOUBT_BELOW = 20.0
# How often the columns that hang together most are looked for.
ROUNDS = 2
# Weak groups are followed as if they were this strong, times the noise as a share of the rows; up
# to a bound.
WEAK = 0.25
WEAKEST = 1 / 60
# What the kinds have in the mean of both: with 0.5, mean errors of pairs are the same within 1 %,
# and largest ones of ACS up to 2 % more.
KINDS_PART = 0.4
# A table has so many rows within one standard deviation of the least noise, and twice as many where
# triples are asked, whose cells are emptier; within bounds. With 1,164 rows instead of 8,000,
# denoised triples of Adult at ε = 1 had 27 % more error.
ROWS_PER_SCALE = 8
ROWS = 1000, 8000
# How strongly columns may hang together, τ: a cell's excess has its expected share times τ as its
# variance.
STRENGTHS = np.geomspace(1e-6, 3, 40)
# Rows are too coarse a step for what is asked more closely than this: nothing would move. With 0
# instead, the largest error of tree marginals of Adult at ε = 1 was 0.019, not 0.008.
STIFF = 0.5
# Shares and scales beyond this are absurd.
LARGEST = 1e6
LEARNING_ROUNDS = 30
SPREAD = np.array([0.1, 0.2, 0.4, 0.2, 0.1])


class Denoising:
    """One denoising of measurements.

    Marginals are denoised by themselves: other questions and a schema's rules are the search's.

    Args:
        measured: The noisy answers.
        seed: Of the search.
        threads: How many to use.
        watch: Asked whether to stop.
    """

    def __init__(self, measured: Measurements, seed: int, threads: int, watch: Watch) -> None:
        self._all = measured
        self._measured = _marginals(measured)
        self._seed = seed
        self._threads = threads
        self._watch = watch
        self._tables = _tables(self._measured.workload)
        self._least = float(self._measured.scales.min()) / measured.n_records
        self._chains: Chains | None = None
        self._forest: Forest | None = None

    @classmethod
    def of(
        cls, measured: Measurements, config: GeneticSearch, seed: int, threads: int, watch: Watch
    ) -> Denoising | None:
        """A denoising, if there are marginals, and noise on them that the table could fit."""
        some = any(family.marginals for family in measured.workload.families)
        if not some or config.generations == 0:
            return None
        if _noise(_marginals(measured)) * min(config.rows, ROWS[1]) < 1:
            return None
        return cls(measured, seed, threads, watch)

    @staticmethod
    def prepare(measured: Measurements) -> None:
        """Compile what any denoising of such measurements needs, or load what was compiled."""
        if any(family.marginals for family in measured.workload.families):
            known = np.ones(len(measured.workload.schema), dtype=np.bool_)
            Chains(_marginals(measured), 1, 0, known).prepare()

    def run(self) -> Measurements:
        """The same questions, and denoised answers to the marginals among them."""
        measured, tables = self._measured, self._tables
        order = _order(tables)
        if order < 2:
            return self._answered(self._drawn(_doubted(measured, DOUBT)).means)
        pairs = measured if order == 2 else _below(measured, tables, 2, measured.shares)
        twos = tables if order == 2 else _tables(pairs.workload)
        # All that pairs say together tells more of single columns than their sums do.
        ones = _below(pairs, twos, 1, self._drawn(_doubted(pairs, DOUBT)).means)
        shares = {table.features: table.of(ones.shares) for table in _tables(ones.workload)}
        usual = [_product([shares[(f,)] for f in table.features]) for table in twos]
        known = _doubted(ones, DOUBT_BELOW)
        drawn = self._drawn(_sharpened(pairs, twos, usual, 2) + known)
        for _ in range(ROUNDS):
            self._forest = drawn.forest()
            if not self._forest.neighbours.size:
                break
            usual = _split(twos, self._drawn(ones).answers(pairs.workload))
            drawn = self._drawn(_sharpened(pairs, twos, usual, 2) + known)
        answers = self._with_kinds(pairs, twos, {f: shares[(f,)] for (f,) in shares}, drawn.means)
        if order > 2:
            known = _doubted(_below(pairs, twos, 2, answers), DOUBT_BELOW)
            usual = _split(tables, drawn.answers(measured.workload))
            answers = self._drawn(_sharpened(measured, tables, usual, 3) + known).means
        return self._answered(answers[: measured.workload.size])

    def values(self, rows: int) -> NDArray[np.float64] | None:
        """A table of so many rows, as it stands; none if nothing was made yet."""
        if self._chains is None or not self._chains.states:
            return None
        made = np.concatenate([state.values for state in self._chains.states])
        return np.resize(made, (rows, made.shape[1]))

    def _drawn(self, measured: Measurements) -> Chains:
        """Tables that answer about as was measured, along the forest as it is known."""
        known = np.zeros(len(measured.workload.schema), dtype=np.bool_)
        for table in _tables(measured.workload):
            known[[feature.position for feature in table.features]] = True
        rows = rows_drawn(self._least, _order(_tables(measured.workload)))
        least = measured.n_records * math.sqrt(STIFF / rows)
        measured = replace(measured, scales=np.maximum(measured.scales, least))
        before = [] if self._chains is None else [state.values for state in self._chains.states]
        start = [np.resize(values, (rows, values.shape[1])) for values in before]
        self._chains = Chains(measured, rows, self._seed, known, self._forest, start)
        with self._watch.compiling():
            self._chains.prepare()
        self._chains.run(self._watch, self._threads)
        return self._chains

    def _with_kinds(
        self,
        measured: Measurements,
        tables: Sequence[Asked],
        ones: Mapping[Feature, Shares],
        answers: Shares,
    ) -> Shares:
        """Answers, and what kinds of rows say of the pairs among them, together."""
        pairs = [table for table in tables if len(table.features) == 2]
        if not Kinds.few_enough(pairs):
            return answers
        usual = Kinds(measured, pairs, ones).answers(self._seed, self._watch)
        answers = answers.copy()
        for table, other in zip(pairs, _beyond(measured, pairs, usual), strict=True):
            mine = table.of(answers)
            mine += KINDS_PART * (other - mine)
        return answers

    def _answered(self, answers: Shares) -> Measurements:
        counts = self._all.counts.copy()
        counts[_asked_by_marginals(self._all.workload)] = answers * self._all.n_records
        return replace(self._all, counts=counts)


def rows_drawn(noise: float, order: int) -> int:
    """How many rows a table has that is drawn.

    Args:
        noise: The least on an answer, as a share of the rows.
        order: Of how many columns marginals are, at most.
    """
    return int(np.clip(ROWS_PER_SCALE * max(order - 1, 1) / noise, *ROWS))


def _order(tables: Sequence[Asked]) -> int:
    """Of how many columns tables are, at most."""
    return max((len(table.features) for table in tables), default=0)


def _asked_by_marginals(workload: Workload) -> NDArray[np.bool_]:
    """For every query, whether it is a marginal's."""
    return np.concatenate(
        [np.full(family.size, bool(family.marginals)) for family in workload.families]
    )


def _marginals(measured: Measurements) -> Measurements:
    """The marginals alone, of a schema without rules."""
    families = measured.workload.families
    groups = np.concatenate(
        [np.full(len(family.group_sizes), bool(family.marginals)) for family in families]
    )
    schema = replace(measured.workload.schema, constraints=())
    furthest = LARGEST * float(measured.n_records)
    marginals = [each for family in families for each in family.marginals]
    return Measurements(
        Workload(schema, (Marginals(schema, marginals),)),
        np.clip(measured.counts[_asked_by_marginals(measured.workload)], -furthest, furthest),
        np.clip(measured.scales[groups], measured.n_records / LARGEST, furthest),
        measured.n_records,
        ("",) * len(marginals),
        measured.private,
        measured.neighbours,
    )


def _noise(measured: Measurements) -> float:
    """The usual noise on an answer, as a share of the rows."""
    return float(np.median(measured.scales)) / measured.n_records


def _tables(workload: Workload) -> list[Asked]:
    """The tables of all marginals in which every row has a cell."""
    tables = tables_asked(workload)
    return [table for table in tables if not any(each.has_gap for each in table.features)]


def _split(tables: Sequence[Asked], answers: Shares) -> list[Shares]:
    return [table.of(answers) for table in tables]


def _doubted(measured: Measurements, doubt: float) -> Measurements:
    return replace(measured, scales=measured.scales * math.sqrt(doubt))


def _sums(table: Asked, answers: Shares, order: int) -> Iterator[tuple[Features, Shares, float]]:
    """What a table sums to over fewer columns, and how many cells make one."""
    everything = range(len(table.features))
    for places in itertools.combinations(everything, min(order, len(table.features))):
        rest = tuple(place for place in everything if place not in places)
        features = tuple(table.features[place] for place in places)
        together = math.prod(table.features[place].size for place in rest)
        yield features, table.of(answers).sum(axis=rest), together


def _below(
    measured: Measurements, tables: Sequence[Asked], order: int, answers: Shares
) -> Measurements:
    """Tables of a lower order, each from all that have it as their sum, by their variances.

    Args:
        measured: What was measured; scales are of their noise.
        tables: Of these, those in which every row has a cell.
        order: How many columns a table has at most.
        answers: The answers that are summed.
    """
    cells: dict[Features, Shares] = {}
    precisions: dict[Features, float] = {}
    for table in tables:
        variance = _variance(measured, table)
        for features, sums, together in _sums(table, answers, order):
            precision = 1 / (variance * together)
            cells[features] = cells.get(features, 0.0) + sums * precision
            precisions[features] = precisions.get(features, 0.0) + precision
    schema = measured.workload.schema
    return Measurements(
        Workload(schema, (Marginals(schema, [Marginal((features,)) for features in cells]),)),
        np.concatenate([(cells[f] / precisions[f]).ravel() for f in cells]) * measured.n_records,
        measured.n_records / np.sqrt(np.array(list(precisions.values()))),
        measured.n_records,
        ("",) * len(cells),
        measured.private,
        measured.neighbours,
    )


def _sharpened(
    measured: Measurements, tables: Sequence[Asked], usual: Sequence[Shares], order: int
) -> Measurements:
    """What the answers say beyond lower orders, each group as closely as is worth it.

    Args:
        measured: The noisy answers.
        tables: Of these, those in which every row has a cell.
        usual: For each table, what lower orders let expect.
        order: Of the tables that there is something to learn of; lower ones are as expected.
    """
    counts = measured.counts.copy()
    groups = measured.workload.num_groups
    likelihoods = np.zeros((groups, len(STRENGTHS)))
    learned = np.zeros(groups, dtype=np.bool_)
    for table, expected in zip(tables, usual, strict=True):
        excess = centered(table.of(measured.shares) - expected)
        if len(table.features) < order or 1 in table.shape:
            table.of(counts)[...] = expected * measured.n_records
            continue
        table.of(counts)[...] = (expected + excess) * measured.n_records
        learned[table.group] = True
        likelihoods[table.group] += _likelihoods(excess, expected, _variance(measured, table))
    strengths = np.full(groups, 1 / DOUBT)
    if learned.any():
        least = np.minimum(WEAK * measured.scales[learned] / measured.n_records, WEAKEST)
        strengths[learned] = np.maximum(_strengths(likelihoods[learned], order), least)
    return replace(measured, counts=counts, scales=measured.scales / np.sqrt(strengths))


def _beyond(
    measured: Measurements, tables: Sequence[Asked], usual: Sequence[Shares]
) -> list[Shares]:
    """What is usual, and what the answers say beyond it, as far as their group is to be believed.

    Args:
        measured: The noisy answers.
        tables: The pairs among them.
        usual: For each, what is expected.
    """
    usual = [np.maximum(each, 1e-9) for each in usual]
    excesses = [
        centered(table.of(measured.shares) - each)
        for table, each in zip(tables, usual, strict=True)
    ]
    groups = np.unique([table.group for table in tables])
    likelihoods = np.zeros((len(groups), len(STRENGTHS)))
    places = [int(np.searchsorted(groups, table.group)) for table in tables]
    for table, each, excess, place in zip(tables, usual, excesses, places, strict=True):
        if 1 not in table.shape:
            likelihoods[place] += _likelihoods(excess, each, _variance(measured, table))
    found = []
    strengths = _strengths(likelihoods, 2)
    for table, each, excess, place in zip(tables, usual, excesses, places, strict=True):
        known = strengths[place] * each
        believed = centered(excess * known / (known + _variance(measured, table)))
        found.append(np.maximum(each + believed, 0))
    return found


def _variance(measured: Measurements, table: Asked) -> float:
    """That of the noise on a table's cells, as shares."""
    return float(measured.scales[table.group] / measured.n_records) ** 2


def _likelihoods(excess: Shares, expected: Shares, variance: float) -> NDArray[np.float64]:
    """The logarithm of the likelihood of a table's excess at each strength."""
    share = math.prod(1 - 1 / size for size in excess.shape)
    variances = STRENGTHS[:, None] * np.maximum(expected.ravel(), 1e-9) + variance
    fits = np.log(variances) + excess.ravel() ** 2 / share / variances
    return np.asarray(-share / 2 * fits.sum(axis=1))


def _strengths(likelihoods: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """How strong each group is, from the logarithms of its likelihood at each strength.

    What is usual is learned from all groups, without a form but denoise. Of triples noise can hide
    everything: one strength is as likely as another, the mean is that of the strongest, and noise
    would be followed. The mean of the logarithms is weak; it makes largest errors of pairs larger.
    """
    usual = np.full(len(STRENGTHS), 1 / len(STRENGTHS))
    chances = likelihoods
    for _ in range(LEARNING_ROUNDS):
        chances = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True)) * usual
        chances /= chances.sum(axis=1, keepdims=True)
        usual = np.convolve(np.pad(chances.mean(axis=0), 2, mode="edge"), SPREAD, "valid")
        usual /= usual.sum()
    if order > 2:
        return np.asarray(np.exp(chances @ np.log(STRENGTHS)))
    return np.asarray(chances @ STRENGTHS)


def centered(cells: Shares) -> Shares:
    """A table without all that its sums say."""
    for axis in range(cells.ndim):
        cells = cells - cells.mean(axis=axis, keepdims=True)
    return cells


def _product(ones: Sequence[Shares]) -> Shares:
    """The table of columns that do not hang together."""
    return functools.reduce(np.multiply.outer, ones)
