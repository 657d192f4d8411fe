"""Every experiment runs; a sweep that is killed goes on; what fails is told, and the rest made."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from experiments.__main__ import main
from experiments.bound import bound
from experiments.registry import EXPERIMENTS

from experiments import comparison, convergence, data, running
from private_gsd import datasets
from private_gsd.counting.exact import count
from private_gsd.errors import GsdError, SourceError
from private_gsd.schema import Numeric

pytestmark = [pytest.mark.slow, pytest.mark.worker("baselines")]

ROOT = Path(__file__).parent.parent.parent
NAMES = ["sex", "marital", "citizen", "tenure", "age", "household_size"]
LARGEST = 150_000


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A small file with its schema, as options."""
    folder = tmp_path_factory.mktemp("people")
    schema = datasets.census_schema().select(NAMES)
    pyarrow.csv.write_csv(datasets.census(800).select(NAMES), folder / "people.csv")
    schema.write(folder / "people.toml")
    return ["--data", str(folder / "people.csv"), "--schema", str(folder / "people.toml")]


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick(name: str, people: list[str], tmp_path: Path) -> None:
    """From the command to tables and plots, and nothing is done twice."""
    experiment = EXPERIMENTS[name]
    words = [name, "--quick", *people, "--out", str(tmp_path), "--jobs", "1"]
    if isinstance(experiment.full, comparison.Comparison) or name == "machine_learning":
        words += ["--epsilons", "1"]
    if name in ("prefix", "halfspace", "adaptive_categorical"):
        words += ["--epochs", "2"]
    assert main(words) == 0
    rows, summary = read(tmp_path / f"{name}.csv"), read(tmp_path / f"{name}_summary.csv")
    assert rows
    assert summary
    if experiment.uses_data:
        assert {row["data"] for row in [*rows, *summary]} == {"people"}
    for suffix in ("png", "svg"):
        assert 1000 < (tmp_path / f"{name}.{suffix}").stat().st_size < LARGEST
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    drawn = (tmp_path / f"{name}.svg").read_bytes()
    assert main(words) == 0
    assert made == {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert drawn == (tmp_path / f"{name}.svg").read_bytes()


def test_errors_are_those_of_all_answers(people: list[str], tmp_path: Path) -> None:
    """Of one run, found again by hand; and by more budget they get less."""
    words = ["oneshot_tree", "--quick", *people, "--out", str(tmp_path), "--only", "GSD"]
    assert main([*words, "--epsilons", "0.05", "5", "--jobs", "1"]) == 0
    rows = {float(row["epsilon"]): row for row in read(tmp_path / "oneshot_tree.csv")}
    assert float(rows[5]["mean"]) < float(rows[0.05]["mean"])
    loaded = data.load(data.name_data(people[1], people[3]))
    settings: dict[str, Any] = {
        "projector": "gsd",
        "rows": 500,
        "epochs": 0,
        "queries_per_epoch": 1,
    }
    run = {**settings, "workload": "tree:2", "epsilon": 5.0, "seed": 0}
    made = comparison.made_by(run, loaded)
    workload = made.measurements.workload
    shares = [count(workload, loaded.matrix) / 800, count(workload, made.matrix) / 500]
    assert float(rows[5]["max"]) == pytest.approx(np.abs(shares[0] - shares[1]).max())


def test_numbers_are_scaled(people: list[str]) -> None:
    loaded = data.load(data.name_data(people[1], people[3]))
    ages = np.array(datasets.census(800).column("age").to_pylist()) / 99
    np.testing.assert_allclose(loaded.matrix[:, loaded.schema.names.index("age")], ages)
    for column in loaded.schema:
        if isinstance(column, Numeric):
            assert column.bounds == (0, 1)


def test_the_best_number_of_epochs() -> None:
    """Each measure has its own, after averaging over seeds."""
    parts = {"search_seconds": 1.0, "seconds": 2.0, "cpu_seconds": 1.0, "rms": 0.0}
    rows = [
        {"data": "d", "system": "GSD", "epsilon": 1.0, "epochs": t, "max": high, "mean": mean}
        | parts
        for t, high, mean in [(25, 0.4, 0.1), (25, 0.2, 0.1), (50, 0.1, 0.2), (50, 0.1, 0.2)]
    ]
    [row] = comparison.best(rows)
    assert (row["max"], row["epochs_for_max"]) == (0.1, 50)
    assert (row["mean"], row["epochs_for_mean"]) == (0.1, 25)
    assert row["runs"] == 4


def test_all_systems_get_the_same_noise(people: list[str]) -> None:
    loaded = data.load(data.name_data(people[1], people[3]))
    settings: dict[str, Any] = {"workload": "categorical:2", "epochs": 0, "queries_per_epoch": 1}
    settings |= {"epsilon": 1.0, "seed": 3, "projector": "gsd"}
    one, other = (comparison.made_by({**settings, "rows": rows}, loaded) for rows in (50, 70))
    np.testing.assert_array_equal(one.measurements.counts, other.measurements.counts)


def test_a_killed_sweep_goes_on(people: list[str], tmp_path: Path) -> None:
    """Only what was not finished is made, and the tables are those of a sweep that was not."""
    words = ["rates", "--quick", *people, "--seeds", "2", "--jobs", "1", "--out"]
    command = [sys.executable, "-m", "experiments", *words]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [*command, str(killed)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    runs = killed / "runs"
    deadline = time.monotonic() + 300
    while not (runs.exists() and list(runs.glob("*.json"))):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert not (killed / "rates.csv").exists()
    assert 1 <= len(before) < 8
    done = subprocess.run(
        [*command, str(killed)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"{8 - len(before)} made now" in " ".join(done.stdout.split())
    assert f"{len(before)} made before" in " ".join(done.stdout.split())
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    assert len(list(runs.glob("*.json"))) == 8
    assert main([*words, str(whole)]) == 0
    timeless = [
        [{k: v for k, v in row.items() if "seconds" not in k} for row in read(folder / "rates.csv")]
        for folder in (killed, whole)
    ]
    assert timeless[0] == timeless[1]


def test_a_failure_is_told_and_the_others_go_on(
    people: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the next time only it is tried again."""
    words = ["oneshot_categorical", "--quick", *people, "--only", "GSD", "--jobs", "1"]
    words += ["--out", str(tmp_path)]
    sound = comparison.made_by

    def broken(run: Any, loaded: data.Data) -> Any:
        if run["epsilon"] == 1.0:
            raise GsdError("the model would be too large [by far]")
        return sound(run, loaded)

    monkeypatch.setattr(comparison, "made_by", broken)
    assert main(words) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "the model would be too large [by far]" in told
    assert "1 runs failed" in told
    assert [row["epsilon"] for row in read(tmp_path / "oneshot_categorical.csv")] == ["0.23"]
    assert (tmp_path / "oneshot_categorical.png").exists()
    monkeypatch.setattr(comparison, "made_by", sound)
    assert main(words) == 0
    assert "1 made now" in capsys.readouterr().out
    assert len(read(tmp_path / "oneshot_categorical.csv")) == 2


def test_a_mistake_in_the_code_is_told_with_its_place(tmp_path: Path) -> None:
    planned = running.Planned("rates", None, {"epsilon": 1.0}, "key")
    number, why = running.run_one(7, planned, tmp_path)
    assert number == 7
    assert "AssertionError" in why
    assert not list(tmp_path.iterdir())


def test_several_processes_give_the_same(people: list[str], tmp_path: Path) -> None:
    words = ["bound", "--quick", *people, "--out"]
    assert main([*words, str(tmp_path / "one"), "--jobs", "1"]) == 0
    assert main([*words, str(tmp_path / "two"), "--jobs", "2"]) == 0
    one, two = (read(tmp_path / each / "bound_summary.csv") for each in ("one", "two"))
    assert one == two


def test_data_beside_data(people: list[str], tmp_path: Path) -> None:
    """A column of panels for each."""
    words = ["prefix", "--quick", "--only", "GSD", "--jobs", "1", "--epsilons", "1"]
    words += ["--data", people[1], "census:300", "--schema", people[3], "--out", str(tmp_path)]
    assert main(words) == 0
    found = [row["data"] for row in read(tmp_path / "prefix_summary.csv")]
    assert found == ["people", "simulated census"]


def test_another_table_of_the_same_name_is_another_run(people: list[str], tmp_path: Path) -> None:
    one = running.plan(
        EXPERIMENTS["bound"], EXPERIMENTS["bound"].quick, [data.name_data("census:300")]
    )
    two = running.plan(
        EXPERIMENTS["bound"], EXPERIMENTS["bound"].quick, [data.name_data("census:301")]
    )
    assert not {run.key for run in one} & {run.key for run in two}


def test_an_option_that_an_experiment_does_not_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convergence", "--epsilons", "1", "--out", str(tmp_path)]) == 1
    assert "convergence has no --epsilons" in capsys.readouterr().out


def test_a_system_that_is_not_there(
    people: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["oneshot_tree", "--quick", *people, "--only", "RAP++", "--out", str(tmp_path)]
    assert main(words) == 1
    assert "there is no RAP++ here; there are GSD, RP, GN" in capsys.readouterr().out


def test_a_file_without_a_schema(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=re.escape("--schema FILE.toml")):
        data.name_data(str(tmp_path / "unknown.csv"))
    known = data.name_data("elsewhere/adult.csv")
    assert known.schema.endswith("benchmarks/schemas/adult.toml")


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in EXPERIMENTS)


def test_what_is_reduced_is_said() -> None:
    """The paper's settings are there, and whoever has less says so."""
    for experiment in EXPERIMENTS.values():
        assert experiment.quick.reduced
        assert bool(experiment.full.reduced) == (experiment.paper is not None)
        assert not (experiment.paper or experiment.full).reduced


def test_crossover_converges_sooner() -> None:
    """As in the paper: without it a sparse table is hardly found."""
    ends = {}
    for mutations, crossovers in ((200, 0), (100, 100)):
        run = {"mutations": mutations, "crossovers": crossovers, "used": 2}
        rows = convergence.perform({**run, "generations": 4000, "seed": 0}, None)
        assert rows[0]["l2_error"] == pytest.approx(np.sqrt(5 / 2), abs=0.03)
        ends[crossovers] = rows[-1]["l2_error"]
    assert ends[100] < 0.8 * ends[0]


def test_the_bound() -> None:
    """By hand: the two terms, and how they fall."""
    first = bound(10.0, 1e-6, 1.0, 1000, 500, 10**12)
    assert first == pytest.approx(
        ((10 + np.log(20)) * np.log(1e6)) ** 0.25 / np.sqrt(1000), rel=1e-3
    )
    assert bound(10.0, 1e-6, 4.0, 1000, 500, 10**12) == pytest.approx(first / 2, rel=1e-3)
    assert bound(10.0, 1e-6, 1e12, 1000, 500, 400) == pytest.approx(
        np.sqrt(np.log(500) / 400), rel=1e-3
    )


def test_finished_runs_are_whole(people: list[str], tmp_path: Path) -> None:
    words = ["bound", "--quick", *people, "--jobs", "1", "--out", str(tmp_path)]
    assert main(words) == 0
    for path in (tmp_path / "runs").iterdir():
        found = json.loads(path.read_text())
        assert found["experiment"] == "bound"
        assert found["data"] == "people"
        assert {"settings", "seconds", "cpu_seconds", "rows"} < set(found)
