"""Sweeps: many releases of one table, by budget, seed and settings, from one set of exact counts.

Noise is drawn, and paid for, in this process; to the workers go noisy measurements alone, so that
they may be processes here or machines of a cluster: whatever backend joblib is told to use.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from private_gsd.counting.exact import TableCounts, exact_counts
from private_gsd.data.sources import open_source
from private_gsd.data.units.choosing import UnitKey
from private_gsd.errors import (
    BudgetError,
    ProjectionError,
    SchemaError,
    did_you_mean,
    require,
)
from private_gsd.measurements.knowledge import Knowledge
from private_gsd.mechanisms.defaults import choose_mechanism
from private_gsd.mechanisms.registry import check_conversion, conversion_of, mechanism_of
from private_gsd.privacy.accountant import require_same
from private_gsd.privacy.budget import Budget
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.projection import projector_of
from private_gsd.projection.projectors import rows_of
from private_gsd.runs.runner import Runner
from private_gsd.runs.settings import MOST_SEED, RunSettings
from private_gsd.schema.neighbours import records_are_public, relation_of
from private_gsd.sql.rules import check_rules
from private_gsd.synthesis.sweep_runs import PlannedRun, SweepRuns
from private_gsd.system.interruptions import InterruptGuard
from private_gsd.system.progress import Progress, ignore, shown
from private_gsd.workloads import Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.data.encoding import OnInvalid
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.budget import Conversion
    from private_gsd.privacy.ledger.ledger import Ledger
    from private_gsd.schema import Schema
    from private_gsd.synthesis.sweep_runs import SweepRun
    from private_gsd.workloads import Neighbours


# The settings of a run, and what they are where they are not given.
SETTINGS: dict[str, Any] = {"mechanism": "one-shot", "projector": "gsd", "rows": None}
ROWS = 2000
# As many runs that failed are named.
SHOWN = 3


class Sweep:
    """Many releases of one table.

    >>> from private_gsd import datasets
    >>> schema = datasets.census_schema().select(["sex", "age", "marital"])
    >>> sweep = Sweep(schema, datasets.census(2000).select(schema.names), "categorical:2")
    >>> runs = sweep.run([0.5, 5.0], seeds=[1, 2], settings=[{"rows": 100}], insecure=True)
    >>> [(run.epsilon, run.seed, run.table.num_rows) for run in runs]
    [(0.5, 1, 100), (0.5, 2, 100), (5.0, 1, 100), (5.0, 2, 100)]

    Args:
        schema: The public schema.
        data: The table: anything that ``open_source`` takes. It is read here, once; and once more,
            before its first run, for each mechanism that measures more than the target workload
            ("layered", "mst" and "aim"). For ``NumbersFirst`` it is read as for ``Synthesizer``.
        workload: The target workload: a workload, or names such as "categorical:2".
        delta: The δ of every budget; by default 1 / N² of a table with N records, where that number
            is public.
        neighbours: The neighbouring relation, "replace-one" or "add-remove".
        conversion: The conversion from (ε, δ) to ρ. By default the ledger's, or without a ledger
            each mechanism's own.
        on_invalid: What to do with values outside the schema, "error" or "coerce".
        threads: The number of threads that count; all cores by default.
        progress: Whether to draw a bar while the table is counted; or a function of what is being
            done, how much of it is done, and how much there is. By default a bar says when kernels
            are compiled.

    Attributes:
        workload: The target workload.
        delta: The δ of every budget.
        finished: The runs of the last sweep that are done, by number. This is what is left where a
            sweep ends before its end.
        measured: What was measured and paid for by the last sweep, by number; of runs that failed,
            too.
    """

    def __init__(
        self,
        schema: Schema,
        data: Any,
        workload: Workload | Sequence[str] | str,
        *,
        delta: float | None = None,
        neighbours: Neighbours = "replace-one",
        conversion: Conversion | None = None,
        on_invalid: OnInvalid = "error",
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> None:
        if isinstance(workload, str):
            workload = [workload]
        if not isinstance(workload, Workload):
            workload = workload_of(schema, workload)
        self.workload = workload
        # Every run has these terms, and an ε of its own.
        budget = Budget(1.0, delta, neighbours, conversion)
        if delta is None and neighbours != "replace-one":  # refused, before the table is read
            budget.resolve(n_records=None, conversion="zcdp")
        self._data, self._on_invalid, self._threads = data, on_invalid, threads
        unit = self.workload.schema.unit
        self._public = records_are_public(neighbours, unit)
        if delta is None and not self._public:
            raise BudgetError(
                "give a delta: by default it is 1 / N², and where each row of a unit counts "
                "(weighting = 'rows') the number of rows is private"
            )
        # One key, so that all counts are of the same rows.
        self._unit_key = None if unit is None else UnitKey.draw()
        self._relation = relation_of(neighbours, self.workload.schema.unit_column)
        with shown(progress) as report:
            self._exact = self._count(workload, report)
        known = self._exact.n_records if self._public else None
        self.delta = budget.resolve(n_records=known, conversion="zcdp").delta
        self._budget = replace(budget, delta=self.delta)
        # The exact counts of all that a mechanism may measure, once it is needed.
        self._more: dict[Mechanism, ExactCounts] = {}
        self.finished: dict[int, SweepRun] = {}
        self.measured: dict[int, Measurements] = {}

    def exact(self, mechanism: Mechanism) -> ExactCounts:
        """The exact counts of all that a mechanism may measure."""
        return self._count_candidates(mechanism, ignore)

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
        progress: bool | Progress | None = None,
    ) -> list[SweepRun]:
        """One release for each ε, seed and settings, in that order.

        A run whose projection fails does not keep the others from theirs. When all have ended, an
        error names those that failed; ``finished`` has the others, and ``measured`` what was paid
        for, of all of them: any projector makes a table of it, and nothing is spent.

        Args:
            epsilons: The budgets; each run spends the whole of its own.
            seeds: The seeds of the projections, and of insecure noise.
            settings: The settings of the runs: ``mechanism``, ``projector`` and ``rows``, as for
                ``Synthesizer``. By default "one-shot", "gsd" and 2,000.
            ledger: The ledger that is charged for every run.
            dataset: The name of the dataset in the ledger.
            insecure: For experiments on public data: noise from the seeds, and no ledger. What is
                made is not private.
            evaluate: Whether to compare every table with the exact counts.
            n_jobs: The number of runs at a time, as joblib has it; all cores by default.
            progress: Whether to draw a bar; or a function, as for ``Sweep``.
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
        conversion = self._conversion(ledger, dataset)
        runs = [
            self._planned(epsilon, seed, each, conversion, dataset, insecure)
            for epsilon, seed, each in itertools.product(epsilons, seeds, settings)
        ]
        with shown(progress) as report:
            # Whatever is wrong with any of them is found before the first is paid for, and all
            # that they will spend is reserved for them.
            different = {repr(each.settings): each for each in runs}.values()
            count = self._again(runs, report)
            for each in different:
                each.runner.check()
            planned = sum(each.runner.planned_units for each in runs)
            for each in different:
                self._count_candidates(each.mechanism, report)
                each.runner.precompile()
            reservation = None
            if ledger is not None:
                reservation = Reservation(ledger, dataset, f"sweep-{secrets.token_hex(6)}", "sweep")
                require_same(ledger.account(dataset).relation, self._relation)
                reservation.reserve(planned)
            interruptions = InterruptGuard()
            made = SweepRuns(
                self._exact,
                self.exact,
                count,
                runs,
                reservation,
                interruptions,
                evaluate,
                report,
            )
            self.finished, self.measured, failed = made.finished, made.measured, made.failed
            try:
                with interruptions.listening():
                    made.run(joblib, n_jobs)
            finally:
                if reservation is not None:
                    reservation.cancel()
        if failed:
            words = [f"{runs[number].words}: {why}" for number, why in sorted(failed.items())]
            some = "; ".join(words[:SHOWN])
            raise ProjectionError(
                f"{len(failed)} of {len(runs)} runs failed: {some}{'; …' * (len(words) > SHOWN)}. "
                "The others are in Sweep.finished, and what was measured for these is in "
                "Sweep.measured, by the number of the run"
            )
        return [made.finished[number] for number in range(len(runs))]

    def _count(self, workload: Workload, progress: Progress) -> ExactCounts:
        return exact_counts(
            workload,
            self._data,
            on_invalid=self._on_invalid,
            threads=self._threads,
            progress=progress,
            unit_key=self._unit_key,
        )

    def _again(
        self, runs: Sequence[PlannedRun], progress: Progress
    ) -> Callable[[Workload], ExactCounts]:
        """Counts what mechanisms find in the course of their runs, some of them at a time."""
        if all(each.mechanism.counts_at_once(each.runner.workload) for each in runs):
            return lambda more: self._count(more, progress)
        return TableCounts(
            open_source(self._data, self.workload.schema),
            again=True,
            on_invalid=self._on_invalid,
            threads=self._threads,
            progress=progress,
            unit_key=self._unit_key,
        )

    def _count_candidates(self, mechanism: Mechanism, progress: Progress) -> ExactCounts:
        if mechanism not in self._more:
            candidates = mechanism.counted_first(mechanism.candidates(self.workload))
            same = candidates is self.workload
            self._more[mechanism] = self._exact if same else self._count(candidates, progress)
        return self._more[mechanism]

    def _conversion(self, ledger: Ledger | None, dataset: str) -> Conversion | None:
        """The conversion of all runs; None for each mechanism's own."""
        if ledger is None:
            return self._budget.conversion
        account = ledger.account(dataset)
        if self._budget.conversion not in (None, account.budget.conversion):
            raise BudgetError(
                f"the dataset {dataset!r} of the ledger has the conversion "
                f"{account.budget.conversion!r}, not {self._budget.conversion!r}"
            )
        return account.budget.conversion

    def _planned(
        self,
        epsilon: float,
        seed: int,
        settings: Mapping[str, Any],
        conversion: Conversion | None,
        dataset: str,
        insecure: bool,
    ) -> PlannedRun:
        """A run, checked as far as that can be done without its candidate queries."""
        if not isinstance(settings, Mapping):
            raise ProjectionError(
                f"settings is a list of mappings, and one of them is {settings!r:.80}"
            )
        for name in settings:
            if name not in SETTINGS:
                hint = did_you_mean(str(name), SETTINGS)
                raise ProjectionError(
                    f"settings: a run has no {name!r}{hint}; it has {', '.join(SETTINGS)}"
                )
        given = {**SETTINGS, **settings}
        mechanism = mechanism_of(given["mechanism"]) or choose_mechanism(self.workload)
        conversion = conversion or conversion_of(mechanism)
        check_conversion(conversion, mechanism)
        whole("a seed", seed, 0, MOST_SEED)
        projector = projector_of(given["projector"])
        run = RunSettings(
            budget=replace(self._budget, epsilon=epsilon, conversion=conversion),
            mechanism=mechanism,
            projector=projector,
            knowledge=Knowledge(),
            rows=rows_of(given["rows"], projector) or ROWS,
            random_state=seed,
            dataset=dataset,
            on_invalid=self._on_invalid,
            insecure_noise_seed=seed if insecure else None,
            n_records=self._exact.n_records if self._public else None,
        )
        return PlannedRun(epsilon, seed, dict(settings), Runner(run, self.workload, self._threads))
