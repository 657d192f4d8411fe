"""Sweeps: many releases from one set of counts, wherever they are searched for."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import joblib
import numpy as np
import pyarrow as pa
import pytest

from private_gsd import (
    GeneticSearch,
    Sweep,
    Synthesizer,
    datasets,
    evolve,
    exact_counts,
    query_errors,
)
from private_gsd.errors import (
    BudgetError,
    GsdError,
    LedgerError,
    MissingExtraError,
    ProjectionError,
    SchemaError,
)
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.budget import Conversion, RhoBudget, rho_of
from private_gsd.privacy.conversions import ROUNDING
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.synthesis import sweep as module
from private_gsd.workloads import categorical_marginals, functions

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "tenure"])
TABLE = datasets.census(2000, seed=3).select(SCHEMA.names)
SPECS = ["categorical:2", "tree:2:3"]
SETTINGS: list[dict[str, Any]] = [
    {"rows": 80, "denoise": False},
    {"rows": 80, "denoise": False, "mechanism": "adaptive", "epochs": 3},
]


@pytest.fixture
def sweep() -> Sweep:
    return Sweep(SCHEMA, TABLE, SPECS)


def test_budgets_are_stated_as_fits_state_them(sweep: Sweep, tmp_path: Path) -> None:
    """Without a ledger by what the mechanism allows, with one as it does."""
    runs = sweep.run([1.0], settings=SETTINGS, insecure=True, n_jobs=1)
    for run, conversion in zip(runs, ("gdp", "zcdp"), strict=True):
        mechanism = run.settings.get("mechanism", "one-shot")
        planned = Synthesizer(SCHEMA, 1.0, workload=SPECS, mechanism=mechanism).plan(TABLE)
        assert planned.budget.conversion == conversion
        assert module._Planned(1.0, 0, dict(run.settings), sweep, None).budget == planned.budget
    squares = sweep.workload.squared_sensitivities("replace-one")
    variances = runs[0].measurements.scales ** 2 - ROUNDING
    spent = float((squares / (2 * variances)).sum())
    assert spent == pytest.approx(rho_of(1.0, sweep.delta, "gdp"), rel=1e-6)
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        for name in get_args(Conversion):
            ledger.add_dataset(name, RhoBudget.from_epsilon(2.0, sweep.delta, name))
            sweep.run([1.0], ledger=ledger, dataset=name, n_jobs=1, settings=SETTINGS[:1])
            assert ledger.account(name).epsilon_spent == pytest.approx(1.0, rel=1e-6)
        with pytest.raises(BudgetError, match="the budget has the conversion 'gdp'"):
            sweep.run([0.5], ledger=ledger, dataset="gdp", n_jobs=1, settings=SETTINGS)
        assert ledger.account("gdp").held == 0
        assert len(ledger.charges("gdp")) == 1


def test_the_same_wherever_it_runs(sweep: Sweep) -> None:
    """In this process, in others, and on threads."""
    asked: dict[str, Any] = {"seeds": [0, 1], "settings": SETTINGS, "insecure": True}
    told: list[tuple[int, int]] = []
    here = sweep.run([0.5, 5.0], n_jobs=1, done=lambda *now: told.append(now), **asked)
    assert told == [(number, 8) for number in range(1, 9)]
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


@pytest.mark.parametrize("denoise", [True, False])
def test_as_the_synthesizer_has_it(sweep: Sweep, denoise: bool) -> None:
    """The same measurements, with the same seeded noise."""
    for settings in SETTINGS:
        [run] = sweep.run([1.0], settings=[{**settings, "denoise": denoise}], insecure=True)
        options = {
            "mechanism": "one-shot",
            **settings,
            "projector": f"gsd:denoise={denoise}".lower(),
        }
        del options["denoise"]
        synth = Synthesizer(SCHEMA, 1.0, workload=SPECS, insecure_noise_seed=0, **options)
        measured = synth.fit(TABLE).release.measurements()
        assert measured is not None
        np.testing.assert_array_equal(run.measurements.counts, measured.counts)
        assert pa.Table.from_batches([run.table]).equals(synth.release.synthetic)


def test_the_table_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    sweep = Sweep(SCHEMA, reader, SPECS)  # which could not be read again
    assert len(sweep.run([1.0, 2.0], settings=SETTINGS, insecure=True, n_jobs=1)) == 4


def test_only_measurements_leave_the_process(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    real = module.project

    def watched(*arguments: Any) -> Any:
        given.extend(arguments)
        return real(*arguments)

    monkeypatch.setattr(module, "project", watched)
    sweep.run([1.0], seeds=[0, 1], settings=[{"rows": 50}], insecure=True, n_jobs=1)
    kinds = {type(each) for each in given}
    assert kinds == {Measurements, GeneticSearch, int, str}
    exact = exact_counts(sweep.workload, TABLE)
    measured = [each for each in given if isinstance(each, Measurements)]
    assert all((each.counts != exact.counts).mean() > 0.9 for each in measured)


def test_errors_are_told_on_request(sweep: Sweep) -> None:
    asked: dict[str, Any] = {"settings": [{"rows": 500}], "insecure": True, "n_jobs": 1}
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
        assert ledger.account("census").held == 0
        with pytest.raises(LedgerError, match="no dataset"):
            sweep.run([0.1], **{**asked, "dataset": "other"})


def test_a_drafted_schema_is_not_released(tmp_path: Path) -> None:
    drafted = replace(SCHEMA, drafted=True)
    sweep = Sweep(drafted, TABLE, ["categorical:2"])
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(SchemaError, match="is a draft"):
            sweep.run([1.0], ledger=ledger)
        assert ledger.charges("table") == []


def test_what_is_done_is_not_lost(sweep: Sweep, tmp_path: Path) -> None:
    """If somebody who is told of progress fails, or the process is interrupted."""

    def failing(now: int, _: int) -> None:
        if now == 2:
            raise KeyboardInterrupt

    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(KeyboardInterrupt):
            sweep.run([0.1] * 4, ledger=ledger, n_jobs=1, done=failing)
        assert sorted(sweep.finished) == [0, 1]
        assert sweep.finished[1].table.num_rows == 2000
        assert ledger.account("table").held == 0


def test_a_run_that_fails_loses_nothing_that_was_paid_for(tmp_path: Path) -> None:
    """The others go on, the failures are named, and their measurements are of use."""
    failing = {1: False, 3: False}

    def rich(rows: Any) -> Any:
        """A query of somebody's own, which fails in the searches of some runs."""
        # A search looks at its whole table; counting goes by other numbers of rows.
        if len(rows["sex"]) == 80 and any(failing.values()):
            failing.update(dict.fromkeys(failing, False))
            raise ValueError("not today")
        return rows["age"] > 50

    def done(now: int, _: int) -> None:
        if now in (1, 2):  # the next is the second run, then the fourth
            failing[2 * now - 1] = True

    workload = categorical_marginals(SCHEMA, 2) + functions(SCHEMA, {"rich": rich})
    sweep = Sweep(SCHEMA, TABLE, workload)
    settings: list[dict[str, Any]] = [
        {"rows": 80, "denoise": False, "tolerance": t} for t in (0.1, 0.2, 0.3)
    ]
    settings += [{**SETTINGS[1], "tolerance": t, "groups": 9} for t in (0.1, 0.2)]
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(ProjectionError) as caught:
            sweep.run([0.5], settings=settings, ledger=ledger, n_jobs=1, done=done)
        steps = [charge.run.partition(" ")[2] for charge in ledger.charges("table")]
        assert ledger.account("table").held == 0
    words = "2 of 5 runs failed: epsilon 0.5, seed 0, rows 80, denoise False, tolerance 0.2: "
    assert words in str(caught.value)
    assert "function 'rich' failed" in str(caught.value)
    assert sorted(sweep.finished) == [0, 2, 4]
    assert sorted(sweep.measured) == [0, 1, 2, 3, 4]
    # A run that failed goes no further.
    epoch = ["epoch 1: select", "epoch 1: measure"]
    assert steps == [
        *(f"{number}: measure" for number in range(3)),
        *(f"{number}: {step}" for number in (3, 4) for step in epoch),
    ]
    for number in (1, 3):
        measured = sweep.measured[number]
        assert measured.private
        assert measured.workload.num_groups == sweep.workload.num_groups
        assert len(evolve(measured, GeneticSearch(rows=50, denoise=False)).matrix) == 50


def dying(measured: Measurements, config: GeneticSearch, seed: int, *others: Any) -> Any:
    """A search whose process dies, with some seeds."""
    if seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return REAL(measured, config, seed, *others)


REAL = module.project


def test_a_worker_that_dies_loses_nothing_that_was_paid_for(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "project", dying)
    monkeypatch.setattr(module, "AHEAD", 1)
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        asked: dict[str, Any] = {"settings": SETTINGS[:1], "ledger": ledger, "n_jobs": 2}
        with pytest.raises(ProjectionError, match=r"runs failed: .*seed 1, .*Terminated"):
            sweep.run([0.1], seeds=[1, 2, 3, 4], **asked)
    assert sorted(sweep.measured) == [0, 1, 2, 3]
    assert {2, 3} <= set(sweep.finished)


def test_nothing_is_validated_by_assertions(tmp_path: Path) -> None:
    """Python leaves assertions out when it is told to optimise, and a wrong sweep paid first."""
    source = Path(module.__file__).parent
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text())
        found = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]
        assert not found, f"{path}: assert in lines {found}"
    script = """
import sys
from private_gsd import Sweep, datasets
from private_gsd.errors import ProjectionError
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.workloads import categorical_marginals, functions
schema = datasets.census_schema().select(["sex", "marital"])
sweep = Sweep(schema, datasets.census(200).select(schema.names), ["categorical:2"])
with Ledger(sys.argv[1], create=True) as ledger:
    ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
    for wrong in ({"rows": -1}, {"colour": 1}, {"generations": "many"}):
        try:
            sweep.run([1.0], settings=[{"rows": 20}, wrong], ledger=ledger, n_jobs=1)
        except ProjectionError as error:
            print(error)
    print(len(ledger.charges("table")), ledger.account("table").held)
"""
    told = subprocess.run(
        [sys.executable, "-O", "-c", script, str(tmp_path / "l.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 4
    assert told.stdout.splitlines()[-1] == "0 0"


def test_what_makes_no_sense_is_found_before_anything_is_paid(
    sweep: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BudgetError, match="give a ledger to charge, or say insecure=True"):
        sweep.run([1.0])
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(BudgetError, match="not both"):
            sweep.run([1.0], ledger=ledger, insecure=True)
        for wrong, error, message in (
            ({"settings": [{}, {"rows": -1}]}, ProjectionError, "rows"),
            ({"settings": [{}, {"colour": 1}]}, ProjectionError, "colour"),
            ({"settings": [{}, {"mechanism": "magic"}]}, BudgetError, "name must be"),
            (
                {"settings": [{}, {"mechanism": "adaptive", "islands": 2}]},
                ProjectionError,
                "islands",
            ),
            ({"settings": [{}, {"rows": 2**31 - 1}]}, ProjectionError, "take at most .* rows"),
            ({"seeds": [0, "x"]}, GsdError, "seed"),
            ({"seeds": [0, -1]}, GsdError, "seed"),
            ({"seeds": [0, 2**70]}, GsdError, "seed"),
            ({"seeds": [0, True]}, GsdError, "seed"),
        ):
            with pytest.raises(error, match=message):
                sweep.run([1.0], ledger=ledger, **wrong)
        with pytest.raises(BudgetError, match="epsilon"):
            sweep.run([1.0, 0.0], ledger=ledger)
        assert ledger.charges("table") == []
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    with pytest.raises(MissingExtraError, match="sweeps"):
        sweep.run([1.0], insecure=True)
