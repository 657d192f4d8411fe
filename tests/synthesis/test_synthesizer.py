"""The synthesizer: from a table to a release, killed at any moment and gone on with."""

from __future__ import annotations

import errno
import json
import math
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import Boolean, Categorical, Integer, Schema, datasets, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import (
    BudgetError,
    GsdError,
    LedgerError,
    MeasurementError,
    ProjectionError,
    ReleaseError,
    SourceError,
    WorkloadError,
)
from private_gsd.measurements.measurements import Measurements
from private_gsd.mechanisms import Mechanism, adaptive_units
from private_gsd.mechanisms.defaults import choose_mechanism, choose_rows, choose_specs, few_triples
from private_gsd.privacy.allocation import plan_one_shot
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.conversions import ROUNDING
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import LedgerRun, held_by_runs
from private_gsd.privacy.noise import selection_scale
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.runs.release import Release
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.system import durable_files
from private_gsd.system.untrusted_files import seal
from private_gsd.workloads import Workload
from private_gsd.workloads.specs import default_specs, workload_of
from tests.releases import document_of, reopen, rewrite

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "tenure"])
TABLE = datasets.census(800, seed=2).select(SCHEMA.names)
SMALL: dict[str, Any] = {"rows": 60, "threads": 1, "mechanism": "one-shot"}
LAYERED: dict[str, Any] = {**SMALL, "mechanism": "layered", "workload": ["categorical:3"]}
ADAPTIVE: dict[str, Any] = {
    **SMALL,
    "mechanism": "adaptive",
    "epochs": 3,
    "groups": 2,
    "workload": ["categorical:2", "tree:2:3"],
}


def test_one_line_gives_a_private_table() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    table = synth.sample()
    assert table.num_rows == 60
    assert table.schema == TABLE.schema
    record = synth.release_.privacy
    assert record["private"] is True
    assert record["spent"]["epsilon"] == pytest.approx(1.0)
    assert record["delta"] == 1 / 800**2
    assert synth.release_.complete


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "file"])
def test_the_kind_of_frame_comes_back(kind: str, tmp_path: Path) -> None:
    data: Any = {"pandas": TABLE.to_pandas(), "polars": pl.from_arrow(TABLE)}.get(kind, TABLE)
    if kind == "file":
        data = tmp_path / "table.csv"
        pyarrow.csv.write_csv(TABLE, data)
    frame = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(data).sample(7)
    assert len(frame) == 7
    if kind == "pandas":
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.columns) == list(SCHEMA.names)
    if kind == "polars":
        assert isinstance(frame, pl.DataFrame)
        assert frame.columns == list(SCHEMA.names)


def test_samples_of_any_size() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    whole = synth.release_.synthetic.to_pylist()
    fewer = synth.sample(20).to_pylist()
    assert all(fewer.count(row) <= whole.count(row) for row in fewer)
    more = synth.sample(150).to_pylist()
    assert len(more) == 150
    assert all(2 * whole.count(row) <= more.count(row) <= 3 * whole.count(row) for row in whole)
    assert synth.sample(20).equals(synth.sample(20))
    with pytest.raises(WorkloadError, match="number must be a whole number from 1"):
        synth.sample(0)


def test_adaptive_measures_what_is_worst(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=100.0, **ADAPTIVE).fit(TABLE, release=tmp_path / "r")
    release = synth.release_
    measured = release.measurements()
    assert measured is not None
    assert measured.workload.num_groups == 6
    chosen = [group for epoch in release.selections() for group in epoch]
    assert len(set(chosen)) == 6
    names = sorted(release.workload.describe(group) for group in chosen)
    assert names == sorted(map(measured.workload.describe, range(6)))
    charges = release.privacy["charges"]
    assert [charge["run"].split(" ", 1)[1] for charge in charges] == [
        f"epoch {epoch}: {step}" for epoch in (1, 2, 3) for step in ("select", "measure")
    ]
    # The table fits what was measured: errors are of the size that 60 rows allow.
    shares = count(measured.workload, release.matrix) / 60
    assert np.abs(shares - measured.shares).mean() < 0.01


def test_how_an_adaptive_budget_is_split() -> None:
    workload = workload_of(SCHEMA, ["categorical:2"])
    budget = RhoBudget.from_rho(1.0, delta=1e-6)
    units, parts = adaptive_units(Mechanism(name="adaptive", epochs=2, groups=3), workload, budget)
    each = budget.units // 12
    assert units == [pytest.approx(3 * each, abs=2)] * 2
    assert parts == [[pytest.approx(each, abs=2)] * 3] * 2
    assert 0 <= budget.units - sum(units) - sum(map(sum, parts)) < 12
    tenth = Mechanism(name="adaptive", epochs=2, groups=3, split="tenth")
    units, parts = adaptive_units(tenth, workload, budget)
    assert sum(units) == pytest.approx(budget.units / 10, rel=1e-9)
    # No more epochs than there are groups to measure, and the last may be smaller.
    many = Mechanism(name="adaptive", epochs=50, groups=4)
    assert [len(part) for part in adaptive_units(many, workload, budget)[1]] == [4, 2]


def noise_of(workload: Workload, budget: RhoBudget) -> float:
    return max(share.scale for share in plan_one_shot(workload, budget).shares)


def test_auto_chooses_a_mechanism_from_public_facts() -> None:
    """Layered where three columns are asked together, one-shot elsewhere."""
    for specs, name in (
        (["categorical:2"], "one-shot"),
        (["categorical:3"], "layered"),
    ):
        assert choose_mechanism(workload_of(SCHEMA, specs)).name == name
    cases: list[tuple[float, list[str] | None, str]] = [
        (10.0, ["categorical:2"], "one-shot"),
        (0.02, ["categorical:3"], "layered"),
        (0.02, None, "one-shot"),
    ]
    for epsilon, asked, name in cases:
        synth = Synthesizer(SCHEMA, epsilon, workload=asked, rows=60)
        assert synth.fit(TABLE).release_.settings["mechanism"] == name


def test_auto_chooses_questions_from_public_facts() -> None:
    """Triples, pairs or single columns, by the noise that they would have."""
    schema, budget = datasets.census_schema(), RhoBudget.from_epsilon(1.0, 1e-6)
    singles, pairs, triples = (default_specs(schema, k) for k in (1, 2, 3))
    assert (singles[0], pairs[2], triples[0]) == ("categorical:1", "numeric:2", "categorical:3")
    on_triples = noise_of(workload_of(schema, triples), budget)
    assert choose_specs(schema, budget, int(on_triples * 51)) == triples
    assert choose_specs(schema, budget, int(on_triples * 49)) == pairs
    on_pairs = noise_of(workload_of(schema, pairs), budget)
    assert choose_specs(schema, budget, int(on_pairs * 5.1)) == pairs
    assert choose_specs(schema, budget, int(on_pairs * 4.9)) == singles
    # The same of neighbouring tables: the number of rows is all that is looked at.
    few = Synthesizer(SCHEMA, 0.01, rows=60).fit(TABLE)
    many = Synthesizer(SCHEMA, 50.0, rows=60).fit(TABLE)
    assert few.release_.workload.size < many.release_.workload.size


def test_many_triples_are_not_asked_by_default() -> None:
    wide = Schema([Boolean(f"b{number}") for number in range(30)])
    assert not few_triples(wide)
    assert few_triples(Schema(wide.columns[:19]))  # 969 of them
    large = [Categorical(f"c{number}", values=[str(v) for v in range(102)]) for number in range(3)]
    assert not few_triples(Schema(large))
    assert not few_triples(Schema(wide.columns[:2]))
    generous = RhoBudget.from_epsilon(100.0, 1e-6)
    assert choose_specs(wide, generous, 10**9) == ["categorical:2"]


class Killed(BaseException):
    """What a killed process would have done."""


def durable_steps(monkeypatch: pytest.MonkeyPatch, kill_at: int) -> list[str]:
    """Die before (even numbers) or after (odd ones) a step that leaves something on the disk."""
    steps: list[str] = []

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            number = 2 * len(steps)
            steps.append(name)
            if number == kill_at:
                raise Killed
            result = real(*arguments, **options)
            if number + 1 == kill_at:
                raise Killed
            return result

        return step

    write = durable_files.write
    monkeypatch.setattr(durable_files, "write", watched("write", write))
    monkeypatch.setattr(LedgerRun, "charge", watched("charge", LedgerRun.charge))
    monkeypatch.setattr(LedgerRun, "keep", watched("keep", LedgerRun.keep))
    monkeypatch.setattr(LedgerRun, "begin", watched("begin", LedgerRun.begin))
    return steps


def outcome(folder: Path, ledger: Path) -> tuple[Any, ...]:
    """All that a run leaves that does not tell the time; and that no draw is left beside it."""
    release = Release.load(folder)
    assert not list(folder.rglob("*.tmp"))
    assert len(list((folder / "measurements").iterdir())) == 2
    measured = release.measurements()
    assert measured is not None
    with Ledger(ledger, create=True) as opened:
        charges = [(c.units, c.mechanism, c.groups) for c in opened.charges("table")]
    return release.synthetic.to_pylist(), measured.counts.tolist(), release.selections(), charges


@pytest.mark.parametrize(
    "settings", [SMALL, LAYERED, ADAPTIVE], ids=["one-shot", "layered", "adaptive"]
)
def test_a_run_killed_at_any_step_goes_on_as_if_it_was_not(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """The same table, the same measurements, and a ledger with each charge once."""
    data = tmp_path / "table.csv"
    pyarrow.csv.write_csv(TABLE, data)

    def fit(folder: Path) -> None:
        fitted(
            SCHEMA,
            1.0,
            str(data),
            release=folder,
            ledger=folder.with_suffix(".db"),
            create_ledger=True,
            insecure_noise_seed=5,
            **settings,
        )

    fit(tmp_path / "whole")
    expected = outcome(tmp_path / "whole", tmp_path / "whole.db")
    kill_at, unfinished, resumed = 0, True, 0
    while unfinished:
        folder = tmp_path / f"killed-{kill_at}"
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                fit(folder)
                unfinished = False
            except Killed:
                pass
        if unfinished:
            if (folder / "release.json").exists():
                with pytest.MonkeyPatch.context() as patch:  # once more, soon after
                    durable_steps(patch, 3)
                    try:
                        Synthesizer.resume(folder)
                    except Killed:
                        Synthesizer.resume(folder)
                resumed += 1
            else:
                fit(folder)  # killed before anything was there to go on with
            assert outcome(folder, folder.with_suffix(".db")) == expected
        kill_at += 1
    assert resumed > 10


@pytest.mark.denoised
def test_a_smoothed_run_goes_on_to_the_same_table(tmp_path: Path) -> None:
    def fit(folder: Path, kill_at: int) -> list[str]:
        options: dict[str, Any] = {"release": folder, "insecure_noise_seed": 5, **SMALL}
        with pytest.MonkeyPatch.context() as patch:
            steps = durable_steps(patch, kill_at)
            fitted(SCHEMA, 1.0, TABLE, **options)
        return steps

    steps = fit(tmp_path / "whole", kill_at=-1)
    expected = outcome(tmp_path / "whole", tmp_path / "whole.ledger.db")
    for kill_at in (len(steps), 2 * len(steps) - 1):
        with pytest.raises(Killed):
            fit(tmp_path / str(kill_at), kill_at)
        Synthesizer.resume(tmp_path / str(kill_at), TABLE)
        assert outcome(tmp_path / str(kill_at), tmp_path / f"{kill_at}.ledger.db") == expected


@pytest.mark.parametrize("settings", [SMALL, ADAPTIVE], ids=["one-shot", "adaptive"])
def test_no_second_draw_is_left_under_one_charge(settings: dict[str, Any], tmp_path: Path) -> None:
    """With real noise: one draw a charge on the disk, and what was selected is measured."""
    for kill_at in range(60):
        folder = tmp_path / str(kill_at)
        synth = Synthesizer(SCHEMA, epsilon=0.3, **settings)  # FIT release=folder
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                synth.fit(TABLE)
                break
            except Killed:
                pass
        if not (folder / "release.json").exists():
            continue
        kept = Release.load(folder).selections()
        Synthesizer.resume(folder, TABLE)
        release = Release.load(folder)
        assert release.selections()[: len(kept)] == kept
        arrays = list((folder / "measurements").glob("arrays-*"))
        assert len(arrays) == 1
        assert not list(folder.rglob("*.tmp"))
        charges = release.privacy["charges"]
        runs = [charge["run"] for charge in charges]
        assert len(set(runs)) == len(runs)
        measured = release.measurements()
        assert measured is not None
        ids = {str(charge["id"]) for charge in charges if charge["run"].endswith("measure")}
        assert set(measured.charges) == ids
        groups = [group for c in charges if c["run"].endswith("measure") for group in c["groups"]]
        if settings is ADAPTIVE:
            names = [release.workload.describe(g) for epoch in release.selections() for g in epoch]
            assert sorted(groups) == sorted(names)


def killed_after_the_charge(folder: Path, **settings: Any) -> None:
    """A run that has paid for measurements and kept none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RunFolder, "save_measurements", lambda *arguments: (_ for _ in ()).throw(Killed())
        )
        with pytest.raises(Killed):
            fitted(SCHEMA, 1.0, TABLE, release=folder, **settings)


@pytest.mark.parametrize("given", [True, False], ids=["given", "own"])
def test_of_two_copies_of_a_run_one_goes_on(given: bool, tmp_path: Path) -> None:
    """Whichever is first; the other would draw again under the same charge."""
    ledger = {"ledger": tmp_path / "l.db", "create_ledger": True} if given else {}
    for settings in (SMALL, ADAPTIVE):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        killed_after_the_charge(tmp_path / "one", **ledger, **settings)
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        assert Synthesizer.resume(tmp_path / "two", TABLE).release_.complete
        with pytest.raises(LedgerError, match="was drawn and kept, and is not in the release"):
            Synthesizer.resume(tmp_path / "one", TABLE)


def test_two_processes_that_draw_for_one_charge(tmp_path: Path) -> None:
    """The last to begin may keep what it drew; the other throws it away, and says so."""
    killed_after_the_charge(tmp_path / "one", ledger=tmp_path / "l.db", create_ledger=True, **SMALL)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    real = RunFolder.save_measurements

    def meanwhile(release: Release, *arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunFolder, "save_measurements", real)
            Synthesizer.resume(tmp_path / "two", TABLE)
        real(release, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_measurements", meanwhile)
        with pytest.raises(LedgerError, match="another process goes on with run"):
            Synthesizer.resume(tmp_path / "one", TABLE)
    assert not list((tmp_path / "one" / "measurements").iterdir())
    assert Release.load(tmp_path / "two").complete
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        assert len(ledger.charges("table")) == 1


def test_a_kill_between_taking_down_and_showing(tmp_path: Path) -> None:
    """What the ledger knows as kept is shown when the run goes on, and not drawn again."""
    real = durable_files.move

    def dying(path: Path, target: Path) -> None:
        if path.suffix == ".pending":
            raise Killed
        real(path, target)

    for settings in (SMALL, ADAPTIVE):
        folder = tmp_path / settings["mechanism"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durable_files, "move", dying)
            with pytest.raises(Killed):
                fitted(SCHEMA, 1.0, TABLE, release=folder, **settings)
        [pending] = folder.rglob("*.pending")
        content = pending.read_bytes()
        Synthesizer.resume(folder, TABLE)
        assert not list(folder.rglob("*.pending"))
        if settings is SMALL:
            assert (folder / "measurements" / "measurements.json").read_bytes() == content
        else:
            first = json.loads(content)["epochs"][0]
            assert Release.load(folder).selections()[0] == first


def test_what_a_run_will_need_is_held_for_it(tmp_path: Path) -> None:
    """Another run cannot spend it, and so a run that was killed can always go on."""
    ledger, delta = tmp_path / "l.db", 1 / 800**2
    settings = {**ADAPTIVE, "ledger": ledger}
    with Ledger(ledger, create=True) as opened:
        opened.add_dataset("table", RhoBudget.from_epsilon(1.0, delta))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            fitted(SCHEMA, 0.9, TABLE, release=tmp_path / "r", **settings)
    with Ledger(ledger, create=True) as opened:
        account = opened.account("table")
        assert 0 < account.spent < account.held
        assert account.remaining == account.budget.units - account.spent - account.held
        assert len(held_by_runs(opened, "table")) == 1
    with pytest.raises(BudgetError, match="is held for runs not finished"):
        fitted(SCHEMA, 0.5, TABLE, **settings)
    assert Synthesizer.resume(tmp_path / "r", TABLE).release_.complete
    with Ledger(ledger, create=True) as opened:
        assert opened.account("table").held == 0
        assert held_by_runs(opened, "table") == []


def test_a_run_that_gave_back_what_it_held(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    settings = {**ADAPTIVE, "ledger": ledger, "create_ledger": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            fitted(SCHEMA, 1.0, TABLE, release=tmp_path / "r", **settings)
    with Ledger(ledger, create=True) as opened:
        held = opened.account("table").held
        run = LedgerRun(opened, "table", Release.load(tmp_path / "r").run["run"], "me")
        assert run.give_back() == held
        assert run.give_back() == 0
        assert opened.account("table").held == 0
        with pytest.raises(LedgerError, match="no run 'other'"):
            LedgerRun(opened, "table", "other", "me").give_back()
    with pytest.raises(LedgerError, match="has given back what it held"):
        Synthesizer.resume(tmp_path / "r", TABLE)
    assert fitted(SCHEMA, 0.2, TABLE, **settings).release_.complete


def test_a_ledger_and_a_release_of_different_ages(tmp_path: Path) -> None:
    """Found out before anything more is charged."""
    folder, ledger = tmp_path / "r", tmp_path / "l.db"
    settings = {**ADAPTIVE, "ledger": ledger, "create_ledger": True}

    def until(epoch: int) -> None:
        def keep(release: Release, number: int, table: Any) -> None:
            real(release, number, table)
            if number == epoch:
                raise Killed

        real = RunFolder.save_table
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            patch.setattr(RunFolder, "save_table", keep)
            if folder.exists():
                Synthesizer.resume(folder, TABLE)
            else:
                fitted(SCHEMA, 1.0, TABLE, release=folder, **settings)

    until(0)
    shutil.copy(ledger, tmp_path / "older.db")
    shutil.copytree(folder, tmp_path / "older")
    until(1)
    shutil.copy(ledger, tmp_path / "newer.db")
    shutil.copy(tmp_path / "older.db", ledger)
    with pytest.raises(LedgerError, match="does not know what paid for the epochs"):
        Synthesizer.resume(folder, TABLE)
    with Ledger(ledger, create=True) as opened:
        assert len(opened.charges("table")) == 2
    shutil.copy(tmp_path / "newer.db", ledger)
    with pytest.raises(LedgerError, match="was drawn and kept, and is not in the release"):
        Synthesizer.resume(tmp_path / "older", TABLE)
    assert Synthesizer.resume(folder, TABLE).release_.complete


def test_a_ledger_in_the_release_is_refused(tmp_path: Path) -> None:
    """It would leave the house, and be put back, with the folder."""
    folder = tmp_path / "r"
    with pytest.raises(LedgerError, match="is in the release, and would leave with it"):
        Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=folder, ledger=folder / "l.db")
    killed_after_the_charge(folder, **SMALL)
    inside = folder / "moved.db"
    (tmp_path / "r.ledger.db").rename(inside)
    with pytest.raises(LedgerError, match="is in the release, and would leave with it"):
        Synthesizer.resume(folder, TABLE, ledger=inside)


def test_a_wrong_ledger_is_not_remembered(tmp_path: Path) -> None:
    killed_after_the_charge(tmp_path / "r", **SMALL)
    with Ledger(tmp_path / "other.db", create=True) as ledger:
        ledger.add_dataset("another", RhoBudget.from_epsilon(1.0, 1e-6))
    with pytest.raises(LedgerError, match="no dataset"):
        Synthesizer.resume(tmp_path / "r", TABLE, ledger=tmp_path / "other.db")
    assert Synthesizer.resume(tmp_path / "r", TABLE).release_.complete


def test_a_ledger_that_a_discarded_run_left(tmp_path: Path) -> None:
    """Its terms are those of the dataset, whoever made it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LedgerRun, "begin", killing)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "r")
    assert (tmp_path / "r.ledger.db").exists()
    again = Synthesizer(SCHEMA, Budget(1.0, delta=1e-9), **SMALL)  # FIT release=tmp_path / "r"
    with pytest.raises(LedgerError, match="if nothing was released through this ledger, remove it"):
        again.fit(TABLE)


def test_an_old_pending_file_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    pending = folder / "measurements" / ".measurements.json.pending"
    kept: list[bytes] = []
    real = RunFolder.save_table

    def watched(release: Release, epoch: int, table: Any) -> None:
        kept.append((folder / "measurements" / "measurements.json").read_bytes())
        real(release, epoch, table)
        if epoch == 1:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", watched)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, **ADAPTIVE).fit(TABLE, release=folder)
    pending.write_bytes(kept[0])
    assert Synthesizer.resume(folder, TABLE).release_.complete


def test_a_ledger_whose_word_was_lost_on_the_way(tmp_path: Path) -> None:
    """The digest is taken down, and the answer is an error: the draw is kept all the same."""
    real = LedgerRun.keep

    def failing(run: LedgerRun, step: str, digest: str) -> None:
        real(run, step, digest)
        raise LedgerError("the disk could not be read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LedgerRun, "keep", failing)
        with pytest.raises(LedgerError, match="could not be read"):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "r")
    assert Synthesizer.resume(tmp_path / "r").release_.complete


@pytest.mark.parametrize("name", ["schema.toml", "workload.json", "workload.npz"])
def test_a_run_does_not_go_on_about_something_else(name: str, tmp_path: Path) -> None:
    killed_after_the_charge(tmp_path / "r", **SMALL)
    path = tmp_path / "r" / name
    good = path.read_bytes()
    path.write_bytes(good.replace(b"female", b"Female") + b" ")
    with pytest.raises(ReleaseError, match="was changed or is torn"):
        Synthesizer.resume(tmp_path / "r", TABLE)
    path.write_bytes(good)
    assert Synthesizer.resume(tmp_path / "r", TABLE).release_.complete


def test_a_run_that_was_moved_with_its_ledger(tmp_path: Path) -> None:
    killed_after_the_charge(tmp_path / "r", **SMALL)
    (tmp_path / "other").mkdir()
    for path in [*tmp_path.glob("r*")]:
        path.rename(tmp_path / "other" / path.name)
    folder = tmp_path / "other" / "r"
    with pytest.raises(LedgerError, match="is gone; put it back, or say where it is"):
        Synthesizer.resume(folder, TABLE)
    ledger = tmp_path / "other" / "r.ledger.db"
    assert Synthesizer.resume(folder, TABLE, ledger=ledger).release_.complete


def test_resume_makes_no_ledger_by_a_wrong_name(tmp_path: Path) -> None:
    """Nor does a run that was told of one that is gone before it was opened."""
    folder = tmp_path / "r"
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(1.0, 1e-6, "gdp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("private_gsd.runs.runner.Ledger", lambda *_, **__: killing())
        patch.setattr("private_gsd.synthesis.synthesizer._has_begun", lambda *_: True)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 0.5, **SMALL).fit(TABLE, release=folder, ledger=tmp_path / "l.db")
    with pytest.raises(LedgerError, match=r"legder\.db: no such ledger"):
        Synthesizer.resume(folder, TABLE, ledger=tmp_path / "legder.db")
    for path in tmp_path.glob("l.db*"):
        path.rename(tmp_path / path.name.replace("l.db", "moved.db"))
    with pytest.raises(LedgerError, match=r"l\.db: no such ledger"):
        Synthesizer.resume(folder, TABLE)
    assert not list(tmp_path.glob("le*")) + list(tmp_path.glob("l.db*"))
    made = Synthesizer.resume(folder, TABLE, ledger=tmp_path / "moved.db").release_
    assert made.privacy["this_release_alone"] is False


def test_a_release_says_whether_it_is_counted_alone(tmp_path: Path) -> None:
    """Also if its own ledger was moved, or another run had charged it before."""
    killed_after_the_charge(tmp_path / "r", **SMALL)
    (tmp_path / "r.ledger.db").rename(tmp_path / "moved.db")
    made = Synthesizer.resume(tmp_path / "r", TABLE, ledger=tmp_path / "moved.db").release_
    assert made.privacy["this_release_alone"] is True
    with Ledger(tmp_path / "s.ledger.db", create=True) as ledger:
        budget = RhoBudget.from_epsilon(2.0, 1 / 800**2, "gdp")
        ledger.add_dataset("table", budget)
        units = budget.units // 4
        ledger.charge("table", units, mechanism="discrete gaussian", groups=["g"], run="other")
    with_others = Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "s").release_
    assert with_others.privacy["this_release_alone"] is False


def test_the_ledgers_terms_are_the_runs(tmp_path: Path) -> None:
    """What was asked for is what is stated: at the ledger's delta."""
    ledger = tmp_path / "l.db"
    with Ledger(ledger, create=True) as opened:
        opened.add_dataset("table", RhoBudget.from_epsilon(1.0, 1e-9))
    fitted = Synthesizer(SCHEMA, 0.5, rows=60).fit(TABLE, ledger=ledger)
    record = fitted.release_.privacy
    assert record["spent"]["epsilon"] == pytest.approx(0.5, rel=1e-6)
    assert record["delta"] == fitted.release_.settings["delta"] == 1e-9
    assert record["conversion"] == fitted.release_.settings["conversion"] == "zcdp"
    terms: dict[str, Any] = {"delta": 1e-6, "conversion": "paper"}
    for name, value in terms.items():
        with pytest.raises(LedgerError, match=f"has {name}"):
            fitted(SCHEMA, 0.1, TABLE, rows=60, ledger=ledger, **{name: value})


@pytest.mark.parametrize(
    ("settings", "conversion"),
    [
        ({}, "gdp"),
        ({"mechanism": "layered"}, "gdp"),
        ({"conversion": "zcdp"}, "zcdp"),
        ({"mechanism": "adaptive", "epochs": 2}, "zcdp"),
        ({"mechanism": "mst"}, "zcdp"),
    ],
)
def test_the_conversion_is_the_best_that_the_noise_allows(
    settings: dict[str, Any], conversion: str, tmp_path: Path
) -> None:
    synth = fitted(SCHEMA, 1.0, TABLE, release=tmp_path / "r", **SMALL | settings)
    record = synth.release_.privacy
    assert record["conversion"] == synth.release_.settings["conversion"] == conversion
    assert record["total"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert record["spent"]["epsilon"] <= 1.0
    assert ("since its noise is Gaussian" in record["guarantee"]) == (conversion == "gdp")
    assert synth.conversion == settings.get("conversion")  # as it was given, for the next fit
    again = Synthesizer.resume(tmp_path / "r")
    assert again.conversion == conversion


def test_less_noise_for_the_same_epsilon() -> None:
    noise = []
    for conversion in ("zcdp", "gdp"):
        plan = Synthesizer(SCHEMA, Budget(1.0, conversion=conversion)).plan(TABLE)
        noise.append(plan.budget.rho)
    assert 0.92 < math.sqrt(noise[0] / noise[1]) < 0.96


def test_other_noise_is_not_stated_by_the_gaussians_curve(tmp_path: Path) -> None:
    """Refused before the table is looked at, with a ledger and without."""
    adaptive: dict[str, Any] = {"mechanism": "adaptive", "epochs": 2}
    with pytest.raises(BudgetError, match="'adaptive' selects with other noise; use one-shot"):
        fitted(SCHEMA, Budget(1.0, conversion="gdp"), object(), **adaptive)
    ledger = tmp_path / "l.db"
    Synthesizer(SCHEMA, 0.5, rows=60).fit(TABLE, ledger=ledger, create_ledger=True)
    with Ledger(ledger, read_only=True) as opened:
        before = opened.charges("table")
    words = f"{ledger}: dataset 'table' has the conversion 'gdp', which is of Gaussian noise"
    with pytest.raises(BudgetError, match=re.escape(words)):
        fitted(SCHEMA, 0.1, object(), rows=60, ledger=ledger, **adaptive)
    with Ledger(ledger, read_only=True) as opened:
        assert opened.charges("table") == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run.json", b"{}", "run.json: cannot be read: was changed or is torn"),
        ("run.json", seal({}), "run.json is damaged: 'run'"),
        ("run.json", seal({"run": 1}), "run.json is damaged: 'run'"),
        ("run.json", b"[" * 100_000, "run.json: cannot be read"),
        ("release.json", b"[" * 100_000, "release.json: cannot be read"),
        ("table-0.npy", b"torn", "table-0.npy: was changed or is torn"),
        ("table-0.npy", b"", "table-0.npy: was changed or is torn"),
    ],
)
def test_files_that_are_damaged(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "finish", killing)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=folder)
    (folder / name).write_bytes(content)
    with pytest.raises(ReleaseError, match=re.escape(message)):
        Synthesizer.resume(folder, TABLE)


def test_a_synthetic_table_that_is_torn_or_gone(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    release = Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=folder).release_
    path = folder / "synthetic.parquet"
    good = path.read_bytes()
    pyarrow.parquet.write_table(release.synthetic.slice(0, 7), path)
    with pytest.raises(ReleaseError, match="was changed or is torn"):
        release.synthetic  # noqa: B018
    path.write_bytes(good[:100])
    with pytest.raises(ReleaseError, match="was changed or is torn"):
        Synthesizer.resume(folder).sample()
    path.unlink()
    with pytest.raises(ReleaseError, match="has no synthetic table yet"):
        release.synthetic  # noqa: B018
    assert Synthesizer.resume(folder).sample().num_rows == 60
    assert path.read_bytes() == good
    (folder / "privacy.json").write_text("{}")
    with pytest.raises(ReleaseError, match=r"privacy\.json: was changed or is torn"):
        release.privacy  # noqa: B018


def test_a_backup_put_back_does_not_draw_again(tmp_path: Path) -> None:
    """The folder is the same one, and the ledger knows that its charge was used."""
    folder, backup = tmp_path / "r", tmp_path / "backup"
    killed_after_the_charge(folder, ledger=tmp_path / "l.db", create_ledger=True, **SMALL)
    shutil.copytree(folder, backup)
    Synthesizer.resume(folder, TABLE).release_.save(tmp_path / "first")
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(backup, folder, dirs_exist_ok=True)
    with pytest.raises(LedgerError, match="was drawn and kept, and is not in the release"):
        Synthesizer.resume(folder, TABLE)


def test_measurements_that_were_kept_and_lost(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed) as caught:
            Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)
    assert caught.value.__notes__ == [f"go on with: private-gsd resume {folder}"]
    document = folder / "measurements" / "measurements.json"
    good = document.read_bytes()
    document.write_bytes(good[:-3])
    with pytest.raises(MeasurementError, match=r"measurements\.json cannot be read"):
        Synthesizer.resume(folder, TABLE)
    shutil.copytree(folder / "measurements", tmp_path / "kept")
    shutil.rmtree(folder / "measurements")
    with pytest.raises(LedgerError, match="was drawn and kept, and is not in the release"):
        Synthesizer.resume(folder, TABLE)
    shutil.copytree(tmp_path / "kept", folder / "measurements")
    document.write_bytes(good)
    assert Synthesizer.resume(folder).release_.complete


def test_a_temporary_release_outlives_a_failure_after_the_charge(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed) as caught:
            Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(
                TABLE, ledger=tmp_path / "l.db", create_ledger=True
            )
    [note] = caught.value.__notes__
    folder = Path(note.split()[-1])
    assert Synthesizer.resume(folder).release_.complete
    shutil.rmtree(folder.parent)


def test_auto_keeps_its_split_when_it_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    killed_after_the_charge(folder, rows=60, split="tenth", workload=["categorical:3"])
    assert Release.load(folder).settings["split"] == "tenth"
    assert Synthesizer.resume(folder, TABLE).release_.complete


def test_a_ledger_that_is_gone(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    killed_after_the_charge(tmp_path / "r", ledger=ledger, create_ledger=True, **SMALL)
    for path in tmp_path.glob("l.db*"):
        path.unlink()
    with pytest.raises(LedgerError, match="the ledger that the run has paid is gone"):
        Synthesizer.resume(tmp_path / "r", TABLE)


def test_a_ledger_that_does_not_know_the_charges(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(
                TABLE, release=folder, ledger=tmp_path / "l.db", create_ledger=True
            )
    for path in tmp_path.glob("l.db*"):
        path.unlink()
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(1.0, 1 / 800**2, "gdp"))
    with pytest.raises(LedgerError, match="does not know what paid for the measurements"):
        Synthesizer.resume(folder)
    assert not Release.load(folder).complete


@pytest.mark.parametrize("lost", ["selections.json", "measurements"])
def test_files_that_are_lost_are_not_drawn_again(lost: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    calls = []

    def dies_later(release: Release, epoch: int, table: Any) -> None:
        calls.append(epoch)
        if epoch == 1:
            raise Killed
        real(release, epoch, table)

    real = RunFolder.save_table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", dies_later)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, **ADAPTIVE).fit(TABLE, release=folder)
    if lost == "measurements":
        shutil.rmtree(folder / lost)
    else:
        (folder / lost).unlink()
    with pytest.raises(MeasurementError, match="do not fit together"):
        Synthesizer.resume(folder, TABLE)


def test_a_folder_with_other_things_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)
    (folder / "release.json").unlink()
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)


@pytest.mark.parametrize("name", ["schema.toml", "external/measurements.json", "run.json"])
def test_files_of_the_user_that_are_called_as_ours(name: str, tmp_path: Path) -> None:
    """They are not taken for what a killed run left, and neither replaced nor removed."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("the user's own")
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=tmp_path)
    assert file.read_text() == "the user's own"


def test_temporary_files_of_the_user_stay(tmp_path: Path) -> None:
    (tmp_path / ".notes.tmp").write_text("the user's own")
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=tmp_path)
    made = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE).release_
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "schema.toml").write_text("the user's own")
    with pytest.raises(ReleaseError, match="is not empty"):
        made.save(tmp_path / "other")
    assert (tmp_path / "other" / "schema.toml").read_text() == "the user's own"


def test_a_ledger_in_the_release_by_way_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    settings = {"ledger": tmp_path / "real" / "r" / "l.db", "create_ledger": True, **SMALL}
    with pytest.raises(LedgerError, match="is in the release"):
        fitted(SCHEMA, 1.0, TABLE, release=tmp_path / "link" / "r", **settings)


def test_a_ledger_that_cannot_pay_for_the_whole_run(tmp_path: Path) -> None:
    """An adaptive run is not begun that could not be finished."""
    delta = 1 / 800**2
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(0.6, delta))
    with pytest.raises(BudgetError, match="was asked for"):
        Synthesizer(SCHEMA, 1.0, **ADAPTIVE).fit(TABLE, ledger=tmp_path / "l.db")
    with pytest.raises(LedgerError, match=r"no dataset 'tabel' \(did you mean 'table'"):
        Synthesizer(SCHEMA, 0.1, **SMALL).fit(TABLE, ledger=tmp_path / "l.db", dataset="tabel")
    with Ledger(tmp_path / "l.db", create=True) as ledger:
        assert ledger.charges("table") == []


@pytest.mark.parametrize("settings", [SMALL, ADAPTIVE], ids=["one-shot", "adaptive"])
def test_a_disk_that_is_full(settings: dict[str, Any], tmp_path: Path) -> None:
    """At any write: one clear error, and the run goes on when there is room again."""
    real = durable_files.write
    for full_at in range(40):
        folder = tmp_path / str(full_at)
        writes = []

        def write(path: Path, content: bytes) -> None:
            writes.append(path)  # noqa: B023
            if len(writes) > full_at:  # noqa: B023
                raise OSError(errno.ENOSPC, "No space left on device")
            real(path, content)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durable_files, "write", write)
            try:
                fitted(SCHEMA, 1.0, TABLE, release=folder, **settings)
                break
            except GsdError as error:
                assert "No space left on device" in str(error)
        if (folder / "release.json").exists():
            assert Synthesizer.resume(folder, TABLE).release_.complete
        else:
            fitted(SCHEMA, 1.0, TABLE, release=folder, **settings)
    assert full_at > 8


def test_one_shot_goes_on_without_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        data = tmp_path / "table.parquet"
        pyarrow.parquet.write_table(TABLE, data)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(data, release=folder)
    data.unlink()
    release = Release.load(folder)
    assert not release.complete
    with pytest.raises(ReleaseError, match="has no synthetic table yet"):
        _ = release.synthetic
    with pytest.raises(ReleaseError, match="not complete yet, and so not to be handed on"):
        release.save(tmp_path / "other")
    synth = Synthesizer.resume(folder)
    assert synth.sample().num_rows == 60
    assert len(synth.release_.privacy["charges"]) == 1


def test_an_adaptive_run_needs_the_data_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        durable_steps(patch, 20)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, **ADAPTIVE).fit(TABLE, release=folder)
    with pytest.raises(ReleaseError, match="the run still needs the table; give it again"):
        Synthesizer.resume(folder)
    with pytest.raises(ReleaseError, match="another number of rows"):
        Synthesizer.resume(folder, TABLE.slice(0, 700))
    assert Synthesizer.resume(folder, TABLE).sample().num_rows == 60


def test_a_release_is_saved_loaded_and_projected_anew(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    synth.release_.save(tmp_path / "release")
    release = Release.load(tmp_path / "release")
    names = {path.name for path in release.folder.iterdir()}
    assert names == {
        *("release.json", "schema.toml", "workload.json", "workload.npz", "measurements"),
        *("synthetic.parquet", "privacy.json"),
    }
    with pytest.raises(ReleaseError, match=r"has no run\.json"):
        _ = release.run
    assert release.synthetic.equals(synth.release_.synthetic)
    assert release.schema == SCHEMA
    measured = release.measurements()
    assert isinstance(measured, Measurements)
    # More rows, another seed: from the measurements alone.
    again = evolve(measured, GeneticSearch(rows=500), seed=9)
    assert again.table.num_rows == 500
    with pytest.raises(ReleaseError, match="holds a release already"):
        synth.release_.save(tmp_path / "release")
    with pytest.raises(ReleaseError, match="holds a release already; go on with it"):
        Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "release")


def test_seeded_noise_is_told_of_everywhere(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, 1.0, **SMALL)  # FIT insecure_noise_seed=1 release=tmp_path / "r"
    release = synth.fit(TABLE).release_
    assert release.privacy["private"] is False
    assert release.privacy["guarantee"].startswith("NONE")
    measured = release.measurements()
    assert measured is not None
    assert not measured.private


def test_no_file_of_a_release_holds_a_row_or_an_exact_count(tmp_path: Path) -> None:
    """A canary: a row that no synthetic row can be, and counts that stand out."""
    schema = Schema(
        [
            Categorical("name", values=[f"person {number:05d}" for number in range(400)]),
            Integer("pay", lower=0, upper=10**9),
            Categorical("job", values=["a", "b"]),
        ]
    )
    canary = 987_654_321
    people = pa.table(
        {
            "name": [f"person {number % 399:05d}" for number in range(5000)],
            "pay": [canary] * 5000,
            "job": ["a"] * 4321 + ["b"] * 679,
        }
    )
    folder = tmp_path / "release"
    synth = Synthesizer(
        schema, epsilon=0.01, rows=50, workload=["categorical:1", "tree:1"]
    )  # FIT release=folder insecure_noise_seed=1
    synth.fit(people)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    exact = np.array([4321], dtype=np.float64)
    for path in files:
        content = path.read_bytes()
        for secret in (str(canary).encode(), np.float64(canary).tobytes()):
            assert secret not in content, path
        # As a number of its own: digests and times may hold any four digits.
        assert not re.search(rb"(?<![0-9a-f.])4321(?![0-9a-f.])", content), path
        if path.name != "synthetic.parquet":  # compressed floats may hold any eight bytes
            assert exact.tobytes() not in content, path
    assert b"987654321" not in pickle.dumps(synth)


def test_a_pickled_synthesizer_holds_no_data() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    copy = pickle.loads(pickle.dumps(synth))
    assert copy.get_params() == synth.get_params()
    with pytest.raises(ReleaseError, match="call fit first"):
        copy.sample()


def test_a_ledger_that_is_spent_refuses(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    options: dict[str, Any] = {"ledger": ledger, "dataset": "census", **SMALL}
    fitted(SCHEMA, 1.0, TABLE, create_ledger=True, **options)
    with pytest.raises(BudgetError, match="Nothing was charged or released"):
        fitted(SCHEMA, 0.5, TABLE, **options)
    with Ledger(ledger, create=True) as opened:
        assert len(opened.charges("census")) == 1


def test_two_processes_do_not_share_a_release(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    killed_after_the_charge(folder, **SMALL)
    with (
        Release.load(folder).locked(),
        pytest.raises(ReleaseError, match="another process is working on it"),
    ):
        Synthesizer.resume(folder, TABLE)


def test_interruptions_stop_the_run_and_it_goes_on_later(tmp_path: Path) -> None:
    """A table that was not finished is not taken for one that was."""
    folder = tmp_path / "release"
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL)  # FIT release=folder insecure_noise_seed=2

    def tell(what: str, now: Any) -> None:
        if what == "searching":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        synth.fit(TABLE, tell=tell)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not Release.load(folder).complete
    again = Synthesizer.resume(folder)
    other = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, insecure_noise_seed=2)
    assert again.sample().equals(other.sample())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epsilon": 0}, BudgetError, "epsilon"),
        ({"delta": 2.0}, BudgetError, "delta"),
        ({"mechanism": "magic"}, BudgetError, "name must be 'one-shot' or 'layered' or 'adaptive'"),
        ({"split": "third"}, BudgetError, "split must be 'half' or 'tenth'"),
        ({"epochs": 0}, WorkloadError, "epochs must be a whole number"),
        ({"rows": 0}, ProjectionError, "rows must be a whole number"),
        ({"random_state": -1}, WorkloadError, "random_state must be a whole number"),
        ({"workload": ["catgorical:2"]}, WorkloadError, "did you mean 'categorical'"),
        ({"workload": ["tree:x"]}, WorkloadError, "'tree:x' should read tree:K"),
        ({"workload": []}, WorkloadError, "name at least one workload"),
        ({"workload": 5}, WorkloadError, "name at least one workload"),
        (
            {"workload": workload_of(SCHEMA.select(["sex"]), ["categorical:1"])},
            WorkloadError,
            "anot",
        ),
        ({"threads": 2000}, WorkloadError, "threads must be a whole number"),
        ({"on_invalid": "x"}, GsdError, "invalid must be 'error' or 'coerce'"),
        ({"conversion": "x"}, BudgetError, "conversion"),
        ({"epsilon": "1"}, BudgetError, "epsilon"),
        ({"insecure_noise_seed": -1}, WorkloadError, "insecure_noise_seed"),
        ({"dataset": 5}, LedgerError, "dataset must be a line of text"),
    ],
)
def test_what_is_refused_before_anything_is_spent(
    settings: dict[str, Any], error: type[GsdError], message: str, tmp_path: Path
) -> None:
    options = {"epsilon": 1.0, "create_ledger": True, **SMALL, **settings}
    synth = Synthesizer(SCHEMA, **options)  # FIT release=tmp_path / "r" ledger=tmp_path / "l.db"
    with pytest.raises(error, match=message):
        synth.fit(TABLE)
    assert list(tmp_path.iterdir()) == []  # neither a folder nor a ledger is left


def test_a_table_that_does_not_fit(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL)  # FIT release=tmp_path / "r"
    with pytest.raises(SourceError, match="missing"):
        synth.fit(TABLE.drop_columns(["age"]))
    with pytest.raises(SourceError, match=r"nothing\.csv"):
        synth.fit(str(tmp_path / "nothing.csv"))


def test_numpy_numbers_will_do() -> None:
    rows, seed, epsilon = np.int64(30), np.int64(3), np.float64(1)
    synth = Synthesizer(SCHEMA, epsilon, rows=rows, random_state=seed)  # type: ignore[arg-type]
    assert synth.fit(TABLE).sample().num_rows == 30


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    synth = Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release="r")
    monkeypatch.chdir("/")
    assert synth.sample().num_rows == 60


def test_settings_by_name() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0)
    assert synth.get_params()["rows"] is None
    assert synth.set_params(rows=50, release="here").get_params()["release"] == "here"
    with pytest.raises(ReleaseError, match="no setting is called 'row'"):
        synth.set_params(row=3)
    with pytest.raises(ReleaseError, match="call fit first"):
        _ = synth.release_


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "release.json").unlink(), "holds no release"),
        (lambda folder: (folder / "release.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "release.json").write_text("[]"), "not what a release has"),
        (lambda folder: (folder / "workload.npz").write_text(""), "workload.npz: was changed"),
        (
            lambda folder: (folder / "release.json").write_text(json.dumps({"format": "x"})),
            "expected 'private-gsd release' of version 2, found 'x'",
        ),
    ],
)
def test_folders_that_hold_no_release(
    change: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "release"
    Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)
    change(folder)
    with pytest.raises(ReleaseError, match=message):
        release = Release.load(folder)
        _ = release.workload, release.selections()


def test_workloads_by_name() -> None:
    assert default_specs(SCHEMA) == ["categorical:2", "tree:2"]
    assert default_specs(SCHEMA.select(["age"])) == ["tree:1"]
    assert default_specs(SCHEMA.select(["sex"])) == ["categorical:1"]
    every = workload_of(
        datasets.census_schema(), ["categorical:2", "tree:2:3", "prefix:5", "halfspace:7"]
    )
    assert every.size > 12
    single = workload_of(SCHEMA, ["categorical:1"])
    assert single.size == workloads.categorical_marginals(SCHEMA, 1).size


UNKNOWN: dict[str, Any] = {"neighbours": "add-remove", "delta": 1e-6, "rows": 60, "threads": 1}


@pytest.mark.parametrize("settings", [{}, {"mechanism": "adaptive", "epochs": 3}])
def test_add_remove_measures_the_number_of_rows(settings: dict[str, Any], tmp_path: Path) -> None:
    """It is paid for, noisy, and the true one is nowhere to be found."""
    folder = tmp_path / "release"
    synth = fitted(SCHEMA, 0.5, TABLE, release=folder, **UNKNOWN, **settings)
    total = synth.release_.n_records()
    measured = synth.release_.measurements()
    assert total is not None
    assert measured is not None
    assert measured.n_records == total.rows
    assert measured.neighbours == synth.release_.privacy["neighbours"] == "add-remove"
    charges = synth.release_.privacy["charges"]
    assert charges[0]["groups"] == ["number of rows"]
    budget = RhoBudget.from_epsilon(0.5, 1e-6, "zcdp" if settings else "gdp")
    assert charges[0]["units"] == pytest.approx(budget.units / 50, rel=1e-9)
    more = 0 if settings else ROUNDING
    assert total.scale == pytest.approx(math.sqrt(1 / (2 * budget.rho / 50) + more), rel=1e-6)
    spent = sum(charge["units"] for charge in charges)
    assert budget.units * (1 - 1e-9) < spent <= budget.units
    assert synth.release_.settings["people"] is None
    # A release that was handed on has it too, and the number of rows of a table with one row more
    # changes nothing in what it says of the settings.
    assert synth.release_.save(tmp_path / "copy").n_records() == total
    more = datasets.census(801, seed=2).select(SCHEMA.names)
    other = fitted(SCHEMA, 0.5, more, **UNKNOWN, **settings).release_
    assert other.settings == synth.release_.settings
    assert other.workload.size == synth.release_.workload.size


def test_the_noise_on_the_number_of_rows_is_as_large_as_it_says() -> None:
    """With 60 draws, a chi-squared test that a noise half or twice as large would always fail."""
    schema = SCHEMA.select(["sex"])
    table = TABLE.select(["sex"])
    found = []
    for _ in range(60):
        total = fitted(schema, 0.5, table, **UNKNOWN).release_.n_records()
        assert total is not None
        found.append((total.rows - TABLE.num_rows) / total.scale)
    # Of chi-squared with 60 degrees of freedom, below 26 and above 116 with probability 1e-5.
    assert 26 < sum(each**2 for each in found) < 116


@pytest.mark.parametrize("settings", [{}, {"mechanism": "adaptive", "epochs": 2}])
def test_add_remove_goes_on_after_a_kill_at_any_step(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    def fit(folder: Path) -> None:
        fitted(SCHEMA, 1.0, TABLE, release=folder, insecure_noise_seed=5, **UNKNOWN, **settings)

    fit(tmp_path / "whole")
    expected = outcome(tmp_path / "whole", tmp_path / "whole.ledger.db")
    for kill_at in range(100):
        folder = tmp_path / str(kill_at)
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                fit(folder)
                break
            except Killed:
                pass
        if (folder / "release.json").exists():
            Synthesizer.resume(folder, TABLE)
            assert outcome(folder, tmp_path / f"{kill_at}.ledger.db") == expected
    assert 20 < kill_at < 99


def test_add_remove_cannot_go_on_without_its_total(tmp_path: Path) -> None:
    """To measure it again would be to draw twice under one charge."""
    folder = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            fitted(SCHEMA, 1.0, TABLE, release=folder, **UNKNOWN)
    (folder / "n_records.json").rename(folder / "total.bak")
    with pytest.raises(MeasurementError, match="the number of rows is gone"):
        Synthesizer.resume(folder, TABLE)
    for text in ("{}", '{"rows": 0, "scale": 1, "private": true}', "[1]", '{"rows": "8"}'):
        (folder / "n_records.json").write_text(text)
        with pytest.raises(ReleaseError, match=r"total\.json"):
            Synthesizer.resume(folder, TABLE)
    (folder / "total.bak").rename(folder / "n_records.json")
    assert Synthesizer.resume(folder, TABLE).sample().num_rows == 60


def killing(*_: Any, **__: Any) -> None:
    raise Killed


def test_add_remove_needs_a_delta_and_a_ledger_of_its_kind(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="give a delta"):
        Synthesizer(SCHEMA, Budget(1.0, neighbours="add-remove")).fit(TABLE)
    with pytest.raises(BudgetError, match="neighbours must be 'replace-one' or 'add-remove'"):
        Synthesizer(SCHEMA, Budget(1.0, neighbours="both")).fit(TABLE)
    ledger = tmp_path / "ledger.db"
    Synthesizer(SCHEMA, 1.0, rows=60).fit(TABLE, ledger=ledger, create_ledger=True)
    with pytest.raises(LedgerError, match="has neighbours 'replace-one', not 'add-remove'"):
        fitted(SCHEMA, 1.0, TABLE, ledger=ledger, **UNKNOWN)


def test_rows_by_the_noise() -> None:
    """Sixty within a standard deviation of the least noise, from 5,000 to 20,000."""
    asked = workload_of(SCHEMA, ["categorical:2", "categorical:3"])
    budget = RhoBudget.from_epsilon(1.0, 1e-9)
    noise = plan_one_shot(asked, budget).shares[0].scale
    layered = Mechanism(name="layered")
    for share, rows in ((1 / 50, 5000), (1 / 200, 12_000), (1 / 10_000, 20_000)):
        people = round(noise / share)
        assert choose_rows(Mechanism(), asked, budget, people) == rows
        # Pairs have most of the budget.
        assert choose_rows(layered, asked, budget, people) >= rows
        for name in ("adaptive", "mst", "aim"):
            assert choose_rows(Mechanism(name=name), asked, budget, people) == 5000
    assert choose_rows(Mechanism(), asked, budget, None) == 5000


def test_default_rows_are_planned_made_and_resumed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"workload": ["categorical:1"], "insecure_noise_seed": 1}
    synth = Synthesizer(SCHEMA, 5.0, **settings)  # FIT release=tmp_path / "r"
    expected = synth.plan(TABLE).rows
    assert 5000 < expected <= 20_000
    assert synth.fit(TABLE).sample().num_rows == expected
    assert synth.get_params()["rows"] is None
    settings_of = document_of(tmp_path / "r")["settings"]
    assert settings_of["rows"] == expected
    reopen(tmp_path / "r")
    for name in ("synthetic.parquet", "table-0.npy"):  # it has to search again
        (tmp_path / "r" / name).unlink()
    assert Synthesizer.resume(tmp_path / "r", TABLE).sample().num_rows == expected
    rewrite(tmp_path / "r", settings={**settings_of, "rows": None})
    with pytest.raises(ReleaseError, match=r"release.json is damaged: no 'rows'"):
        Synthesizer.resume(tmp_path / "r", TABLE)
    # The number of rows is private here, and must not show.
    private = Synthesizer(SCHEMA, Budget(5.0, delta=1e-6, neighbours="add-remove"), **settings)
    assert private.plan(TABLE, expected_rows=800).rows == 5000


def test_the_forecast_is_what_comes() -> None:
    """Its noise is that of the measurements, its errors those of noise of that scale."""
    for settings in ({}, {"mechanism": "adaptive", "epochs": 3, "groups": 2}, UNKNOWN):
        synth = Synthesizer(SCHEMA, 1.0, **{"rows": 60, "threads": 1, **settings})
        guess = 800 if settings is UNKNOWN else None
        forecast = synth.plan(TABLE, expected_rows=guess)
        measured = synth.fit(TABLE).release_.measurements()
        assert measured is not None
        noise = {group.name: group.noise for group in forecast.groups}
        for number, scale in enumerate(measured.scales):
            assert noise[measured.workload.describe(number)] == pytest.approx(scale, rel=1e-9)
        total = synth.release_.n_records()
        assert forecast.counting == (0.0 if total is None else pytest.approx(total.scale))
        rng = np.random.default_rng(1)
        group = max(forecast.groups, key=lambda each: each.queries)
        drawn = np.abs(group.noise * rng.standard_normal((4000, group.queries))) / 800
        assert drawn.mean() == pytest.approx(group.error, rel=0.02)
        assert drawn.max(axis=1).mean() == pytest.approx(group.largest, rel=0.15)
        if forecast.mechanism.name == "adaptive":
            units, _ = adaptive_units(forecast.mechanism, forecast.workload, forecast.budget)
            assert forecast.selecting == pytest.approx(selection_scale(units[0], 2))
        else:
            assert forecast.selecting == 0
        assert forecast.seconds > 0
        assert forecast.bytes > 0


def test_nobody_to_plan_for() -> None:
    with pytest.raises(SourceError, match="the table has no rows"):
        Synthesizer(SCHEMA, Budget(1.0, delta=1e-6)).plan(TABLE.slice(0, 0))


def test_what_can_be_read_once_cannot_be_planned_with() -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())
    with pytest.raises(SourceError, match="can be read only once"):
        Synthesizer(SCHEMA, 1.0).plan(reader)
    assert Synthesizer(SCHEMA, 1.0, rows=60).fit(reader).sample().num_rows == 60


def test_scikit_learn_can_clone_it() -> None:
    base = pytest.importorskip("sklearn.base")
    synth = Synthesizer(SCHEMA, 1.0, rows=60, workload=["categorical:2"])  # FIT release="somewhere"
    again = base.clone(synth)
    assert again.get_params() == synth.get_params()
    assert again is not synth


def test_a_full_disk_at_any_step(tmp_path: Path) -> None:
    """Real disks of one page to forty-four: a clear word, and on with more room to the same end."""
    command = ["unshare", "-Urm", sys.executable, "-m", "tests.full_disk_worker", str(tmp_path)]
    probe = ["unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here: a namespace of our own is not allowed")
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    runs = [json.loads(line) for line in found.stdout.splitlines()]
    assert len(runs) == 44
    assert all(run["same"] for run in runs)
    told = [run["told"] for run in runs]
    assert sum(bool(each) for each in told) > 20
    assert any("release" in each and "No space left" in each for each in told)
    assert any("ledger" in each and "full" in each for each in told)
    assert any(run["resumed"] and run["told"] for run in runs)
