"""Sweeps: many releases of one table, by budget, seed and settings, from one set of counts.

The table is read once (and once more by mechanisms that measure more than is asked). Noise is
drawn, and paid for, in this process; to the workers go noisy measurements alone, so that they may
be processes here or machines of a cluster: whatever backend joblib is told to use.
"""

from __future__ import annotations

import itertools
import secrets
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.counting.comparison import errors_of
from private_gsd.counting.exact import count, exact_counts
from private_gsd.data.encoding import Encoder
from private_gsd.errors import BudgetError, GsdError, ProjectionError, SchemaError, require
from private_gsd.measurements.measurements import measure
from private_gsd.mechanisms import (
    AT_ONCE,
    Mechanism,
    Run,
    check_noise,
    conversion_of,
    is_picky,
    measurable,
    plan_of,
    planned_units,
    rehearse,
)
from private_gsd.mechanisms import run as run_mechanism
from private_gsd.mechanisms.defaults import check_fits
from private_gsd.mechanisms.forecast import require_memory
from private_gsd.privacy.accountant import LocalAccountant, require_same
from private_gsd.privacy.budget import RhoBudget, default_delta
from private_gsd.privacy.ledger.reservations import LedgerRun
from private_gsd.privacy.noise import InsecureSeededNoise, SecureNoise
from private_gsd.projection import projector_of
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.projection.genetic import GeneticSearch, evolve, prepare
from private_gsd.runs.runner import StepAccountant
from private_gsd.sql.rules import check_rules
from private_gsd.system.interruptions import Remembered
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.counting.comparison import QueryErrors
    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms import Checkpoint
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.budget import Conversion
    from private_gsd.privacy.ledger.ledger import Ledger
    from private_gsd.privacy.measuring import NoisyTotal
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.projection import Projection
    from private_gsd.projection.genetic import Evolution
    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]

# Settings that belong to the mechanism; all others are those of the search.
OF_THE_MECHANISM = ("mechanism", "epochs", "groups", "split")
# So many runs for each worker are paid for before they begin.
AHEAD = 4
# As many runs that failed are named.
SHOWN = 3
# What makes the tables, which takes no other setting than the number of rows unless it is "gsd".
PROJECTOR = "projector"


@dataclass(frozen=True, eq=False)
class SweepRun:
    """One release of a sweep.

    Attributes:
        epsilon: Its budget.
        seed: Its seed.
        settings: Its settings.
        measurements: What was measured.
        matrix: The synthetic table, encoded.
        seconds: How long the search took, where it ran.
        errors: How far its answers are from the true ones, if that was asked for. These are exact,
            and as sensitive as the table.
    """

    epsilon: float
    seed: int
    settings: Mapping[str, Any]
    measurements: Measurements
    matrix: Matrix = field(repr=False)
    seconds: float
    errors: QueryErrors | None = None

    @property
    def table(self) -> pa.RecordBatch:
        """The synthetic table, in the schema's types."""
        return Encoder(self.measurements.workload.schema).decode(self.matrix)


class Sweep:
    """Many releases of one table.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema().select(["sex", "age", "marital"])
    >>> sweep = Sweep(schema, datasets.census(2000).select(schema.names), ["categorical:2"])
    >>> runs = sweep.run([0.5, 5.0], seeds=[1, 2], settings=[{"rows": 100}], insecure=True)
    >>> [(run.epsilon, run.seed, run.table.num_rows) for run in runs]
    [(0.5, 1, 100), (0.5, 2, 100), (5.0, 1, 100), (5.0, 2, 100)]

    Args:
        schema: The public schema.
        data: The table, read here and once; and once more for each of the mechanisms "layered",
            "mst" and "aim" that measures more than the questions, before its first run.
        workload: The questions: a workload, or names such as "categorical:2".
        delta: Of every budget; by default 1/N².
        options: As for ``answer``.
    """

    def __init__(
        self,
        schema: Schema,
        data: Any,
        workload: Workload | Sequence[str],
        *,
        delta: float | None = None,
        **options: Any,
    ) -> None:
        self.workload = (
            workload if isinstance(workload, Workload) else workload_of(schema, workload)
        )
        self._data, self._options = data, options
        self._exact = exact_counts(self.workload, data, **options)
        # Exact answers to what a mechanism measures beside the questions, as it is needed.
        self._more: dict[str, ExactCounts] = {}
        # Of the last sweep, by number: the runs that are done, and all that was paid for, of runs
        # that failed, too. This is what is left where a sweep ends before its end.
        self.finished: dict[int, SweepRun] = {}
        self.measured: dict[int, Measurements] = {}
        self.delta = default_delta(self._exact.rows) if delta is None else delta

    def exact(self, mechanism: Mechanism) -> ExactCounts:
        """The exact answers to all that a mechanism may measure."""
        asked = measurable(mechanism, self.workload)
        if asked is self.workload:
            return self._exact
        if mechanism.name not in self._more:
            self._more[mechanism.name] = exact_counts(asked, self._data, **self._options)
        return self._more[mechanism.name]

    def run(
        self,
        epsilons: Iterable[float],
        *,
        seeds: Iterable[int] = (0,),
        settings: Iterable[Mapping[str, Any]] = ({},),
        ledger: Ledger | None = None,
        dataset: str = "table",
        insecure: bool = False,
        evaluate: bool = False,
        n_jobs: int | None = -1,
        done: Callable[[int, int], object] | None = None,
    ) -> list[SweepRun]:
        """One release for each ε, seed and settings, in that order.

        A run whose search fails does not keep the others from theirs. When all have ended, an
        error names those that failed; ``finished`` has the others, and ``measured`` what was paid
        for, of all of them: ``evolve`` makes a table of it, and nothing is spent.

        Args:
            epsilons: The budgets; each run spends the whole of its own.
            seeds: Of the searches, and of insecure noise.
            settings: Of the search (see ``GeneticSearch``), ``mechanism``, ``epochs``, ``groups``
                and ``split`` (see ``Mechanism``), and ``projector`` (see ``Synthesizer``).
            ledger: Charged for every run.
            dataset: The dataset's name in it.
            insecure: For experiments on public data: noise from the seeds, and no ledger. What is
                made is not private.
            evaluate: Whether to compare every table with the exact answers.
            n_jobs: How many at a time, as joblib has it; all cores by default.
            done: Told how many runs are done, and how many there are.
        """
        joblib = require("joblib", what="A sweep", extra="sweeps")
        if (ledger is None) != insecure:
            raise BudgetError(
                "a sweep spends budget with every run: give a ledger to charge, or say "
                "insecure=True for experiments on public data; not both"
            )
        if ledger is not None and self.workload.schema.drafted:
            raise SchemaError(
                "the schema is a draft, learned from the data, and a release would disclose it; "
                "replace it by public knowledge"
            )
        check_rules(self.workload.schema)
        conversion = None if ledger is None else ledger.account(dataset).budget.conversion
        runs = [
            _Planned(epsilon, seed, dict(each), self, conversion)
            for epsilon, seed, each in itertools.product(epsilons, seeds, settings)
        ]
        # Whatever is wrong with any of them is found before the first is paid for, and all that
        # they will spend is held for them.
        planned = sum(each.planned() for each in runs)
        for each in {repr(each.settings): each for each in runs}.values():
            self.exact(each.mechanism)
            each.rehearse()
        made: dict[int, SweepRun] = {}
        self.finished, self.measured = made, {}
        failed: dict[int, str] = {}
        held = None
        if ledger is not None:
            held = LedgerRun(ledger, dataset, f"sweep-{secrets.token_hex(6)}", "sweep")
            require_same(ledger.account(dataset).neighbours, "replace-one")
            held.begin(planned)
        interruptions = Remembered()
        try:
            with interruptions.listening():
                self._run(
                    *(joblib, runs, held, insecure, evaluate, n_jobs, made, failed, done),
                    interruptions,
                )
        finally:
            if held is not None:
                held.give_back()
        if failed:
            words = [f"{runs[number].words}: {why}" for number, why in sorted(failed.items())]
            shown = "; ".join(words[:SHOWN])
            raise ProjectionError(
                f"{len(failed)} of {len(runs)} runs failed: {shown}{'; …' * (len(words) > SHOWN)}. "
                "The others are in Sweep.finished, and what was measured for these is in "
                "Sweep.measured, by the number of the run"
            )
        return [made[number] for number in range(len(runs))]

    def _run(
        self,
        joblib: Any,
        runs: list[_Planned],
        held: LedgerRun | None,
        insecure: bool,
        evaluate: bool,
        n_jobs: int | None,
        made: dict[int, SweepRun],
        failed: dict[int, str],
        done: Callable[[int, int], object] | None,
        interruptions: Remembered,
    ) -> None:
        def pay(number: int) -> Callable[[str], Accountant]:
            if held is None:
                local = LocalAccountant(runs[number].budget)
                return lambda _: local
            return lambda step: StepAccountant(held, f"{number}: {step}", interruptions)

        def note(number: int, measured: Measurements, matrix: Matrix, seconds: float) -> None:
            each = runs[number]
            errors = None
            if evaluate:
                errors = errors_of(self._exact, count(self.workload, matrix) / len(matrix))
            made[number] = SweepRun(
                each.epsilon, each.seed, each.settings, measured, matrix, seconds, errors
            )
            if done is not None:
                done(len(made), len(runs))

        def collect(numbers: list[int], results: Iterator[tuple[Any, ...] | str]) -> None:
            """Note what comes, in the order of the numbers; what does not come has failed."""
            for place, number in enumerate(numbers):
                try:
                    found = next(results)
                except Exception as error:  # a worker died, and took the rest with it
                    failed.update(dict.fromkeys(numbers[place:], _words(error)))
                    return
                if isinstance(found, str):
                    failed[number] = found
                else:
                    note(number, self.measured[number], *found)
            next(results, None)  # so that joblib ends, too

        once = [n for n, each in enumerate(runs) if each.mechanism.name in AT_ONCE]
        jobs = int(joblib.effective_n_jobs(n_jobs))
        # Paid for a few at a time: what a process has paid for and not used dies with it.
        size = 1 if jobs == 1 else AHEAD * jobs
        for begin in range(0, len(once), size):
            some = once[begin : begin + size]
            for number in some:
                self.measured[number] = runs[number].measure(pay(number)("measure"), insecure)
            calls = (
                joblib.delayed(_tried)(
                    project,
                    *(self.measured[n], runs[n].config, runs[n].seed, runs[n].projector),
                )
                for n in some
            )
            collect(some, iter(_parallel(joblib, n_jobs)(calls)))
        # All others need the exact answers between their searches, and so stay here.
        rest = [n for n, each in enumerate(runs) if each.mechanism.name not in AT_ONCE]
        calls = (
            joblib.delayed(_tried)(runs[n].adapt, pay(n), insecure, _Memory(self.measured, n))
            for n in rest
        )
        collect(rest, iter(_parallel(joblib, n_jobs, require="sharedmem")(calls)))


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, or why it fails in words: not every exception can leave a process."""
    try:
        return function(*arguments)
    except Exception as error:
        return _words(error)


def _words(error: Exception) -> str:
    return f"{error}" if isinstance(error, GsdError) else f"{type(error).__name__}: {error}"


def _parallel(joblib: Any, n_jobs: int | None, **how: Any) -> Any:
    """What runs calls in parallel; results as they come, where the backend can."""
    try:
        return joblib.Parallel(n_jobs=n_jobs, return_as="generator", **how)
    except ValueError:
        return joblib.Parallel(n_jobs=n_jobs, **how)


def project(
    measured: Measurements,
    config: GeneticSearch,
    seed: int,
    projector: str = "gsd",
    start: Matrix | None = None,
) -> tuple[Matrix, float]:
    """A table of measurements, on one core where that can be chosen; what a worker does."""
    begin = time.perf_counter()
    found: Evolution | Projection
    if projector == "gsd":
        found = evolve(measured, config, seed=seed, start=start, threads=1)
    else:
        chosen = projector_of(projector)
        found = chosen.project(measured, rows=config.rows, seed=seed, start=start)
    if found.reason == "interrupted":  # or the next run would be paid for
        raise KeyboardInterrupt
    return found.matrix, time.perf_counter() - begin


@dataclass(frozen=True)
class _Planned:
    """A run before it is made."""

    epsilon: float
    seed: int
    settings: dict[str, Any]
    sweep: Sweep
    # The ledger's; without one, the best that the mechanism allows.
    conversion: Conversion | None

    @property
    def mechanism(self) -> Mechanism:
        mine = {name: self.settings[name] for name in OF_THE_MECHANISM if name in self.settings}
        return Mechanism(name=mine.pop("mechanism", "one-shot"), **mine)

    @property
    def projector(self) -> str:
        name: str = self.settings.get(PROJECTOR, "gsd")
        return name

    @property
    def config(self) -> GeneticSearch:
        others = (*OF_THE_MECHANISM, PROJECTOR)
        rest = {key: value for key, value in self.settings.items() if key not in others}
        if self.projector != "gsd" and set(rest) - {"rows"}:
            name = min(set(rest) - {"rows"})
            raise ProjectionError(
                f"settings: {name!r} is of the genetic search, not {self.projector}"
            )
        try:
            return GeneticSearch(**rest)
        except TypeError as error:
            raise ProjectionError(f"settings: {error}") from None

    @cached_property
    def measurable(self) -> Workload:
        return measurable(self.mechanism, self.sweep.workload)

    @property
    def budget(self) -> RhoBudget:
        conversion = self.conversion or conversion_of(self.mechanism.name)
        return RhoBudget.from_epsilon(self.epsilon, self.sweep.delta, conversion)

    def planned(self) -> int:
        """What the run will spend; refuses what makes no sense."""
        whole("a seed", self.seed, 0, 2**31 - 1)
        require_memory(self.measurable, self.config.rows)
        projector_of(self.projector).check(self.sweep.workload)
        check_fits(self.projector, self.measurable, self.mechanism)
        check_noise(self.budget.conversion, self.mechanism.name)
        return planned_units(self.mechanism, self.measurable, self.budget)

    @property
    def words(self) -> str:
        """Which run it is."""
        others = "".join(f", {name} {value!r:.80}" for name, value in self.settings.items())
        return f"epsilon {self.epsilon:g}, seed {self.seed}{others}"

    def rehearse(self) -> None:
        """Load what the searches need, before anything is paid for; refuse what they would."""
        started = self.mechanism.name in ("adaptive", "aim")

        def prepared(some: Measurements) -> None:
            if self.projector == "gsd":
                prepare(some, self.config, started=started)
            else:
                projector_of(self.projector).prepare(some, rows=self.config.rows)

        rehearse(self.mechanism, self.measurable, prepared)

    def noise(self, insecure: bool, step: int) -> NoiseSource:
        if not insecure:
            return SecureNoise()
        seeds = np.random.SeedSequence([self.seed, step])
        return InsecureSeededNoise(int(seeds.generate_state(1)[0]))

    def measure(self, accountant: Accountant, insecure: bool) -> Measurements:
        """What a one-shot run measures."""
        plan = plan_of(self.mechanism, self.measurable, self.budget)
        return measure(
            self.sweep.exact(self.mechanism),
            range(self.measurable.num_groups),
            plan.units,
            accountant=accountant,
            noise=self.noise(insecure, 0),
        )

    def adapt(
        self, pay: Callable[[str], Accountant], insecure: bool, checkpoint: Checkpoint
    ) -> tuple[Matrix, float]:
        """A whole run that selects what it measures."""
        seconds = 0.0

        def evolved(measured: Measurements, start: Matrix | None, number: int) -> Matrix:
            nonlocal seconds
            seed = self.seed * 2**20 + number
            matrix, took = project(measured, self.config, seed, self.projector, start)
            seconds += took
            return matrix

        schema = self.sweep.workload.schema
        projector = projector_of(self.projector)

        everything = self.measurable

        def why_infeasible(groups: list[int], share: float = 1.0) -> str | None:
            return projector.why_infeasible(everything.select(groups), share)

        columns = columns_of(schema, [np.empty(0)] * len(schema))
        _, matrix, _ = run_mechanism(
            self.mechanism,
            Run(
                workload=everything,
                asked=self.sweep.workload,
                budget=self.budget,
                exact=lambda: self.sweep.exact(self.mechanism),
                pay=pay,
                paid=lambda step: None,  # noqa: ARG005
                noise=lambda step: self.noise(insecure, step),
                project=evolved,
                begin=lambda: random_table(columns, self.config.rows, self.seed),
                keep=lambda step, digest: None,  # noqa: ARG005
                check=lambda steps, kind: None,  # noqa: ARG005
                checkpoint=checkpoint,
                why_infeasible=why_infeasible
                if is_picky(projector, self.mechanism, everything)
                else None,
            ),
        )
        return matrix, seconds


class _Memory:
    """A checkpoint that keeps nothing beyond the process.

    Args:
        measured: What runs have measured, by number.
        number: Which of them it is.
    """

    def __init__(self, measured: dict[int, Measurements], number: int) -> None:
        self._measured = measured
        self._number = number
        self._epochs: list[list[int]] = []
        self._tables: dict[int, Matrix] = {}

    def measurements(self) -> Measurements | None:
        return self._measured.get(self._number)

    def epochs(self) -> list[list[int]]:
        return self._epochs

    def table(self, epoch: int) -> Matrix | None:
        return self._tables.get(epoch)

    def total(self) -> NoisyTotal | None:
        return None

    def keep_total(self, total: NoisyTotal, before: object) -> None:
        raise NotImplementedError

    def keep_epochs(self, epochs: list[list[int]], before: object) -> None:  # noqa: ARG002
        self._epochs = epochs

    def keep_measurements(self, measurements: Measurements, before: object) -> None:  # noqa: ARG002
        self._measured[self._number] = measurements

    def keep_table(self, epoch: int, table: Matrix) -> None:
        before = {epoch - 1: self._tables[epoch - 1]} if epoch - 1 in self._tables else {}
        self._tables = {**before, epoch: table}
