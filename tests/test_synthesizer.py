"""The synthesizer: from a table to a release, killed at any moment and gone on with."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import shutil
import signal
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

from private_gsd import Categorical, Integer, Schema, datasets, measurement, workloads
from private_gsd import release as release_module
from private_gsd.answering import count
from private_gsd.errors import (
    BudgetError,
    GsdError,
    LedgerError,
    MeasurementError,
    ReleaseError,
    SearchError,
    SourceError,
    WorkloadError,
)
from private_gsd.genetic import GeneticConfig, evolve
from private_gsd.measurement import Measurements
from private_gsd.mechanism import Mechanism, adaptive_units, choose
from private_gsd.privacy.budget import Budget
from private_gsd.privacy.ledger import Ledger
from private_gsd.privacy.plan import plan_one_shot
from private_gsd.release import Release
from private_gsd.synthesizer import Synthesizer
from private_gsd.workloads.specs import default_specs, workload_of

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "tenure"])
TABLE = datasets.census(800, seed=2).select(SCHEMA.names)
SMALL: dict[str, Any] = {"rows": 60, "threads": 1, "mechanism": "one-shot"}
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
    record = synth.release.privacy
    assert record["private"] is True
    assert record["spent"]["epsilon"] == pytest.approx(1.0)
    assert record["delta"] == 1 / 800**2
    assert synth.release.complete


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
        assert frame.dtypes.equals(data.dtypes)
    if kind == "polars":
        assert isinstance(frame, pl.DataFrame)
        assert frame.schema == data.schema


def test_samples_of_any_size() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    whole = synth.release.synthetic.to_pylist()
    fewer = synth.sample(20).to_pylist()
    assert all(fewer.count(row) <= whole.count(row) for row in fewer)
    more = synth.sample(150).to_pylist()
    assert len(more) == 150
    assert all(2 * whole.count(row) <= more.count(row) <= 3 * whole.count(row) for row in whole)
    assert synth.sample(20).equals(synth.sample(20))
    with pytest.raises(WorkloadError, match="number must be a whole number from 1"):
        synth.sample(0)


def test_adaptive_measures_what_is_worst(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=100.0, release=tmp_path / "r", **ADAPTIVE).fit(TABLE)
    release = synth.release
    measured = release.measurements()
    assert measured is not None
    assert measured.workload.num_groups == 6
    chosen = [group for epoch in release.epochs() for group in epoch]
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
    budget = Budget.from_rho(1.0, delta=1e-6)
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


def test_auto_chooses_from_public_facts() -> None:
    """Adaptive where one-shot noise would be more than a tenth of the rows."""
    for epsilon, name in ((10.0, "one-shot"), (0.02, "adaptive")):
        settings = Synthesizer(SCHEMA, epsilon, rows=60).fit(TABLE).release.settings
        assert settings["mechanism"] == name
    workload, budget = workload_of(SCHEMA, ["categorical:2"]), Budget.from_epsilon(1.0, 1e-6)
    noise = max(share.scale for share in plan_one_shot(workload, budget).shares)
    assert choose(workload, budget, int(11 * noise)).name == "one-shot"
    assert choose(workload, budget, int(9 * noise)).name == "adaptive"


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

    write = measurement.write_durably
    monkeypatch.setattr(measurement, "write_durably", watched("write", write))
    monkeypatch.setattr(release_module, "write_durably", watched("write", write))
    monkeypatch.setattr(Ledger, "charge", watched("charge", Ledger.charge))
    return steps


def outcome(folder: Path, ledger: Path) -> tuple[Any, ...]:
    """All that a run leaves that does not tell the time; and that no draw is left beside it."""
    release = Release.load(folder)
    assert not list(folder.rglob("*.tmp"))
    assert len(list((folder / "measurements").iterdir())) == 2
    measured = release.measurements()
    assert measured is not None
    with Ledger(ledger) as opened:
        charges = [(c.units, c.mechanism, c.groups) for c in opened.charges("table")]
    return release.synthetic.to_pylist(), measured.counts.tolist(), release.epochs(), charges


@pytest.mark.parametrize("settings", [SMALL, ADAPTIVE], ids=["one-shot", "adaptive"])
def test_a_run_killed_at_any_step_goes_on_as_if_it_was_not(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    """The same table, the same measurements, and a ledger with each charge once."""
    data = tmp_path / "table.csv"
    pyarrow.csv.write_csv(TABLE, data)

    def fit(folder: Path) -> None:
        Synthesizer(
            SCHEMA,
            epsilon=1.0,
            release=folder,
            ledger=folder.with_suffix(".db"),
            insecure_noise_seed=5,
            **settings,
        ).fit(str(data))

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


@pytest.mark.parametrize("settings", [SMALL, ADAPTIVE], ids=["one-shot", "adaptive"])
def test_no_second_draw_is_left_under_one_charge(settings: dict[str, Any], tmp_path: Path) -> None:
    """With real noise: one draw a charge on the disk, and what was selected is measured."""
    for kill_at in range(60):
        folder = tmp_path / str(kill_at)
        synth = Synthesizer(SCHEMA, epsilon=0.3, release=folder, **settings)
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                synth.fit(TABLE)
                break
            except Killed:
                pass
        if not (folder / "release.json").exists():
            continue
        kept = Release.load(folder).epochs()
        Synthesizer.resume(folder, TABLE)
        release = Release.load(folder)
        assert release.epochs()[: len(kept)] == kept
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
            names = [release.workload.describe(g) for epoch in release.epochs() for g in epoch]
            assert sorted(groups) == sorted(names)


def killed_after_the_charge(folder: Path, **settings: Any) -> None:
    """A run that has paid for measurements and kept none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Release, "keep_measurements", lambda *arguments: (_ for _ in ()).throw(Killed())
        )
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, release=folder, **settings).fit(TABLE)


def test_a_copy_of_a_run_does_not_go_on(tmp_path: Path) -> None:
    killed_after_the_charge(tmp_path / "one", ledger=tmp_path / "l.db", **SMALL)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(ReleaseError, match="is a copy of the folder in which the run began"):
        Synthesizer.resume(tmp_path / "two", TABLE)
    (tmp_path / "one").rename(tmp_path / "moved")  # which is no copy
    assert Synthesizer.resume(tmp_path / "moved", TABLE).release.complete


def test_a_backup_put_back_does_not_draw_again(tmp_path: Path) -> None:
    """The folder is the same one, and the ledger knows that its charge was used."""
    folder, backup = tmp_path / "r", tmp_path / "backup"
    killed_after_the_charge(folder, ledger=tmp_path / "l.db", **SMALL)
    shutil.copytree(folder, backup)
    Synthesizer.resume(folder, TABLE).release.save(tmp_path / "first")
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(backup, folder, dirs_exist_ok=True)
    with pytest.raises(ReleaseError, match="was drawn and kept, and is gone"):
        Synthesizer.resume(folder, TABLE)


def test_measurements_that_were_kept_and_lost(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "keep_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed) as caught:
            Synthesizer(SCHEMA, epsilon=1.0, release=folder, **SMALL).fit(TABLE)
    assert caught.value.__notes__ == [f"go on with: private-gsd resume {folder}"]
    document = folder / "measurements" / "measurements.json"
    good = document.read_bytes()
    document.write_bytes(good[:-3])
    with pytest.raises(MeasurementError, match=r"measurements\.json cannot be read"):
        Synthesizer.resume(folder, TABLE)
    shutil.copytree(folder / "measurements", tmp_path / "kept")
    shutil.rmtree(folder / "measurements")
    with pytest.raises(ReleaseError, match="was drawn and kept, and is gone"):
        Synthesizer.resume(folder, TABLE)
    shutil.copytree(tmp_path / "kept", folder / "measurements")
    document.write_bytes(good)
    assert Synthesizer.resume(folder).release.complete


def test_a_temporary_release_outlives_a_failure_after_the_charge(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "keep_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed) as caught:
            Synthesizer(SCHEMA, epsilon=1.0, ledger=tmp_path / "l.db", **SMALL).fit(TABLE)
    [note] = caught.value.__notes__
    folder = Path(note.split()[-1])
    assert Synthesizer.resume(folder).release.complete
    shutil.rmtree(folder.parent)


def test_auto_keeps_its_split_when_it_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    killed_after_the_charge(folder, rows=60, split="tenth", workload=["categorical:3"])
    assert Release.load(folder).settings["split"] == "tenth"
    assert Synthesizer.resume(folder, TABLE).release.complete


def test_a_ledger_that_is_gone(tmp_path: Path) -> None:
    killed_after_the_charge(tmp_path / "r", ledger=tmp_path / "l.db", **SMALL)
    for path in tmp_path.glob("l.db*"):
        path.unlink()
    with pytest.raises(LedgerError, match="the ledger that the run has paid is gone"):
        Synthesizer.resume(tmp_path / "r", TABLE)


def test_a_ledger_that_does_not_know_the_charges(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "keep_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, release=folder, ledger=tmp_path / "l.db", **SMALL).fit(TABLE)
    for path in tmp_path.glob("l.db*"):
        path.unlink()
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.add_dataset("table", Budget.from_epsilon(1.0, 1 / 800**2))
    with pytest.raises(LedgerError, match="does not know what paid for these measurements"):
        Synthesizer.resume(folder)
    assert not Release.load(folder).complete


@pytest.mark.parametrize("lost", ["epochs.json", "measurements"])
def test_files_that_are_lost_are_not_drawn_again(lost: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    calls = []

    def dies_later(release: Release, epoch: int, table: Any) -> None:
        calls.append(epoch)
        if epoch == 1:
            raise Killed
        real(release, epoch, table)

    real = Release.keep_table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "keep_table", dies_later)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, release=folder, **ADAPTIVE).fit(TABLE)
    if lost == "measurements":
        shutil.rmtree(folder / lost)
    else:
        (folder / lost).unlink()
    with pytest.raises(MeasurementError, match="do not fit together"):
        Synthesizer.resume(folder, TABLE)


def test_a_folder_with_other_things_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    Synthesizer(SCHEMA, epsilon=1.0, release=folder, **SMALL).fit(TABLE)
    (folder / "release.json").unlink()
    with pytest.raises(ReleaseError, match="is not empty"):
        Synthesizer(SCHEMA, epsilon=1.0, release=folder, **SMALL).fit(TABLE)


def test_a_ledger_that_cannot_pay_for_the_whole_run(tmp_path: Path) -> None:
    """An adaptive run is not begun that could not be finished."""
    delta = 1 / 800**2
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.add_dataset("table", Budget.from_epsilon(0.6, delta))
    with pytest.raises(BudgetError, match="the run will need rho"):
        Synthesizer(SCHEMA, 1.0, ledger=tmp_path / "l.db", **ADAPTIVE).fit(TABLE)
    with pytest.raises(LedgerError, match=r"no dataset 'tabel' \(did you mean 'table'"):
        Synthesizer(SCHEMA, 0.1, ledger=tmp_path / "l.db", dataset="tabel", **SMALL).fit(TABLE)
    with Ledger(tmp_path / "l.db") as ledger:
        assert ledger.charges("table") == []


@pytest.mark.parametrize("settings", [SMALL, ADAPTIVE], ids=["one-shot", "adaptive"])
def test_a_disk_that_is_full(settings: dict[str, Any], tmp_path: Path) -> None:
    """At any write: one clear error, and the run goes on when there is room again."""
    real = measurement.write_durably
    for full_at in range(40):
        folder = tmp_path / str(full_at)
        writes = []

        def write(path: Path, content: bytes) -> None:
            writes.append(path)  # noqa: B023
            if len(writes) > full_at:  # noqa: B023
                raise OSError(errno.ENOSPC, "No space left on device")
            real(path, content)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(measurement, "write_durably", write)
            patch.setattr(release_module, "write_durably", write)
            try:
                Synthesizer(SCHEMA, epsilon=1.0, release=folder, **settings).fit(TABLE)
                break
            except GsdError as error:
                assert "No space left on device" in str(error)
        if (folder / "release.json").exists():
            assert Synthesizer.resume(folder, TABLE).release.complete
        else:
            Synthesizer(SCHEMA, epsilon=1.0, release=folder, **settings).fit(TABLE)
    assert full_at > 8


def test_one_shot_goes_on_without_the_data(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "keep_table", lambda *arguments: (_ for _ in ()).throw(Killed()))
        data = tmp_path / "table.parquet"
        pyarrow.parquet.write_table(TABLE, data)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, release=folder, **SMALL).fit(data)
    data.unlink()
    release = Release.load(folder)
    assert not release.complete
    with pytest.raises(ReleaseError, match="not complete yet"):
        _ = release.synthetic
    with pytest.raises(ReleaseError, match="not complete yet, and so not to be handed on"):
        release.save(tmp_path / "other")
    synth = Synthesizer.resume(folder)
    assert synth.sample().num_rows == 60
    assert len(synth.release.privacy["charges"]) == 1


def test_an_adaptive_run_needs_the_data_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    with pytest.MonkeyPatch.context() as patch:
        durable_steps(patch, 20)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, epsilon=1.0, release=folder, **ADAPTIVE).fit(TABLE)
    with pytest.raises(ReleaseError, match="the run still needs the table; give it again"):
        Synthesizer.resume(folder)
    with pytest.raises(ReleaseError, match="another number of rows"):
        Synthesizer.resume(folder, TABLE.slice(0, 700))
    assert Synthesizer.resume(folder, TABLE).sample().num_rows == 60


def test_a_release_is_saved_loaded_and_projected_anew(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, **SMALL).fit(TABLE)
    synth.release.save(tmp_path / "release")
    release = Release.load(tmp_path / "release")
    names = {path.name for path in release.folder.iterdir()}
    assert names == {
        *("release.json", "schema.toml", "workload.json", "workload.npz", "measurements"),
        *("synthetic.parquet", "privacy.json"),
    }
    with pytest.raises(ReleaseError, match=r"has no run\.json"):
        _ = release.run
    assert release.synthetic.equals(synth.release.synthetic)
    assert release.schema == SCHEMA
    measured = release.measurements()
    assert isinstance(measured, Measurements)
    # More rows, another seed: from the measurements alone.
    again = evolve(measured, GeneticConfig(rows=500), seed=9)
    assert again.table.num_rows == 500
    with pytest.raises(ReleaseError, match="holds a release already"):
        synth.release.save(tmp_path / "release")
    with pytest.raises(ReleaseError, match="holds a release already; go on with it"):
        Synthesizer(SCHEMA, 1.0, release=tmp_path / "release", **SMALL).fit(TABLE)


def test_seeded_noise_is_told_of_everywhere(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, 1.0, insecure_noise_seed=1, release=tmp_path / "r", **SMALL)
    release = synth.fit(TABLE).release
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
        schema,
        epsilon=0.01,
        rows=50,
        release=folder,
        workload=["categorical:1", "tree:1"],
        insecure_noise_seed=1,  # real noise may hit the exact count by chance
    )
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
    Synthesizer(SCHEMA, epsilon=1.0, **options).fit(TABLE)
    with pytest.raises(BudgetError, match="Nothing was charged or released"):
        Synthesizer(SCHEMA, epsilon=0.5, **options).fit(TABLE)
    with Ledger(ledger) as opened:
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
    synth = Synthesizer(SCHEMA, epsilon=1.0, release=folder, insecure_noise_seed=2, **SMALL)

    def tell(what: str, now: Any) -> None:
        if what == "searching":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        synth.fit(TABLE, tell=tell)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not Release.load(folder).complete
    again = Synthesizer.resume(folder)
    other = Synthesizer(SCHEMA, epsilon=1.0, insecure_noise_seed=2, **SMALL).fit(TABLE)
    assert again.sample().equals(other.sample())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epsilon": 0}, BudgetError, "epsilon"),
        ({"delta": 2.0}, BudgetError, "delta"),
        ({"mechanism": "magic"}, BudgetError, "name must be 'one-shot' or 'adaptive'"),
        ({"split": "third"}, BudgetError, "split must be 'half' or 'tenth'"),
        ({"epochs": 0}, WorkloadError, "epochs must be a whole number"),
        ({"rows": 0}, SearchError, "rows must be a whole number"),
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
        ({"invalid": "x"}, GsdError, "invalid must be 'error' or 'coerce'"),
        ({"conversion": "x"}, BudgetError, "conversion"),
        ({"epsilon": "1"}, BudgetError, "epsilon"),
        ({"insecure_noise_seed": -1}, WorkloadError, "insecure_noise_seed"),
        ({"dataset": 5}, LedgerError, "dataset must be a line of text"),
    ],
)
def test_what_is_refused_before_anything_is_spent(
    settings: dict[str, Any], error: type[GsdError], message: str, tmp_path: Path
) -> None:
    options = {"epsilon": 1.0, **SMALL, **settings}
    synth = Synthesizer(SCHEMA, release=tmp_path / "r", ledger=tmp_path / "l.db", **options)
    with pytest.raises(error, match=message):
        synth.fit(TABLE)
    assert list(tmp_path.iterdir()) == []  # neither a folder nor a ledger is left


def test_a_table_that_does_not_fit(tmp_path: Path) -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0, release=tmp_path / "r", **SMALL)
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
    synth = Synthesizer(SCHEMA, 1.0, release="r", **SMALL).fit(TABLE)
    monkeypatch.chdir("/")
    assert synth.sample().num_rows == 60


def test_settings_by_name() -> None:
    synth = Synthesizer(SCHEMA, epsilon=1.0)
    assert synth.get_params()["rows"] == 2000
    assert synth.set_params(rows=50, release="here").get_params()["release"] == "here"
    with pytest.raises(ReleaseError, match="no setting is called 'row'"):
        synth.set_params(row=3)
    with pytest.raises(ReleaseError, match="call fit first"):
        _ = synth.release


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "release.json").unlink(), "holds no release"),
        (lambda folder: (folder / "release.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "release.json").write_text("[]"), "not what a release has"),
        (lambda folder: (folder / "workload.npz").write_text(""), "the workload cannot be read"),
        (lambda folder: (folder / "epochs.json").write_text("{}"), "epochs.json is damaged"),
        (
            lambda folder: (folder / "release.json").write_text(json.dumps({"format": "x"})),
            "expected 'private-gsd release' of version 1, found 'x'",
        ),
    ],
)
def test_folders_that_hold_no_release(
    change: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "release"
    Synthesizer(SCHEMA, epsilon=1.0, release=folder, **SMALL).fit(TABLE)
    change(folder)
    with pytest.raises(ReleaseError, match=message):
        release = Release.load(folder)
        _ = release.workload, release.epochs()


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
