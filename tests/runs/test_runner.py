"""The runner: one run of a mechanism, whoever pays and wherever it saves what it has done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from private_gsd import (
    MST,
    Adaptive,
    Budget,
    GeneticSearch,
    Knowledge,
    Layered,
    OneShot,
    ProjectionError,
    WorkloadError,
    datasets,
    exact_counts,
    workloads,
)
from private_gsd.measurements.measurements import Measurements
from private_gsd.mechanisms import defaults
from private_gsd.mechanisms.base import plan_run
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.noise import InsecureSeededNoise
from private_gsd.projection import projector_of
from private_gsd.projection.protocol import Projection
from private_gsd.runs.checkpoint import MemoryCheckpoint
from private_gsd.runs.executor import Outcome
from private_gsd.runs.payments import UnledgeredPayments
from private_gsd.runs.runner import DRAWN_AT_ONCE, ReportedNoise, Runner, extended, project
from private_gsd.runs.settings import RunSettings

SCHEMA = datasets.census_schema().select(["sex", "marital", "tenure"])
TABLE = datasets.census(600, seed=2).select(SCHEMA.names)
TARGET = workloads.categorical_marginals(SCHEMA, 3)
SETTINGS = RunSettings(
    budget=Budget(1.0, 1e-6, "replace-one", "zcdp"),
    mechanism=OneShot(),
    projector=GeneticSearch(denoise=False),
    knowledge=Knowledge(),
    rows=50,
    random_state=3,
    insecure_noise_seed=8,
)


def run(runner: Runner, checkpoint: MemoryCheckpoint | None = None, **options: Any) -> Outcome:
    """A whole run, in memory."""
    settings = runner.settings
    return runner.run(
        lambda _: exact_counts(runner.workload, TABLE),
        UnledgeredPayments(LocalAccountant(settings.rho, settings.budget.neighbours)),
        checkpoint or MemoryCheckpoint(),
        **options,
    )


def test_candidates_and_plan_are_the_mechanisms() -> None:
    runner = Runner(replace(SETTINGS, mechanism=Layered()), TARGET)
    assert runner.workload.num_groups == 4
    assert runner.task.target is TARGET
    assert runner.planned_units == plan_run(Layered(), runner.task).total
    assert runner.planned_units <= SETTINGS.rho.units


def test_a_projector_is_asked_only_where_it_may_refuse() -> None:
    adaptive = replace(SETTINGS, mechanism=Adaptive(epochs=2))
    assert Runner(adaptive, TARGET).task.why_infeasible is None
    limited = replace(adaptive, projector=projector_of("pgm"))
    why = Runner(limited, TARGET).task.why_infeasible
    assert why is not None
    assert why(TARGET.select([0])) is None


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(ProjectionError, match=r"take at most .* rows"):
        Runner(replace(SETTINGS, rows=2**31 - 1), TARGET).check()
    halfspaces = workloads.random_halfspaces(datasets.census_schema(), 3)
    pgm = replace(SETTINGS, projector=projector_of("pgm"))
    with pytest.raises(WorkloadError, match="cannot serve halfspaces"):
        Runner(pgm, halfspaces).check()
    Runner(SETTINGS, TARGET).check()


def test_few_rows_are_fitted_and_the_others_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(defaults, "ROWS", (50, 50))
    large = replace(SETTINGS, rows=170, n_records=600)
    small = run(Runner(replace(large, rows=50), TARGET))
    checkpoint = MemoryCheckpoint()
    seen: list[tuple[str, float, float | None]] = []
    runner = Runner(large, TARGET, progress=lambda *state: seen.append(state))
    made = run(runner, checkpoint)
    assert runner.fitted_rows == 50
    assert len(made.table) == 170
    np.testing.assert_array_equal(made.table[:50], small.table)
    # A run that was killed among the new rows makes the same of the fitted table.
    fitted = checkpoint.table(0)
    assert fitted is not None
    np.testing.assert_array_equal(fitted, small.table)
    np.testing.assert_array_equal(
        extended(made.measurements, fitted, 170, runner.seed(0)), made.table
    )
    assert ("new rows", 120, 120) in seen


def test_who_fits_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Algorithm 1, Python functions, and models that draw their rows, unless they select."""
    monkeypatch.setattr(defaults, "ROWS", (50, 50))
    settings = replace(SETTINGS, rows=170, n_records=600)
    functions = TARGET + workloads.functions(SCHEMA, {"one": lambda rows: rows["sex"] == "male"})
    adaptive = Adaptive(epochs=2)
    for changes, target, rows in (
        ({}, TARGET, 50),
        ({"projector": GeneticSearch(rows=170)}, TARGET, 50),
        ({"projector": GeneticSearch.paper()}, TARGET, 170),
        ({}, functions, 170),
        ({"projector": projector_of("pgm")}, TARGET, 170),
        ({"projector": projector_of("rap")}, TARGET, 170),
        ({"projector": projector_of("rap++")}, TARGET, 50),
        ({"projector": projector_of("rap"), "mechanism": adaptive}, TARGET, 50),
        ({"rows": 20}, TARGET, 20),
        ({"rows": 170, "n_records": None}, TARGET, 50),
    ):
        assert Runner(replace(settings, **changes), target).fitted_rows == rows, changes


def test_tables_have_seeds_of_their_own() -> None:
    seeds: list[int] = []

    def noted(known: Measurements, start: Any, seed: int) -> Any:
        assert start is not None
        assert known.n_records == 600
        seeds.append(seed)
        return start

    mechanism = Adaptive(epochs=2)
    target = workloads.categorical_marginals(SCHEMA, 2)
    runner = Runner(replace(SETTINGS, mechanism=mechanism), target)
    run(runner, project=noted)
    assert seeds == [3 * 2**20, 3 * 2**20 + 1]
    assert seeds == [runner.seed(0), runner.seed(1)]


def test_a_projection_may_be_left_to_others() -> None:
    """Whoever runs it may make the table elsewhere, of what it was given."""
    found: list[Any] = []

    def defer(*given: Any) -> Any:
        found.append(given)
        return np.empty((0, 3))

    runner = Runner(replace(SETTINGS, mechanism=MST()), TARGET)
    outcome = run(runner, project=defer)
    assert len(outcome.table) == 0
    [(known, start, seed)] = found
    elsewhere = project(SETTINGS.projector, known, rows=50, seed=seed, start=start)
    np.testing.assert_array_equal(elsewhere, run(runner).table)


def test_the_seed_of_insecure_noise_decides() -> None:
    one, same, other = (
        run(Runner(replace(SETTINGS, insecure_noise_seed=seed), TARGET)).measurements
        for seed in (8, 8, 9)
    )
    np.testing.assert_array_equal(one.counts, same.counts)
    assert not np.array_equal(one.counts, other.counts)
    assert not one.private
    private = run(Runner(replace(SETTINGS, insecure_noise_seed=None), TARGET)).measurements
    assert private.private


def test_a_run_with_another_number_of_rows_makes_its_table_anew() -> None:
    checkpoint = MemoryCheckpoint()
    first = run(Runner(SETTINGS, TARGET), checkpoint)
    table = checkpoint.table(0)
    assert table is not None
    assert len(table) == 50

    class Committed(UnledgeredPayments):
        def paid(self, step: str) -> int | None:
            del step
            return Runner(SETTINGS, TARGET).planned_units

        def committed(self, step: str) -> str | None:
            del step
            return ""

    def no_data(_: object) -> Any:
        raise LookupError

    more = Runner(replace(SETTINGS, rows=70), TARGET)
    payments = Committed(LocalAccountant(SETTINGS.rho))
    outcome = more.run(no_data, payments, checkpoint)
    assert len(outcome.table) == 70
    assert outcome.measurements is first.measurements
    np.testing.assert_array_equal(outcome.table, run(more).table)


def test_a_table_to_start_from_gets_as_many_rows_as_are_wanted() -> None:
    """Where a run was resumed with another number of rows between two epochs."""
    sizes: list[int] = []

    def noted(known: Measurements, start: Any, seed: int) -> Any:
        del known, seed
        sizes.append(len(start))
        return start[:30]  # as if it was made before

    target = workloads.categorical_marginals(SCHEMA, 2)
    run(Runner(replace(SETTINGS, mechanism=Adaptive(epochs=3)), target), project=noted)
    assert sizes == [50, 50, 50]


def test_progress_is_reported() -> None:
    told: list[tuple[Any, ...]] = []
    run(Runner(SETTINGS, TARGET, progress=lambda *now: told.append(now)))
    assert told[0] == ("adding noise", 0, TARGET.size)
    assert {what for what, _, _ in told} >= {"adding noise", "searching"}


def test_noise_in_pieces_is_the_noise() -> None:
    told: list[tuple[Any, ...]] = []
    counts = np.arange(2 * DRAWN_AT_ONCE + 5)
    noise = ReportedNoise(InsecureSeededNoise(4), lambda *now: told.append(now))
    assert noise.private is False
    whole = InsecureSeededNoise(4).gaussian(counts, 3.0)
    np.testing.assert_array_equal(noise.gaussian(counts, 3.0), whole)
    assert told == [("adding noise", n * DRAWN_AT_ONCE, len(counts)) for n in range(3)]
    scores = np.array([1, 50, 3])
    fresh = ReportedNoise(InsecureSeededNoise(4), lambda *_: None)
    assert fresh.top_k(scores, 2, 1.0) == InsecureSeededNoise(4).top_k(scores, 2, 1.0)


class Interrupted(GeneticSearch):
    """A search that Ctrl-C ends, with the table so far."""

    def project(self, measurements: Measurements, *, rows: int, **others: Any) -> Projection:
        del measurements, others
        return Projection(np.zeros((rows, 3)), 0.0, "interrupted", 1, 0.0)


def test_ctrl_c_in_a_projection_ends_the_run() -> None:
    runner = Runner(replace(SETTINGS, projector=Interrupted()), TARGET)
    checkpoint = MemoryCheckpoint()
    with pytest.raises(KeyboardInterrupt):
        run(runner, checkpoint)
    assert checkpoint.measurements() is not None
    assert checkpoint.table(0) is None
