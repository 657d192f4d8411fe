"""Sweeps: many releases from one set of exact counts, wherever their tables are made."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import duckdb
import joblib
import numpy as np
import pyarrow as pa
import pytest

from private_gsd import (
    Adaptive,
    Budget,
    BudgetError,
    GeneticSearch,
    GsdError,
    Ledger,
    LedgerError,
    Measurements,
    MissingExtraError,
    NumbersFirst,
    ProjectionError,
    Schema,
    SchemaError,
    Sweep,
    Synthesizer,
    datasets,
    evolve,
    exact_counts,
    query_errors,
)
from private_gsd.mechanisms import defaults
from private_gsd.privacy.budget import Conversion, RhoBudget, rho_of
from private_gsd.privacy.conversions import ROUNDING
from private_gsd.projection.constraints import broken_rules
from private_gsd.synthesis import sweep_runs
from private_gsd.workloads import categorical_marginals, functions

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "tenure"])
TABLE = datasets.census(2000, seed=3).select(SCHEMA.names)
SPECS = ["categorical:2", "tree:2:3"]
QUICK = "gsd:denoise=false"
SETTINGS: list[dict[str, Any]] = [
    {"rows": 80, "projector": QUICK},
    {"rows": 80, "projector": QUICK, "mechanism": Adaptive(epochs=3)},
]
# The seed of the table of a number, of a run with the seed 1.
SEEDS = 2**20


@pytest.fixture
def sweep() -> Sweep:
    return Sweep(SCHEMA, TABLE, SPECS)


def test_large_tables_have_new_rows(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their first rows are those of a small table, of one projection or the last of several."""
    monkeypatch.setattr(defaults, "ROWS", (80, 80))
    larger = [{**each, "rows": 200} for each in SETTINGS]
    small, large = (
        sweep.run([1.0], settings=each, insecure=True, n_jobs=1) for each in (SETTINGS, larger)
    )
    for few, many in zip(small, large, strict=True):
        assert len(many.matrix) == 200
        np.testing.assert_array_equal(many.matrix[:80], few.matrix)


def test_budgets_are_stated_as_fits_state_them(sweep: Sweep, tmp_path: Path) -> None:
    """Without a ledger by what the mechanism allows, with one as it does."""
    [run] = sweep.run([1.0], settings=SETTINGS[:1], insecure=True, n_jobs=1)
    squares = sweep.workload.squared_sensitivities("replace-one")
    spent = float((squares / (2 * (run.measurements.scales**2 - ROUNDING))).sum())
    assert spent == pytest.approx(rho_of(1.0, sweep.delta, "gdp"), rel=1e-6)
    paper = Sweep(SCHEMA, TABLE, SPECS, conversion="paper")
    [run] = paper.run([1.0], settings=SETTINGS[:1], insecure=True, n_jobs=1)
    spent = float((squares / (2 * run.measurements.scales**2)).sum())
    assert spent == pytest.approx(rho_of(1.0, sweep.delta, "paper"), rel=1e-6)
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        for name in get_args(Conversion):
            ledger.add_dataset(name, RhoBudget.from_epsilon(2.0, sweep.delta, name))
            sweep.run([1.0], ledger=ledger, dataset=name, n_jobs=1, settings=SETTINGS[:1])
            account = ledger.account(name)
            assert account.epsilon_of(account.spent) == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(BudgetError, match="the budget has the conversion 'gdp'"):
            sweep.run([0.5], ledger=ledger, dataset="gdp", n_jobs=1, settings=SETTINGS)
        with pytest.raises(BudgetError, match="has the conversion 'gdp', not 'paper'"):
            paper.run([0.5], ledger=ledger, dataset="gdp", n_jobs=1)
        assert ledger.account("gdp").reserved == 0
        assert len(ledger.charges("gdp")) == 1


@pytest.mark.slow
def test_the_same_wherever_it_runs(sweep: Sweep) -> None:
    """In this process, in others, and on threads."""
    asked: dict[str, Any] = {"seeds": [0, 1], "settings": SETTINGS, "insecure": True}
    told: list[tuple[Any, ...]] = []
    here = sweep.run([0.5, 5.0], n_jobs=1, progress=lambda *now: told.append(now), **asked)
    assert told == [("running", number, 8) for number in range(1, 9)]
    assert [(run.epsilon, run.seed, run.settings) for run in here] == [
        (epsilon, seed, settings)
        for epsilon in (0.5, 5.0)
        for seed in (0, 1)
        for settings in SETTINGS
    ]
    others = sweep.run([0.5, 5.0], n_jobs=2, **asked)
    with joblib.parallel_config(backend="threading"):
        threads = sweep.run([0.5, 5.0], n_jobs=2, **asked)
    for one, other, third in zip(here, others, threads, strict=True):
        np.testing.assert_array_equal(one.matrix, other.matrix)
        np.testing.assert_array_equal(one.matrix, third.matrix)
    assert len({run.matrix.tobytes() for run in here}) == 8
    assert not any(run.measurements.private for run in here)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["one-shot", "layered", Adaptive(epochs=3), "mst", "aim"])
def test_as_the_synthesizer_has_it(mechanism: Any, neighbours: Any) -> None:
    """The same measurements with the same seeded noise, and the same tables."""
    specs = ["categorical:3", "categorical:2"]
    sweep = Sweep(SCHEMA, TABLE, specs, delta=1e-6, neighbours=neighbours)
    settings = {"rows": 60, "projector": QUICK, "mechanism": mechanism}
    runs = sweep.run([3.0], seeds=[0, 5], settings=[settings], insecure=True, n_jobs=1)
    for run in runs:
        budget = Budget(3.0, 1e-6, neighbours)
        synth = Synthesizer(SCHEMA, budget, workload=specs, random_state=run.seed, **settings)
        release = synth.fit(TABLE, insecure_noise_seed=run.seed).release_
        measured = release.measurements()
        assert measured is not None
        np.testing.assert_array_equal(run.measurements.counts, measured.counts)
        np.testing.assert_array_equal(run.measurements.scales, measured.scales)
        assert run.measurements.n_records == measured.n_records
        assert pa.Table.from_batches([run.table]).equals(release.synthetic)


def test_a_private_number_of_records_gives_no_delta() -> None:
    with pytest.raises(BudgetError, match="give a delta"):
        Sweep(SCHEMA, "no such file", SPECS, neighbours="add-remove")


@pytest.mark.worker("large")
def test_an_adaptive_run_starts_from_a_table_that_keeps_the_rules() -> None:
    schema = Schema(SCHEMA.columns, constraints=["age >= 18 OR marital = 'single'"])
    sweep = Sweep(schema, TABLE, ["categorical:2"])
    settings = {"rows": 60, "projector": QUICK, "mechanism": Adaptive(epochs=2)}
    [run] = sweep.run([1.0], settings=[settings], insecure=True, n_jobs=1)
    assert broken_rules(schema, run.matrix) == {}


def test_the_table_is_read_once() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    sweep = Sweep(SCHEMA, reader, SPECS)  # which could not be read again
    assert len(sweep.run([1.0, 2.0], settings=SETTINGS, insecure=True, n_jobs=1)) == 4


def test_only_measurements_leave_the_process(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    real = joblib.delayed

    def watched(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            sent.extend(arguments)
            return real(function)(*arguments)

        return call

    monkeypatch.setattr(joblib, "delayed", watched)
    asked: dict[str, Any] = {"settings": SETTINGS[:1], "insecure": True, "n_jobs": 1}
    sweep.run([1.0], seeds=[0, 1], **asked)
    inside = [each for call in sent for each in vars(call).values()]
    assert {type(each) for each in inside} == {Measurements, GeneticSearch, int, type(None)}
    exact = exact_counts(sweep.workload, TABLE)
    measured = [each for each in inside if isinstance(each, Measurements)]
    assert len(measured) == 2
    assert all((each.counts != exact.counts).mean() > 0.9 for each in measured)


def test_errors_are_given_on_request(sweep: Sweep) -> None:
    settings = [{"rows": 500, "projector": QUICK}]
    asked: dict[str, Any] = {"settings": settings, "insecure": True, "n_jobs": 1}
    [run] = sweep.run([3.0], **asked)
    assert run.errors is None
    little, much = sweep.run([0.1, 10.0], evaluate=True, **asked)
    assert little.errors is not None
    assert much.errors is not None
    assert much.errors.mean < little.errors.mean
    assert much.errors == query_errors(sweep.workload, TABLE, pa.Table.from_batches([much.table]))


def test_every_run_is_paid_for(sweep: Sweep, tmp_path: Path) -> None:
    budget = RhoBudget.from_epsilon(2.0, sweep.delta)
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("census", budget)
        asked: dict[str, Any] = {"ledger": ledger, "dataset": "census", "n_jobs": 1}
        runs = sweep.run([0.5, 0.7], settings=SETTINGS, **asked)
        assert all(run.measurements.private for run in runs)
        spent = sum(2 * RhoBudget.from_epsilon(e, sweep.delta).units for e in (0.5, 0.7))
        assert ledger.account("census").spent == pytest.approx(spent, rel=1e-9)
        with pytest.raises(BudgetError, match="remains"):
            sweep.run([0.1, 0.1, 1.9], **asked)
        # Nothing of it was spent, since not all of it could be.
        assert ledger.account("census").spent == pytest.approx(spent, rel=1e-9)
        assert ledger.account("census").reserved == 0
        with pytest.raises(LedgerError, match="no dataset"):
            sweep.run([0.1], **{**asked, "dataset": "other"})


def test_the_number_of_records_is_paid_for_where_it_is_private(tmp_path: Path) -> None:
    sweep = Sweep(SCHEMA, TABLE, SPECS, delta=1e-6, neighbours="add-remove")
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("one", RhoBudget.from_epsilon(2.0, 1e-6), neighbours="replace-one")
        with pytest.raises(BudgetError, match="the budget is for replace-one neighbours"):
            sweep.run([1.0], ledger=ledger, dataset="one", n_jobs=1)
        assert ledger.charges("one") == []
        ledger.add_dataset("two", RhoBudget.from_epsilon(2.0, 1e-6), neighbours="add-remove")
        [run] = sweep.run([1.0], settings=SETTINGS[:1], ledger=ledger, dataset="two", n_jobs=1)
        steps = [charge.run.partition(" ")[2] for charge in ledger.charges("two")]
    assert steps == ["0: number of records", "0: measure"]
    assert run.measurements.neighbours == "add-remove"


def test_a_drafted_schema_is_not_released(tmp_path: Path) -> None:
    drafted = replace(SCHEMA, drafted=True)
    sweep = Sweep(drafted, TABLE, ["categorical:2"])
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(SchemaError, match="is a draft"):
            sweep.run([1.0], ledger=ledger)
        assert ledger.charges("table") == []


def test_what_is_done_is_not_lost(sweep: Sweep, tmp_path: Path) -> None:
    """If the function that shows progress fails, or the process is interrupted."""

    def failing(_: str, now: float, __: float | None) -> None:
        if now == 2:
            raise KeyboardInterrupt

    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        settings = [{"projector": QUICK}]
        with pytest.raises(KeyboardInterrupt):
            sweep.run([0.1] * 4, settings=settings, ledger=ledger, n_jobs=1, progress=failing)
        assert sorted(sweep.finished) == [0, 1]
        assert sweep.finished[1].table.num_rows == 2000
        assert ledger.account("table").reserved == 0


class Failing(GeneticSearch):
    """A search that fails for the first table of seed 2, and for the second of seed 3."""

    def project(self, measurements: Measurements, *, seed: int = 0, **others: Any) -> Any:
        if seed in (2 * SEEDS, 3 * SEEDS + 1):
            raise ValueError("not today")
        return super().project(measurements, seed=seed, **others)


@pytest.mark.slow
def test_a_run_that_fails_loses_nothing_that_was_paid_for(tmp_path: Path) -> None:
    """The others go on, the failures are named, and their measurements are of use."""
    workload = categorical_marginals(SCHEMA, 2) + functions(
        SCHEMA, {"old": lambda rows: rows["age"] > 50}
    )
    sweep = Sweep(SCHEMA, TABLE, workload)
    settings = [{**each, "projector": Failing(denoise=False)} for each in SETTINGS]
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(ProjectionError) as caught:
            sweep.run([0.5], seeds=[1, 2, 3], settings=settings, ledger=ledger, n_jobs=1)
        steps = [charge.run.partition(" ")[2] for charge in ledger.charges("table")]
        assert ledger.account("table").reserved == 0
    assert "3 of 6 runs failed: epsilon 0.5, seed 2, rows 80, projector Failing(" in str(
        caught.value
    )
    assert "ValueError: not today" in str(caught.value)
    assert sorted(sweep.finished) == [0, 1, 4]
    assert sorted(sweep.measured) == [0, 1, 2, 3, 4, 5]
    # A run that failed goes no further.
    epochs = [[f"epoch {number}: {what}" for what in ("select", "measure")] for number in (1, 2, 3)]
    assert steps == [
        *(f"{number}: measure" for number in (0, 2, 4)),
        *(f"1: {step}" for epoch in epochs for step in epoch),
        *(f"3: {step}" for step in epochs[0]),
        *(f"5: {step}" for epoch in epochs[:2] for step in epoch),
    ]
    for number, groups in ((2, 4), (3, 1), (5, 2)):
        measured = sweep.measured[number]
        assert measured.private
        assert measured.workload.num_groups == groups
        assert len(evolve(measured, GeneticSearch(rows=50, denoise=False)).matrix) == 50


class Dying(GeneticSearch):
    """A search whose process dies, with one seed."""

    def project(self, measurements: Measurements, *, seed: int = 0, **others: Any) -> Any:
        if seed == SEEDS:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().project(measurements, seed=seed, **others)


@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing_that_was_paid_for(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_runs, "AHEAD", 1)
    settings = [{"rows": 80, "projector": Dying(denoise=False)}]
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(ProjectionError, match=r"runs failed: .*seed 1, .*Terminated"):
            sweep.run([0.1], seeds=[1, 2, 3, 4], settings=settings, ledger=ledger, n_jobs=2)
    assert sorted(sweep.measured) == [0, 1, 2, 3]
    assert {2, 3} <= set(sweep.finished)


@pytest.mark.slow
def test_nothing_is_validated_by_assertions(tmp_path: Path) -> None:
    """Python leaves assertions out when it is told to optimise, and a wrong sweep paid first."""
    for path in sorted(Path(sweep_runs.__file__).parents[1].rglob("*.py")):
        tree = ast.parse(path.read_text())
        found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
        assert not found, f"{path}: assert in lines {found}"
    script = """
import sys
from private_gsd import Ledger, ProjectionError, Sweep, datasets
from private_gsd.privacy.budget import RhoBudget
schema = datasets.census_schema().select(["sex", "marital"])
sweep = Sweep(schema, datasets.census(200).select(schema.names), "categorical:2")
with Ledger(sys.argv[1], create=True) as ledger:
    ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
    for wrong in ({"rows": -1}, {"colour": 1}, {"projector": "gsd:generations=many"}):
        try:
            sweep.run([1.0], settings=[{"rows": 20}, wrong], ledger=ledger, n_jobs=1)
        except ProjectionError as error:
            print(error)
    print(len(ledger.charges("table")), ledger.account("table").reserved)
"""
    done = subprocess.run(
        [sys.executable, "-O", "-c", script, str(tmp_path / "l.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
    assert done.stdout.splitlines()[-1] == "0 0"


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"settings": [{}, {"rows": -1}]}, ProjectionError, "rows"),
        ({"settings": [{}, {"rows": "many"}]}, ProjectionError, "rows"),
        (
            {"settings": [{}, {"rows": 20, "projector": GeneticSearch(rows=30)}]},
            ProjectionError,
            "the projector's is 30",
        ),
        ({"settings": [{}, {"colour": 1}]}, ProjectionError, "a run has no 'colour'"),
        ({"settings": [{}, "rows"]}, ProjectionError, "a list of mappings"),
        ({"settings": [{}, {"mechanism": "magic"}]}, BudgetError, "mechanism must be one of"),
        ({"settings": [{}, {"projector": "rop"}]}, ProjectionError, "no projector is called"),
        (
            {"settings": [{}, {"projector": "gsd:islets=2"}]},
            ProjectionError,
            "islets",
        ),
        ({"settings": [{}, {"rows": 2**31 - 1}]}, ProjectionError, "take at most .* rows"),
        ({"seeds": [0, "x"]}, GsdError, "seed"),
        ({"seeds": [0, -1]}, GsdError, "seed"),
        ({"seeds": [0, 2**70]}, GsdError, "seed"),
        ({"seeds": [0, True]}, GsdError, "seed"),
        ({"epsilons": [1.0, 0.0]}, BudgetError, "epsilon"),
        ({"epsilons": [1.0, "1"]}, BudgetError, "epsilon"),
        ({"progress": 3}, GsdError, "progress must be"),
        ({"insecure": True}, BudgetError, "not both"),
    ],
)
def test_what_makes_no_sense_is_found_before_anything_is_paid(
    sweep: Sweep, tmp_path: Path, wrong: dict[str, Any], error: type[GsdError], message: str
) -> None:
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(error, match=message):
            sweep.run(**{"epsilons": [1.0], "ledger": ledger, **wrong})
        assert ledger.charges("table") == []
        assert ledger.account("table").reserved == 0


def test_what_a_sweep_needs(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BudgetError, match="give a ledger to charge, or say insecure=True"):
        sweep.run([1.0])
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(MissingExtraError, match="sweeps"):
        sweep.run([1.0], insecure=True)


@pytest.mark.slow
def test_runs_that_find_their_queries_share_one_reader() -> None:
    """A DuckDB relation can be read by one thread at a time."""
    schema = datasets.census_schema().select(["sex", "age"])
    connection = duckdb.connect()
    connection.register("people", datasets.census(300).select(schema.names))
    sweep = Sweep(schema, connection.table("people"), "tree:2", delta=1e-6)
    settings = {"mechanism": NumbersFirst(Adaptive(epochs=2)), "rows": 50, "projector": QUICK}
    runs = sweep.run([5.0], seeds=range(4), settings=[settings], insecure=True, n_jobs=4)
    assert [run.table.num_rows for run in runs] == [50] * 4
