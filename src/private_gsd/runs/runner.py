"""The runner: one run of a mechanism, whoever pays and wherever it saves what it has done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.summed_histograms import summed_histograms
from private_gsd.mechanisms.base import Task, plan_run
from private_gsd.mechanisms.defaults import check_projector, choose_rows, default_rows
from private_gsd.mechanisms.forecast import require_memory
from private_gsd.mechanisms.precompilation import precompile
from private_gsd.privacy.measuring import MAX_RECORDS
from private_gsd.privacy.noise import InsecureSeededNoise, SecureNoise
from private_gsd.projection.constraints import first_table
from private_gsd.projection.fewer_categories import FewerCategories
from private_gsd.projection.new_rows import NewRows
from private_gsd.projection.within_cells import looks_at_numbers, redrawn
from private_gsd.runs.executor import COUNTING_STREAM, Executor
from private_gsd.system.progress import Progress, ignore

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.knowledge import KnowledgeOf
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.projection import Projector
    from private_gsd.runs.checkpoint import Checkpoint
    from private_gsd.runs.executor import Outcome
    from private_gsd.runs.payments import Payments
    from private_gsd.runs.settings import RunSettings
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]
    # Makes a table of all that is known, from a table to start from, with a seed.
    Projecting = Callable[[Measurements, Matrix | None, int], Matrix]

# How many counts get their noise between two reports.
DRAWN_AT_ONCE = 2**16
# The tables of a run have seeds of their own, this far apart from those of the next random_state.
SEEDS = 2**20


@dataclass(frozen=True)
class Runner:
    """One run: its settings, its target workload, and how it makes tables.

    Attributes:
        settings: The settings.
        target: The target workload.
        threads: The number of threads; all cores by default.
        progress: Called as the run goes on.
    """

    settings: RunSettings
    target: Workload
    threads: int | None = None
    progress: Progress = ignore

    @cached_property
    def workload(self) -> Workload:
        """The candidate queries."""
        return self.settings.mechanism.candidates(self.target)

    @cached_property
    def knowledge(self) -> KnowledgeOf:
        """What is known beside the measurements."""
        return self.settings.knowledge.of(self.target.schema)

    @cached_property
    def task(self) -> Task:
        """What the mechanism is to do."""
        projector, mechanism = self.settings.projector, self.settings.mechanism
        external = self.knowledge.external_workload

        def why_infeasible(groups: Workload, share: float = 1.0) -> str | None:
            everything = groups if external is None else groups + external
            return projector.why_infeasible(everything, share)

        asks = mechanism.needs_feasibility_checks(projector, self.workload, external)
        return Task(
            self.workload,
            self.target,
            self.settings.rho,
            self.settings.budget.neighbours,
            why_infeasible if asks else None,
            n_records=self.settings.n_records,
        )

    @property
    def planned_units(self) -> int:
        """What the run will spend at most, in units."""
        return plan_run(self.settings.mechanism, self.task).total

    @cached_property
    def fitted_rows(self) -> int:
        """The number of rows of the tables that the projector makes; the others are new rows."""
        settings, projector = self.settings, self.settings.projector
        # Where the number of records is private, the user's number of rows is all that is known.
        known = settings.n_records or (None if settings.rows is None else MAX_RECORDS)
        most = choose_rows(settings.mechanism, self.target, settings.rho, known)
        if settings.rows is None:
            return most
        if settings.rows <= most or not projector.takes_new_rows(self.target):
            return settings.rows
        if projector.from_model and not plan_run(settings.mechanism, self.task).selection_noise:
            return settings.rows
        return most

    @property
    def projector(self) -> Projector:
        """The projector, which is told the number of rows that it fits."""
        projector = self.settings.projector
        named = getattr(projector, "rows", None) is not None
        return replace(projector, rows=None) if named else projector  # type: ignore[type-var]

    def check(self) -> None:
        """Refuse what could not be run, before anything is paid for."""
        require_memory(self.workload, self.settings.rows or self.fitted_rows)
        external = self.knowledge.external_workload
        fitted = self.settings.mechanism.projected(self.workload)
        self.settings.projector.check(fitted if external is None else fitted + external)
        check_projector(self.settings.projector, self.settings.mechanism, self.workload, external)

    def precompile(self) -> None:
        """Load or compile what the run needs, before anything is paid for."""
        precompile(self.settings.mechanism, self.workload, self._prepare, self.knowledge.workload)

    def _prepare(self, some: Measurements) -> None:
        """Load or compile what the projection of some measurements needs, and new rows."""
        self.projector.prepare(some, rows=self.fitted_rows)
        rows = self.settings.rows or self._rows(self.settings.n_records or MAX_RECORDS)
        if rows > self.fitted_rows:
            NewRows.prepare(some)

    def run(
        self,
        exact: Callable[[Workload | None], ExactCounts],
        payments: Payments,
        checkpoint: Checkpoint,
        project: Projecting | None = None,
    ) -> Outcome:
        """Do all steps that are not done yet.

        Args:
            exact: Gives the exact counts of some queries, or of those that are counted first if
                None is given; called where they are needed.
            payments: Pays for the steps.
            checkpoint: What the run has done so far.
            project: Makes the fitted tables. By default they and the new rows are made here.
        """
        make = project or self._project_here

        def table(measured: Measurements, start: Matrix | None, number: int) -> Matrix:
            # A run that was resumed may have more or fewer rows.
            if start is not None and len(start) != self.fitted_rows:
                start = np.resize(start, (self.fitted_rows, start.shape[1]))
            return make(self.knowledge.supplement(measured), start, self.seed(number))

        outcome = Executor(
            task=self.task,
            exact=exact,
            payments=payments,
            checkpoint=checkpoint,
            noise=self._noise,
            project=table,
            initial_table=self._initial_table,
        ).run(self.settings.mechanism)
        if project is not None:
            return outcome
        if len(outcome.table) != self.fitted_rows:  # made before a change
            outcome = outcome._replace(table=table(outcome.measurements, None, 0))
        known = self.knowledge.supplement(outcome.measurements)
        made = extended(
            known,
            outcome.table,
            self._rows(known.n_records),
            self.seed(0),
            threads=self.threads,
            progress=self.progress,
        )
        return outcome._replace(table=made)

    def _rows(self, n_records: int) -> int:
        """The number of rows of the synthetic table, by the number of records."""
        if self.settings.rows is not None:
            return self.settings.rows
        fitted, projector = self.fitted_rows, self.settings.projector
        return default_rows(fitted, n_records) if projector.takes_new_rows(self.target) else fitted

    def _initial_table(self, measured: Measurements | None) -> Matrix:
        """A random table, by the distributions of the columns that were measured."""
        seed = self.settings.random_state
        table = first_table(self.target.schema, self.fitted_rows, seed)
        if measured is None:
            return table
        return redrawn(table, measured, (), seed)

    def seed(self, number: int) -> int:
        """The seed of one of the run's tables."""
        return self.settings.random_state * SEEDS + number

    def _project_here(self, known: Measurements, start: Matrix | None, seed: int) -> Matrix:
        return project(
            self.projector,
            known,
            rows=self.fitted_rows,
            seed=seed,
            start=start,
            threads=self.threads,
            progress=self.progress,
        )

    def _noise(self, stream: int) -> NoiseSource:
        noise: NoiseSource = SecureNoise(self.threads)
        if self.settings.insecure_noise_seed is not None:
            seeds = np.random.SeedSequence([self.settings.insecure_noise_seed, stream])
            noise = InsecureSeededNoise(int(seeds.generate_state(1)[0]))
        return noise if stream == COUNTING_STREAM else ReportedNoise(noise, self.progress)


def project(
    projector: Projector,
    measurements: Measurements,
    *,
    rows: int,
    seed: int,
    start: Matrix | None = None,
    threads: int | None = None,
    progress: Progress = ignore,
) -> Matrix:
    """A table of measurements; Ctrl-C is raised again, or the next step would be paid for."""
    fitted = summed_histograms(measurements)
    families = fitted.workload.families

    fewer = FewerCategories.of(fitted) if start is None else None

    def made(start: Matrix | None) -> Matrix:
        known = fitted if fewer is None else fewer.measured
        found = projector.project(
            known, rows=rows, seed=seed, start=start, threads=threads, progress=progress
        )
        if found.reason == "interrupted":
            raise KeyboardInterrupt
        return found.matrix if fewer is None else fewer.expanded(found.matrix, seed)

    table = redrawn(made(start), measurements, families, seed)
    if fitted is not measurements and projector.takes_knowledge and looks_at_numbers(families):
        # Some queries look at the numbers within cells: they are fitted again.
        table = made(table)
    return table


def extended(
    known: Measurements,
    table: Matrix,
    rows: int,
    seed: int,
    *,
    threads: int | None = None,
    progress: Progress = ignore,
) -> Matrix:
    """A table with new rows, so that it has at least so many.

    Args:
        known: All that is known.
        table: The fitted table.
        rows: The number of rows.
        seed: The seed of the new rows.
        threads: The number of threads; all cores by default.
        progress: Called with the number of new rows.
    """
    if len(table) >= rows:
        return table
    made = np.empty((rows, table.shape[1]), order="F")
    made[: len(table)] = table
    wanted, begin = rows - len(table), len(table)
    for chunk in NewRows(known, table, seed=seed, threads=threads).chunks(wanted):
        made[begin : begin + len(chunk)] = chunk
        begin += len(chunk)
        progress("new rows", begin - len(table), wanted)
    return made


class ReportedNoise:
    """Noise of a source, drawn in pieces so that progress can be reported.

    Args:
        noise: The source.
        progress: Called with the number of counts that have their noise.
    """

    def __init__(self, noise: NoiseSource, progress: Progress) -> None:
        self._noise = noise
        self._progress = progress
        self.private = noise.private

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Add Gaussian noise, as the source does."""
        parts = []
        for start in range(0, len(counts), DRAWN_AT_ONCE):
            self._progress("adding noise", start, len(counts))
            parts.append(self._noise.gaussian(counts[start : start + DRAWN_AT_ONCE], scale))
        return np.concatenate(parts)

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """Select, as the source does."""
        return self._noise.top_k(scores, k, scale)
