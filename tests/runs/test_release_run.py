"""Runs on a release folder and a ledger: killed at any moment, and resumed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import (
    Adaptive,
    Budget,
    Layered,
)
from private_gsd.errors import (
    BudgetError,
    GsdError,
    LedgerError,
    MeasurementError,
    ReleaseError,
)
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation, open_reservations
from private_gsd.runs.release import Release
from private_gsd.runs.release_run import ReleaseRun
from private_gsd.runs.run_folder import RunFolder
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.system import durable_files
from tests.fitting import ADAPTIVE, ADD_REMOVE, LAYERED, SCHEMA, SMALL, TABLE, fitted
from tests.runs.kills import Killed, durable_steps, killed_after_the_charge, killing, outcome

ONE_SHOT_AND_ADAPTIVE = [
    pytest.param(SMALL, id="one-shot"),
    pytest.param(ADAPTIVE, id="adaptive", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(SMALL, id="one-shot"),
        pytest.param(LAYERED, id="layered", marks=pytest.mark.slow),
        pytest.param(ADAPTIVE, id="adaptive", marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_any_step_resumes_as_if_it_was_not(
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
                fit(folder)  # killed before anything was there to resume
            assert outcome(folder, folder.with_suffix(".db")) == expected
        kill_at += 1
    assert resumed > 10


def test_a_denoised_run_resumes_to_the_same_table(tmp_path: Path) -> None:
    def fit(folder: Path, kill_at: int) -> list[str]:
        options: dict[str, Any] = {"release": folder, "insecure_noise_seed": 5, **SMALL}
        del options["projector"]
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


@pytest.mark.parametrize("settings", ONE_SHOT_AND_ADAPTIVE)
def test_no_second_draw_is_left_under_one_charge(settings: dict[str, Any], tmp_path: Path) -> None:
    """With real noise: one draw a charge on the disk, and what was selected is measured."""
    for kill_at in range(60):
        folder = tmp_path / str(kill_at)
        synth = Synthesizer(SCHEMA, epsilon=0.3, **settings)
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                synth.fit(TABLE, release=folder)
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


@pytest.mark.parametrize("given", [True, False], ids=["given", "own"])
def test_of_two_copies_of_a_run_one_resumes(given: bool, tmp_path: Path) -> None:
    """Whichever is first; the other would draw again under the same charge."""
    ledger = {"ledger": tmp_path / "l.db", "create_ledger": True} if given else {}
    for settings in (SMALL, ADAPTIVE):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        killed_after_the_charge(tmp_path / "one", **ledger, **settings)
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        assert Synthesizer.resume(tmp_path / "two", TABLE).release_.complete
        with pytest.raises(LedgerError, match="was drawn and committed, and is not in the release"):
            Synthesizer.resume(tmp_path / "one", TABLE)


def test_two_processes_that_draw_for_one_charge(tmp_path: Path) -> None:
    """The last to begin may keep what it drew; the other throws it away, and says so."""
    killed_after_the_charge(tmp_path / "one", ledger=tmp_path / "l.db", create_ledger=True, **SMALL)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    real = RunFolder.save_measurements

    def meanwhile(release: RunFolder, *arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunFolder, "save_measurements", real)
            Synthesizer.resume(tmp_path / "two", TABLE)
        real(release, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_measurements", meanwhile)
        with pytest.raises(LedgerError, match="another process has resumed run"):
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
        folder = tmp_path / str(settings["rows"] + len(settings))
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
            first = json.loads(content)["selections"][0]
            assert Release.load(folder).selections()[0] == first


def test_what_a_run_will_need_is_reserved_for_it(tmp_path: Path) -> None:
    """Another run cannot spend it, and so a run that was killed can always resume."""
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
        assert 0 < account.spent < account.reserved
        assert account.remaining == account.budget.units - account.spent - account.reserved
        assert len(open_reservations(opened, "table")) == 1
    with pytest.raises(BudgetError, match="is reserved for runs not finished"):
        fitted(SCHEMA, 0.5, TABLE, **settings)
    assert Synthesizer.resume(tmp_path / "r", TABLE).release_.complete
    with Ledger(ledger, create=True) as opened:
        assert opened.account("table").reserved == 0
        assert open_reservations(opened, "table") == []


def test_a_run_whose_reservation_was_cancelled(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    settings = {**ADAPTIVE, "ledger": ledger, "create_ledger": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            fitted(SCHEMA, 1.0, TABLE, release=tmp_path / "r", **settings)
    with Ledger(ledger, create=True) as opened:
        reserved = opened.account("table").reserved
        run = Reservation(opened, "table", RunFolder.load(tmp_path / "r").run["run"], "me")
        assert run.cancel() == reserved
        assert run.cancel() == 0
        assert opened.account("table").reserved == 0
        with pytest.raises(LedgerError, match="no run 'other'"):
            Reservation(opened, "table", "other", "me").cancel()
    with pytest.raises(LedgerError, match="was cancelled"):
        Synthesizer.resume(tmp_path / "r", TABLE)
    assert fitted(SCHEMA, 0.2, TABLE, **settings).release_.complete


def test_a_ledger_and_a_release_of_different_ages(tmp_path: Path) -> None:
    """Found out before anything more is charged."""
    folder, ledger = tmp_path / "r", tmp_path / "l.db"
    settings = {**ADAPTIVE, "ledger": ledger, "create_ledger": True}

    def until(epoch: int) -> None:
        def save(release: RunFolder, number: int, table: Any) -> None:
            real(release, number, table)
            if number == epoch:
                raise Killed

        real = RunFolder.save_table
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            patch.setattr(RunFolder, "save_table", save)
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
    with pytest.raises(LedgerError, match="does not know what paid for the selections"):
        Synthesizer.resume(folder, TABLE)
    with Ledger(ledger, create=True) as opened:
        assert len(opened.charges("table")) == 2
    shutil.copy(tmp_path / "newer.db", ledger)
    with pytest.raises(LedgerError, match="was drawn and committed, and is not in the release"):
        Synthesizer.resume(tmp_path / "older", TABLE)
    assert Synthesizer.resume(folder, TABLE).release_.complete


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
        patch.setattr(Reservation, "reserve", killing)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "r")
    assert (tmp_path / "r.ledger.db").exists()
    again = Synthesizer(SCHEMA, Budget(1.0, delta=1e-9), **SMALL)
    with pytest.raises(LedgerError, match="if nothing was released through this ledger, remove it"):
        again.fit(TABLE, release=tmp_path / "r")


def test_an_old_pending_file_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    pending = folder / "measurements" / ".measurements.json.pending"
    kept: list[bytes] = []
    real = RunFolder.save_table

    def watched(release: RunFolder, epoch: int, table: Any) -> None:
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
    real = Reservation.commit

    def failing(run: Reservation, step: str, digest: str) -> None:
        real(run, step, digest)
        raise LedgerError("the disk could not be read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reservation, "commit", failing)
        with pytest.raises(LedgerError, match="could not be read"):
            Synthesizer(SCHEMA, 1.0, **SMALL).fit(TABLE, release=tmp_path / "r")
    assert Synthesizer.resume(tmp_path / "r").release_.complete


@pytest.mark.parametrize("name", ["schema.toml", "workload.json", "workload.npz"])
def test_a_run_does_not_resume_about_something_else(name: str, tmp_path: Path) -> None:
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
        patch.setattr("private_gsd.runs.release_run.Ledger", lambda *_, **__: killing())
        patch.setattr(ReleaseRun, "has_begun", True)
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


def test_a_backup_put_back_does_not_draw_again(tmp_path: Path) -> None:
    """The folder is the same one, and the ledger knows that its charge was used."""
    folder, backup = tmp_path / "r", tmp_path / "backup"
    killed_after_the_charge(folder, ledger=tmp_path / "l.db", create_ledger=True, **SMALL)
    shutil.copytree(folder, backup)
    Synthesizer.resume(folder, TABLE).release_.save(tmp_path / "first")
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(backup, folder, dirs_exist_ok=True)
    with pytest.raises(LedgerError, match="was drawn and committed, and is not in the release"):
        Synthesizer.resume(folder, TABLE)


def test_measurements_that_were_committed_and_lost(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed) as caught:
            Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, release=folder)
    assert caught.value.__notes__ == [f"resume with: private-gsd resume {folder}"]
    document = folder / "measurements" / "measurements.json"
    good = document.read_bytes()
    document.write_bytes(good[:-3])
    with pytest.raises(MeasurementError, match=r"measurements\.json cannot be read"):
        Synthesizer.resume(folder, TABLE)
    shutil.copytree(folder / "measurements", tmp_path / "kept")
    shutil.rmtree(folder / "measurements")
    with pytest.raises(LedgerError, match="was drawn and committed, and is not in the release"):
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


def test_settings_that_were_chosen_stay(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    settings = {**SMALL, "mechanism": "auto", "workload": ["categorical:3"]}
    killed_after_the_charge(folder, **settings)
    assert Release.load(folder).settings.mechanism == Layered()
    assert Synthesizer.resume(folder, TABLE).release_.complete


def test_a_ledger_that_is_gone(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    killed_after_the_charge(tmp_path / "r", ledger=ledger, create_ledger=True, **SMALL)
    for path in tmp_path.glob("l.db*"):
        path.unlink()
    with pytest.raises(LedgerError, match="the ledger that the run has paid from is gone"):
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

    def dies_later(release: RunFolder, epoch: int, table: Any) -> None:
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


@pytest.mark.parametrize("settings", ONE_SHOT_AND_ADAPTIVE)
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


def test_one_shot_resumes_without_the_data(tmp_path: Path) -> None:
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
    with pytest.raises(ReleaseError, match="not complete yet, and so not to be published"):
        release.save(tmp_path / "other")
    synth = Synthesizer.resume(folder)
    assert synth.sample().num_rows == 60
    assert len(synth.release_.privacy["charges"]) == 1


def test_an_adaptive_run_needs_the_data_to_resume(tmp_path: Path) -> None:
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


def test_two_processes_do_not_share_a_release(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    killed_after_the_charge(folder, **SMALL)
    with (
        RunFolder.load(folder).locked(),
        pytest.raises(ReleaseError, match="another process is working on it"),
    ):
        Synthesizer.resume(folder, TABLE)


def test_interruptions_stop_the_run_and_it_resumes_later(tmp_path: Path) -> None:
    """A table that was not finished is not taken for one that was."""
    folder = tmp_path / "release"
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL)

    def progress(what: str, done: float, total: float | None) -> None:
        if what == "searching":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        synth.fit(TABLE, release=folder, insecure_noise_seed=2, progress=progress)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not Release.load(folder).complete
    again = Synthesizer.resume(folder)
    other = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE, insecure_noise_seed=2)
    assert again.sample().equals(other.sample())


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"mechanism": Adaptive(epochs=2)}])
def test_add_remove_resumes_after_a_kill_at_any_step(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    def fit(folder: Path) -> None:
        others = {**ADD_REMOVE, **settings}
        fitted(SCHEMA, 1.0, TABLE, release=folder, insecure_noise_seed=5, **others)

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


def test_add_remove_cannot_resume_without_its_number_of_records(tmp_path: Path) -> None:
    """To measure it again would be to draw twice under one charge."""
    folder = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_table", killing)
        with pytest.raises(Killed):
            fitted(SCHEMA, 1.0, TABLE, release=folder, **ADD_REMOVE)
    (folder / "n_records.json").rename(folder / "n_records.bak")
    with pytest.raises(MeasurementError, match="the number of rows is gone"):
        Synthesizer.resume(folder, TABLE)
    for text in ("{}", '{"n_records": 0, "scale": 1}', "[1]", '{"n_records": "8"}'):
        (folder / "n_records.json").write_text(text)
        with pytest.raises(ReleaseError, match=r"n_records\.json"):
            Synthesizer.resume(folder, TABLE)
    (folder / "n_records.bak").rename(folder / "n_records.json")
    assert Synthesizer.resume(folder, TABLE).sample().num_rows == 60


@pytest.mark.slow
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
