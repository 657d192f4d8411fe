"""MST, AIM and strongest pairs alike: what they spend, how they resume, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from private_gsd import (
    AIM,
    MST,
    Boolean,
    Knowledge,
    Ledger,
    Mechanism,
    NumbersFirst,
    Schema,
    StrongestPairs,
    Sweep,
    Synthesizer,
)
from private_gsd import workloads as asked
from private_gsd.errors import BudgetError, LedgerError, MeasurementError
from private_gsd.mechanisms import MECHANISMS, Task
from private_gsd.mechanisms.base import plan_run
from private_gsd.privacy.budget import RhoBudget
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads import Neighbours
from tests.fitting import QUICK, fitted, synthesizer
from tests.mechanisms.tables import CENSUS, PEOPLE, spent
from tests.runs.kills import Killed, durable_steps, outcome


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", ["mst", "aim", "strongest-pairs"])
def test_the_budget_is_spent_to_the_last_unit(
    name: str, neighbours: Neighbours, tmp_path: Path
) -> None:
    for epsilon in (0.3, 7.0):
        folder = tmp_path / str(epsilon)
        synth = synthesizer(
            CENSUS,
            epsilon,
            delta=1e-6,
            neighbours=neighbours,
            projector=QUICK,
            workload=["categorical:2", "tree:2:2"],
            mechanism=name,
            rows=40,
        ).fit(PEOPLE, release=folder)
        budget = RhoBudget.from_epsilon(epsilon, 1e-6)
        assert spent(synth.release_) == budget.units
        target = synth.release_.workload
        mechanism = MECHANISMS[name]()
        task = Task(mechanism.candidates(target), target, budget, neighbours)
        assert plan_run(mechanism, task).total == budget.units
        assert synth.release_.privacy["spent"]["epsilon"] == pytest.approx(epsilon)
        with Ledger(Path(f"{folder}.ledger.db"), create=True) as ledger:
            assert ledger.account("table").reserved == 0


SELECTIVE: dict[str, dict[str, Any]] = {
    "mst": {"mechanism": "mst", "workload": ["categorical:2", "tree:2:2"]},
    "aim": {"mechanism": "aim", "workload": ["categorical:2"]},
    "strongest-pairs": {
        "mechanism": NumbersFirst(StrongestPairs()),
        "workload": ["categorical:1", "tree:1:2"],
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", SELECTIVE)
def test_a_run_killed_at_any_step_resumes_as_if_it_was_not(
    name: str, neighbours: Neighbours, tmp_path: Path
) -> None:
    """The same table, the same measurements, and a ledger with each charge once."""
    schema = CENSUS.select(["sex", "marital"]) if name == "aim" else CENSUS
    data = tmp_path / "table.csv"
    pyarrow.csv.write_csv(PEOPLE.select(schema.names), data)

    def fit(folder: Path) -> None:
        fitted(
            schema,
            20.0,
            str(data),
            delta=1e-6,
            neighbours=neighbours,
            projector=QUICK,
            rows=40,
            threads=1,
            release=folder,
            ledger=folder.with_suffix(".db"),
            create_ledger=True,
            insecure_noise_seed=5,
            **SELECTIVE[name],
        )

    fit(tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        steps = durable_steps(patch, -1)
        fit(tmp_path / "again")
    assert "commit" in steps
    number = 2 * len(steps)
    expected = outcome(tmp_path / "whole", tmp_path / "whole.db")
    assert outcome(tmp_path / "again", tmp_path / "again.db") == expected
    resumed = 0
    # All steps of MST; of AIM all of the first rounds, some of the many after, all of the last.
    last = number - 12
    kills = list(range(number)) if name != "aim" else [*range(48), *range(48, last, 9)]
    kills = sorted({*kills, *range(last, number)})
    for kill_at in kills if neighbours == "replace-one" else kills[::4]:
        folder = tmp_path / f"killed-{kill_at}"
        with pytest.MonkeyPatch.context() as patch:
            durable_steps(patch, kill_at)
            try:
                fit(folder)
                continue
            except Killed:
                pass
        if (folder / "release.json").exists():
            Synthesizer.resume(folder)
            resumed += 1
        else:
            fit(folder)
        assert outcome(folder, folder.with_suffix(".db")) == expected
    assert resumed >= 10


@pytest.mark.parametrize("name", SELECTIVE)
def test_what_was_lost_is_not_drawn_again(name: str, tmp_path: Path) -> None:
    for lost, kinds in (
        ("selections.json", (MeasurementError, LedgerError)),
        ("measurements/measurements.json", (MeasurementError, LedgerError)),
    ):
        folder = tmp_path / lost.replace("/", "-")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunFolder, "finish", lambda *_: (_ for _ in ()).throw(Killed()))
            with pytest.raises(Killed):
                fitted(
                    CENSUS, 2.0, PEOPLE, rows=40, projector=QUICK, release=folder, **SELECTIVE[name]
                )
        (folder / lost).unlink()
        with pytest.raises(kinds):
            Synthesizer.resume(folder, PEOPLE)
        with Ledger(Path(f"{folder}.ledger.db"), create=True) as ledger:
            charges = [charge.run for charge in ledger.charges("table")]
        assert len(set(charges)) == len(charges)


@pytest.mark.parametrize("name", SELECTIVE)
def test_the_seeds_decide(name: str) -> None:
    settings = {"rows": 40, **SELECTIVE[name]}
    one, two, other = (
        fitted(
            CENSUS,
            2.0,
            PEOPLE,
            projector=QUICK,
            random_state=3,
            insecure_noise_seed=seed,
            **settings,
        )
        for seed in (1, 1, 2)
    )
    assert one.release_.synthetic.equals(two.release_.synthetic)
    assert one.release_.selections() == two.release_.selections()
    counts = [each.release_.measurements() for each in (one, other)]
    assert counts[0] is not None
    assert counts[1] is not None
    assert counts[0].counts[:10].tolist() != counts[1].counts[:10].tolist()
    assert one.release_.privacy["private"] is False


def test_sweeps_run_them_too() -> None:
    sweep = Sweep(CENSUS, PEOPLE, ["categorical:2"])
    settings = [{"rows": 30, "mechanism": name} for name in ("mst", "aim", "one-shot")]
    runs = sweep.run([1.0], settings=settings, insecure=True, evaluate=True, n_jobs=1)
    assert [run.table.num_rows for run in runs] == [30] * 3
    assert all(run.errors is not None for run in runs)


def test_a_plan_says_what_they_would_do() -> None:
    for name, searches in (("mst", 1), ("aim", 46)):
        forecast = Synthesizer(
            CENSUS, 1.0, workload=["categorical:2", "tree:2:2"], mechanism=name
        ).plan(PEOPLE)
        document = json.loads(json.dumps(forecast.document()))
        assert document["mechanism"] == name
        assert document["projections"] == searches
        assert document["selection_noise_rows"] > 0
        names = [group.name for group in forecast.groups]
        assert names[:4] == ["sex", "age", "marital", "sex x age"]
        assert forecast.seconds > 0


@pytest.mark.parametrize(
    ("mechanism", "units", "message"),
    [(AIM(), 100, "too small for 144 rounds"), (MST(), 9, "too small")],
)
def test_a_budget_that_is_too_small(mechanism: Mechanism, units: int, message: str) -> None:
    many = Schema([Boolean(f"b{n}") for n in range(9)])
    pairs = mechanism.candidates(asked.categorical_marginals(many, 2))
    with pytest.raises(BudgetError, match=message):
        mechanism.plan(Task(pairs, pairs, RhoBudget(units, 1e-6)))


def test_statistics_follow_from_single_columns_alone() -> None:
    """Whatever else they ask for may not be selected."""
    settings: dict[str, Any] = {
        "workload": ["categorical:2", "tree:2:3"],
        "mechanism": "aim",
        "projector": QUICK,
        "rows": 40,
    }
    conditional = Knowledge(derived_statistics=["median(age) WHERE sex = 'female'"])
    with pytest.raises(MeasurementError, match="does not follow"):
        Synthesizer(CENSUS, 1.0, knowledge=conditional, **settings)
    alone = Knowledge(derived_statistics=["median(age)"])
    synth = Synthesizer(CENSUS, 1.0, knowledge=alone, **settings)
    assert synth.fit(PEOPLE).sample().num_rows == 40
