"""Audit: an empirical lower bound on the epsilon of every mechanism, beside its claim.

    python -m benchmarks.audit

Two neighbouring tables go through each mechanism many times, with the noise that releases have
(OpenDP's, from the operating system) and with charges to an accountant. An attacker who knows both
tables looks at all that a release publishes (noisy counts, selections, the measured number of
records) and says which of the two it was made of. How often the attacker is right and how often
wrong bounds epsilon from below: a mechanism that is (epsilon, delta)-differentially private has
``P(event | one) <= e^epsilon P(event | other) + delta`` for every event and in both directions.

The attacker's statistic is the exact log-likelihood ratio, which is the best there is. It is found
by replay: each run is recorded, and run again on the other table with the recorded draws in place
of noise. The probabilities of these draws under both tables are known (discrete Gaussian noise on
whole numbers; a softmax for each selection). If the run on the other table asks for other draws, or
publishes anything else although all draws are the same, the tables are told apart without doubt,
and the ratio is infinite. So an audit also finds what leaks beside the noise.

The tables are the worst ones for the questions. The record that differs takes another value in
every column, so that each measurement moves by its whole sensitivity; and the scores of what may be
selected are tied in pairs, one of which moves up and the other down. The projection is a fixed
table, which keeps the scores tied. It may be anything: it only sees what was measured.

A fifth of the draws chooses the event (a threshold, and one direction or both). The others bound
its probabilities by Clopper and Pearson. Both directions together are the sum of two inequalities,
of draws from two tables; such a sum has no heavier tails than as many draws with the mean
probability (Hoeffding, 1956). The lower bound of a line is wrong with a probability of at most
1 - confidence. Every mechanism is then audited with half the noise, for which the same claim
is false: there the bound must exceed the claim, or the audit would have no power.

Epsilon is 2 and delta 0.1 by default. The events that show what Gaussian noise gives away are about
as rare as delta: a bound at a delta of 1e-9 would need billions of draws, and one at 0.1 needs some
hundreds. The same code calibrates the noise to any delta. Bounds stay below the claim for two
reasons: confidence takes its part, and the conversion from rho to epsilon of mechanisms that select
is not tight.

With --unit the unit of protection is not a row: one unit takes another value in all of its rows,
which are more than are taken.

The exit code is 1 if a mechanism exceeds its claim, or if half the noise does not.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table
from scipy.stats import beta, norm

from private_gsd import Categorical, Encoder, Schema, Unit, exact_counts
from private_gsd.mechanisms import MECHANISMS as REGISTRY
from private_gsd.mechanisms import Adaptive, Task
from private_gsd.mechanisms.registry import conversion_of
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import SecureNoise
from private_gsd.runs.checkpoint import MemoryCheckpoint
from private_gsd.runs.executor import Executor
from private_gsd.runs.payments import UnledgeredPayments
from private_gsd.schema.neighbours import relation_of
from private_gsd.schema.unit import Weighting
from private_gsd.system.operating_system import cores
from private_gsd.workloads import Neighbours, Workload
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd import ExactCounts

    Matrix = NDArray[np.float64]

MECHANISMS = tuple(REGISTRY)
RELATIONS: tuple[str, ...] = get_args(Neighbours)
# The adaptive mechanism selects and measures so often; more epochs have more of the same.
EPOCHS = 2
# The most rows that are taken of a unit, and what units count.
MOST = 3
WEIGHTINGS: tuple[str, ...] = get_args(Weighting)
# How many records stand for one of the synthetic table's. Errors of this size are far above noise.
MANY = 500
# The share of the draws that choose the event.
CHOOSING = 0.2
# What an attacker says, and when: it was the second table, or the first, or either.
EVENTS = {
    "both": "|ratio| > {}",
    "second": "ratio > {}",
    "first": "ratio < -{}",
}
# How much more one direction must promise than both.
ONE_SIDED = 0.5
# Above any finite ratio.
BEYOND = 1e300
# Draws that a process makes at a time.
CHUNK = 250


class Recorded:
    """Noise as releases have it, of some share of its scale; remembers what was drawn.

    Args:
        share: What the scales are multiplied with: 1, or less where the audit must notice it.
    """

    private = True

    def __init__(self, share: float) -> None:
        self._noise = SecureNoise(threads=1)
        self._share = share
        self.draws: list[NDArray[np.int64] | list[int]] = []
        self.likelihood = 0.0

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Draw."""
        noisy = self._noise.gaussian(counts, self._share * scale)
        self.draws.append(noisy)
        self.likelihood += log_gaussian(noisy - counts, self._share * scale)
        return noisy

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """Draw."""
        chosen = self._noise.top_k(scores, k, self._share * scale)
        self.draws.append(chosen)
        self.likelihood += log_selection(scores, chosen, self._share * scale)
        return chosen


class Replayed:
    """The draws of another run, and how likely they are in this one.

    Args:
        recorded: The other run's noise.
        share: What the scales were multiplied with there.
    """

    private = True

    def __init__(self, recorded: Recorded, share: float) -> None:
        self._draws = list(recorded.draws)
        self._share = share
        self.likelihood = 0.0

    @property
    def ended(self) -> bool:
        """Whether every draw was asked for."""
        return not self._draws

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Draw again."""
        noisy = self._next()
        if not isinstance(noisy, np.ndarray) or noisy.shape != counts.shape:
            raise ToldApartError
        self.likelihood += log_gaussian(noisy - counts, self._share * scale)
        return noisy

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """Draw again."""
        chosen = self._next()
        if isinstance(chosen, np.ndarray) or len(chosen) != k or max(chosen) >= len(scores):
            raise ToldApartError
        self.likelihood += log_selection(scores, chosen, self._share * scale)
        return chosen

    def _next(self) -> NDArray[np.int64] | list[int]:
        if not self._draws:
            raise ToldApartError
        return self._draws.pop(0)


class ToldApartError(Exception):
    """A run asks for other draws than the one before it: the tables show without any noise."""


def log_gaussian(noise: NDArray[np.int64], scale: float) -> float:
    """The log-likelihood of discrete Gaussian noise, but for a constant of the scale."""
    return -float((noise.astype(np.float64) ** 2).sum()) / (2 * scale**2)


def log_selection(scores: NDArray[np.int64], chosen: Sequence[int], scale: float) -> float:
    """The log-likelihood of a selection after Gumbel noise: a softmax for each place."""
    logits = scores.astype(np.float64) / scale
    total = 0.0
    for place in chosen:
        highest = logits.max()
        total += float(logits[place] - highest - np.log(np.exp(logits - highest).sum()))
        logits[place] = -np.inf  # it is not selected again
    return total


def published(checkpoint: MemoryCheckpoint) -> tuple[Any, ...]:
    """All that is in a release, to be compared."""
    known = checkpoint.measurements()
    assert known is not None
    values = (known.counts.tobytes(), known.scales.tobytes(), known.n_records, known.charges)
    return (*values, known.private, checkpoint.n_records(), checkpoint.selections())


@dataclass(frozen=True)
class Pair:
    """Two neighbouring tables, and what they are asked.

    Attributes:
        workload: The questions.
        tables: The two.
        synthetic: What every projection gives.
    """

    workload: Workload
    tables: tuple[pa.Table, pa.Table]
    synthetic: Matrix


def pair_of(mechanism: str, neighbours: str, weighting: str = "") -> Pair:
    """The worst pair of tables that is known for a mechanism.

    Args:
        mechanism: By its name.
        neighbours: The neighbouring relation.
        weighting: What units count; the unit is a row where it is empty.
    """
    if mechanism in ("one-shot", "layered"):
        # Many groups with little budget each: whole numbers then cost next to nothing.
        columns, values, name = 5, "vw", "categorical:2"
        if mechanism == "layered":
            columns, name = 4, "categorical:3"
        real = synthetic = ["v" * columns, "w" * columns]
    else:
        columns, values, name = 4, "vwzyx", "categorical:2"
        real, synthetic = tied_rows(2 if mechanism == "mst" else 1)
    unit = Unit("id", MOST, weighting) if weighting else None  # type: ignore[arg-type]
    schema = Schema(
        [Categorical(f"c{n}", values=list(values)) for n in range(columns)],
        unit=unit,
    )
    records = [record for record in real for _ in range(MANY)]
    # A unit has more rows than are taken; all others have one.
    rows = MOST + 2 if weighting else 1
    one = records + ["w" * columns] * rows * (neighbours == "replace-one")
    other = records + ["v" * columns] * rows
    tables = _table(schema, one), _table(schema, other)
    if unit is not None:
        ids = [[min(n, len(records)) for n in range(len(table))] for table in tables]
        tables = tables[0].append_column("id", [ids[0]]), tables[1].append_column("id", [ids[1]])
    return Pair(
        workload_of(schema, [name]),
        tables,
        Encoder(schema).encode(_table(schema, synthetic).combine_chunks().to_batches()[0]),
    )


def tied_rows(weight: int) -> tuple[list[str], list[str]]:
    """A table and a synthetic one, which four pairs of columns tell apart equally well.

    In columns 0, 1 and in columns 2, 3 the table has too many rows with v in both and too few with
    w in both. In columns 0, 2 and in 1, 3 it is the other way round. So a record with v everywhere
    in place of one with w moves two of the distances up and two down, each by as much as it can.
    Other values (z, y) make up for it in halves. The bulk (x) is the same in both tables.

    Args:
        weight: Of the rows with w, where those with v have 2. With 1, the largest error of each
            pair is that of v in both columns, which the adaptive mechanism looks at. With 2, v and
            w are alike, and so is the dependence in the four pairs, which MST looks at.
    """

    def rows(value: str, patterns: tuple[str, str], times: int) -> list[str]:
        return [
            pattern.replace("0", value).replace("1", other)
            for pattern in patterns
            for other in "zy"
            for _ in range(times)
        ]

    together, crossed = ("0011", "1100"), ("0101", "1010")
    real = rows("v", together, 2) + rows("w", crossed, weight)
    synthetic = rows("v", crossed, 2) + rows("w", together, weight)
    bulk = ["xxxx"] * 8
    return real + bulk, synthetic + bulk


def _table(schema: Schema, rows: list[str]) -> pa.Table:
    return pa.table({name: [row[n] for row in rows] for n, name in enumerate(schema.names)})


@dataclass(frozen=True)
class Case:
    """What is audited: a mechanism, its claim and its noise.

    Attributes:
        mechanism: By its name.
        neighbours: The neighbouring relation.
        epsilon: The claim.
        delta: The claim.
        share: How much of the noise there is.
        weighting: What units of protection count; the unit is a row where it is empty.
    """

    mechanism: str
    neighbours: str
    epsilon: float
    delta: float
    share: float = 1.0
    weighting: str = ""

    def draw(self, number: int) -> NDArray[np.float64]:
        """Log-likelihood ratios of releases of the first table, and of as many of the second.

        A ratio is positive where a release is likelier of the second table.
        """
        pair = _pair(self.mechanism, self.neighbours, self.weighting)
        relation = relation_of(self.neighbours, pair.workload.schema.unit_column)
        kind = REGISTRY[self.mechanism]
        mechanism = Adaptive(epochs=EPOCHS) if kind is Adaptive else kind()
        candidates = mechanism.candidates(pair.workload)
        exact = [exact_counts(candidates, table, threads=1) for table in pair.tables]
        budget = RhoBudget.from_epsilon(self.epsilon, self.delta, conversion_of(mechanism))
        task = Task(candidates, pair.workload, budget, self.neighbours)  # type: ignore[arg-type]

        def counted(table: int, asked: Workload | None) -> ExactCounts:
            """The exact counts; pairs that are selected from are no candidate queries."""
            if asked is None or asked is candidates:
                return exact[table]
            return exact_counts(asked, pair.tables[table], threads=1)

        def release(table: int, noise: Recorded | Replayed) -> tuple[Any, ...]:
            checkpoint = MemoryCheckpoint()
            Executor(
                task=task,
                exact=lambda asked: counted(table, asked),
                payments=UnledgeredPayments(LocalAccountant(budget, relation)),
                checkpoint=checkpoint,
                noise=lambda stream: noise,  # noqa: ARG005
                project=lambda measured, start, number: pair.synthetic,  # noqa: ARG005
                initial_table=lambda _: pair.synthetic,
            ).run(mechanism)
            return published(checkpoint)

        def ratio(table: int) -> float:
            """How much likelier the second table is, by one release of one of them."""
            recorded = Recorded(self.share)
            published = release(table, recorded)
            again = Replayed(recorded, self.share)
            try:
                same = release(1 - table, again) == published and again.ended
            except ToldApartError:
                same = False
            likelier = recorded.likelihood - again.likelihood if same else math.inf
            return -likelier if table == 0 else likelier

        return np.array([[ratio(table) for _ in range(number)] for table in (0, 1)])


@cache
def _pair(mechanism: str, neighbours: str, weighting: str) -> Pair:
    return pair_of(mechanism, neighbours, weighting)


def lower_bound(
    ratios: NDArray[np.float64], delta: float, confidence: float, seed: int
) -> tuple[float, str]:
    """A lower bound on epsilon at a delta, from log-likelihood ratios; and the event, in words.

    Args:
        ratios: Of releases of the first table, and of the second.
        delta: The delta.
        confidence: The probability with which the bound holds.
        seed: Of the choice which draws choose the event.
    """
    order = np.random.default_rng(seed).permutation(ratios.shape[1])
    first = math.ceil(CHOOSING * len(order))
    choosing, bounding = ratios[:, order[:first]], ratios[:, order[first:]]
    number = bounding.shape[1]
    best, chosen, limit = -1.0, "both", 0.0
    for event in EVENTS:
        parts = [_Tail.of(each) for each in _sides(choosing, event)]
        size = number * (2 if event == "both" else 1)
        for threshold in [*np.linspace(0, parts[1].highest, 100), BEYOND]:
            alarms, hits = (round(size * part.above(threshold)) for part in parts)
            expected = epsilon_bound(alarms, hits, size, delta, confidence)
            # One direction has half the draws: it must promise more than random variation would.
            if expected > best + (ONE_SIDED if event != chosen else 0):
                best, chosen, limit = expected, event, float(threshold)
    sides = _sides(bounding, chosen)
    alarms, hits = (int((each > limit).sum()) for each in sides)
    words = EVENTS[chosen].format("any number" if limit == BEYOND else f"{limit:.2f}")
    return epsilon_bound(alarms, hits, len(sides[0]), delta, confidence), words


def _sides(ratios: NDArray[np.float64], event: str) -> list[NDArray[np.float64]]:
    """Ratios of false alarms and of hits, towards one of the tables or both."""
    second, first = list(ratios), [-ratios[1], -ratios[0]]
    if event == "both":
        return [np.concatenate(each) for each in zip(second, first, strict=True)]
    return second if event == "second" else first


@dataclass(frozen=True)
class _Tail:
    """How often a ratio is about above a threshold: as if it were normal, where it is finite."""

    mean: float
    deviation: float
    infinite: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> _Tail:
        finite = values[np.isfinite(values)]
        mean, deviation = (finite.mean(), finite.std()) if len(finite) else (0.0, 0.0)
        return cls(float(mean), max(float(deviation), 1e-6), float((values == np.inf).mean()))

    @property
    def highest(self) -> float:
        return max(0.0, self.mean + 3 * self.deviation)

    def above(self, threshold: float) -> float:
        finite = float(norm.sf((threshold - self.mean) / self.deviation))
        return self.infinite + (1 - self.infinite) * finite


def epsilon_bound(alarms: int, hits: int, number: int, delta: float, confidence: float) -> float:
    """The epsilon that follows from how often an event came, by Clopper and Pearson.

    Each of the two limits is wrong with half of the probability that is left.

    Args:
        alarms: How often the event came on one table.
        hits: How often on the other.
        number: The draws from each.
        delta: The delta.
        confidence: The probability with which the bound holds.
    """
    wrong = (1 - confidence) / 2
    high = 1.0 if alarms == number else float(beta.ppf(1 - wrong, alarms + 1, number - alarms))
    low = 0.0 if hits == 0 else float(beta.ppf(wrong, hits, number - hits + 1))
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def audit(
    cases: Sequence[Case], draws: int, confidence: float, seed: int, jobs: int
) -> list[tuple[float, str]]:
    """The bound and the event of each case."""
    pieces = [min(CHUNK, draws - begin) for begin in range(0, draws, CHUNK)]
    found: list[tuple[float, str]] = []
    began = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = [[pool.submit(case.draw, number) for number in pieces] for case in cases]
        for case, futures in zip(cases, waiting, strict=True):
            ratios = np.concatenate([future.result() for future in futures], axis=1)
            found.append(lower_bound(ratios, case.delta, confidence, seed))
            words = f"{case.mechanism}, {case.neighbours}, {case.share:g} of the noise"
            print(f"{time.monotonic() - began:6.0f} s  {words}", file=sys.stderr, flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit, print a table; 1 if a line is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--draws", type=int, default=1000, help="releases of each table")
    parser.add_argument("--epsilon", type=float, default=2.0, help="the claim")
    parser.add_argument("--delta", type=float, default=0.1, help="the claim")
    parser.add_argument("--confidence", type=float, default=0.999, help="of each line")
    parser.add_argument("--mechanism", choices=MECHANISMS, action="append", help="all by default")
    parser.add_argument("--neighbours", choices=RELATIONS, action="append", help="both by default")
    parser.add_argument(
        "--unit", choices=WEIGHTINGS, default="", help="a unit of several rows, and what it counts"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the thresholds, never of the noise")
    parser.add_argument("--jobs", type=int, default=cores())
    options = parser.parse_args(arguments)
    cases = [
        Case(mechanism, neighbours, options.epsilon, options.delta, share, options.unit)
        for mechanism in options.mechanism or MECHANISMS
        for neighbours in options.neighbours or RELATIONS
        for share in (1.0, 0.5)
    ]
    began = time.monotonic()
    bounds = audit(cases, options.draws, options.confidence, options.seed, options.jobs)
    table = Table(
        *("mechanism", "neighbours", "noise", "claimed epsilon", "lower bound", "event", ""),
        title=f"{options.draws:,} releases of each of two tables, delta = {options.delta:g}, "
        f"unit: {options.unit or 'a row'}, "
        f"each bound at confidence {options.confidence:g}",
    )
    right = True
    for case, (bound, event) in zip(cases, bounds, strict=True):
        exceeded = bound > case.epsilon
        expected = exceeded == (case.share < 1)
        right &= expected
        noise = "as released" if case.share == 1 else "half"
        words = "exceeds the claim" if exceeded else "within the claim"
        table.add_row(
            *(case.mechanism, case.neighbours, noise, f"{case.epsilon:g}", f"{bound:.3f}", event),
            words if expected else f"[bold red]{words}[/]",
        )
    Console(width=120).print(table)
    print(f"{time.monotonic() - began:.0f} seconds; {'as' if right else 'NOT as'} it should be")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
