"""The runs of a sweep: measured here, projected here or by workers, and noted as they end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.counting.comparison import errors_of
from private_gsd.counting.exact import count
from private_gsd.data.encoding import Encoder
from private_gsd.errors import GsdError
from private_gsd.mechanisms.base import plan_run
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.runs.checkpoint import MemoryCheckpoint
from private_gsd.runs.payments import SweepPayments, UnledgeredPayments
from private_gsd.runs.runner import extended, project
from private_gsd.schema.neighbours import relation_of
from private_gsd.system.progress import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.counting.comparison import QueryErrors
    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.ledger.reservations import Reservation
    from private_gsd.projection import Projector
    from private_gsd.runs.checkpoint import Commit
    from private_gsd.runs.payments import Payments
    from private_gsd.runs.runner import Projecting, Runner
    from private_gsd.system.interruptions import InterruptGuard
    from private_gsd.system.progress import Progress
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]
    # A table, and how long it took.
    Made = tuple[Matrix, float]

# So many runs for each worker are paid for before they begin.
AHEAD = 4


@dataclass(frozen=True, eq=False)
class SweepRun:
    """One release of a sweep.

    Attributes:
        epsilon: The ε of its budget.
        seed: The seed.
        settings: The settings that were given.
        measurements: What was measured.
        matrix: The synthetic table, encoded.
        seconds: How long the projections took, where they ran.
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


@dataclass(frozen=True)
class PlannedRun:
    """A run before it is made.

    Attributes:
        epsilon: The ε of its budget.
        seed: The seed.
        settings: The settings that were given.
        runner: The run.
    """

    epsilon: float
    seed: int
    settings: dict[str, Any]
    runner: Runner

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.runner.settings.mechanism

    @cached_property
    def projects_once(self) -> bool:
        """Whether no data is needed once the first projection begins."""
        return plan_run(self.mechanism, self.runner.task).projections == 1

    @property
    def words(self) -> str:
        """Which run it is."""
        others = "".join(f", {name} {value!r:.80}" for name, value in self.settings.items())
        return f"epsilon {self.epsilon:g}, seed {self.seed}{others}"


@dataclass(frozen=True)
class _Call:
    """A projection that a worker can make: nothing in it is exact.

    Attributes:
        projector: The projector.
        measurements: What is known.
        fitted: The number of rows that the projector fits.
        rows: The least number of rows; what is missing is made up by new rows.
        seed: The seed of the projection.
        start: The table to start from.
    """

    projector: Projector
    measurements: Measurements
    fitted: int
    rows: int
    seed: int
    start: Matrix | None

    def __call__(self) -> Made:
        """A table, made on one core where that can be chosen, and how long it took."""
        begin = time.perf_counter()
        with shown(False):  # many workers would draw over each other
            matrix = project(
                self.projector,
                self.measurements,
                rows=self.fitted,
                seed=self.seed,
                start=self.start,
                threads=1,
            )
            matrix = extended(self.measurements, matrix, self.rows, self.seed, threads=1)
        return matrix, time.perf_counter() - begin


@dataclass(frozen=True)
class SweepRuns:
    """The runs of a sweep, as they are made.

    Attributes:
        target: The exact counts of the target workload.
        exact: Gives the exact counts of what a mechanism counts first.
        count: Gives the exact counts of queries that a mechanism has found.
        runs: The runs.
        reservation: The sweep's dealings with the ledger; None where noise is seeded.
        interruptions: Nothing is paid after Ctrl-C.
        evaluate: Whether to compare every table with the exact counts.
        progress: Called with the number of runs that are done.
        finished: The runs that are done, by number.
        measured: What was measured, by number.
        failed: Why a run failed, by number.
    """

    target: ExactCounts
    exact: Callable[[Mechanism], ExactCounts]
    count: Callable[[Workload], ExactCounts]
    runs: list[PlannedRun]
    reservation: Reservation | None
    interruptions: InterruptGuard
    evaluate: bool
    progress: Progress
    finished: dict[int, SweepRun] = field(default_factory=dict)
    measured: dict[int, Measurements] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    def run(self, joblib: Any, n_jobs: int | None) -> None:
        """Make all of them."""
        once = [number for number, each in enumerate(self.runs) if each.projects_once]
        jobs = int(joblib.effective_n_jobs(n_jobs))
        # Paid for a few at a time: what a process has paid for and not used dies with it.
        size = 1 if jobs == 1 else AHEAD * jobs
        for begin in range(0, len(once), size):
            measured = {n: _tried(self._measure, n) for n in once[begin : begin + size]}
            self.failed.update({n: why for n, why in measured.items() if isinstance(why, str)})
            waiting = {n: each for n, each in measured.items() if not isinstance(each, str)}
            calls = (joblib.delayed(_tried)(each) for each in waiting.values())
            self._collect(list(waiting), iter(_parallel(joblib, n_jobs)(calls)))
        # All others need the exact counts between their projections, and so stay here.
        rest = [number for number, each in enumerate(self.runs) if not each.projects_once]
        calls = (joblib.delayed(_tried)(self._make, number) for number in rest)
        self._collect(rest, iter(_parallel(joblib, n_jobs, require="sharedmem")(calls)))

    def _measure(self, number: int) -> _Call:
        """All of a run but its only projection, which is left to a worker."""
        found: list[_Call] = []

        def defer(known: Measurements, start: Matrix | None, seed: int) -> Matrix:
            found.append(self._projecting(number, known, start, seed))
            return np.empty((0, len(self.target.workload.schema)))

        self._run(number, defer)
        (projecting,) = found
        return projecting

    def _make(self, number: int) -> Made:
        """A whole run."""
        seconds = 0.0

        def make(known: Measurements, start: Matrix | None, seed: int) -> Matrix:
            nonlocal seconds
            matrix, took = self._projecting(number, known, start, seed)()
            seconds += took
            return matrix

        runner, table = self.runs[number].runner, self._run(number, make)
        begin = time.perf_counter()
        rows, seed = runner.settings.rows or len(table), runner.seed(0)
        table = extended(self.measured[number], table, rows, seed, threads=1)
        return table, seconds + time.perf_counter() - begin

    def _run(self, number: int, projecting: Projecting) -> Matrix:
        each = self.runs[number]
        checkpoint = _Noted(self.measured, number)

        def exact(more: Workload | None) -> ExactCounts:
            return self.exact(each.mechanism) if more is None else self.count(more)

        return each.runner.run(exact, self._payments(number), checkpoint, projecting).table

    def _projecting(
        self, number: int, known: Measurements, start: Matrix | None, seed: int
    ) -> _Call:
        run = self.runs[number]
        runner, fitted = run.runner, run.runner.fitted_rows
        # Tables between selections stay small.
        rows = runner.settings.rows if run.projects_once else None
        return _Call(runner.projector, known, fitted, rows or fitted, seed, start)

    def _payments(self, number: int) -> Payments:
        if self.reservation is not None:
            return SweepPayments(self.reservation, number, self.interruptions)
        runner = self.runs[number].runner
        settings = runner.settings
        relation = relation_of(settings.budget.neighbours, runner.target.schema.unit_column)
        return UnledgeredPayments(LocalAccountant(settings.rho, relation))

    def _collect(self, numbers: list[int], results: Iterator[Made | str]) -> None:
        """Note what comes, in the order of the numbers; what does not come has failed."""
        for place, number in enumerate(numbers):
            try:
                found = next(results)
            except Exception as error:  # a worker died, and took the rest with it
                self.failed.update(dict.fromkeys(numbers[place:], _words(error)))
                return
            if isinstance(found, str):
                self.failed[number] = found
            else:
                self._finish(number, *found)
        next(results, None)  # so that joblib ends, too

    def _finish(self, number: int, matrix: Matrix, seconds: float) -> None:
        each, errors = self.runs[number], None
        if self.evaluate:
            shares = count(self.target.workload, matrix) / len(matrix)
            errors = errors_of(self.target, shares)
        self.finished[number] = SweepRun(
            each.epsilon,
            each.seed,
            each.settings,
            self.measured[number],
            matrix,
            seconds,
            errors,
        )
        self.progress("running", len(self.finished), len(self.runs))


class _Noted(MemoryCheckpoint):
    """A checkpoint in memory that notes what a run has measured among that of all runs.

    Args:
        everything: What runs have measured, by number.
        number: The number of the run.
    """

    def __init__(self, everything: dict[int, Measurements], number: int) -> None:
        super().__init__()
        self._everything = everything
        self._number = number

    def save_measurements(self, measurements: Measurements, commit: Commit) -> None:
        """Remember what was measured."""
        super().save_measurements(measurements, commit)
        self._everything[self._number] = measurements


def _tried(function: Any, *arguments: Any) -> Any:
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
