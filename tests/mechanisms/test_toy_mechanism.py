"""A new mechanism is one class and one line in the registry, and does what all others do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow.csv
import pytest

from private_gsd import BudgetError, Ledger, Mechanism, Sweep, Synthesizer, datasets
from private_gsd.mechanisms.base import Plan, Task
from private_gsd.mechanisms.candidates import all_pairs, single_columns
from private_gsd.mechanisms.columns_first import ColumnsFirst, equal_noise
from private_gsd.mechanisms.mst import independent_shares
from private_gsd.mechanisms.registry import MECHANISMS
from private_gsd.mechanisms.steps import Candidates, Steps, measure, project, select
from private_gsd.privacy.noise import selection_scale
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads.checks import fraction
from tests.mechanisms.contract import MechanismContract

if TYPE_CHECKING:
    from private_gsd import Measurements
    from private_gsd.workloads import Workload

SCHEMA = datasets.census_schema().select(["sex", "marital", "tenure"])
TABLE = datasets.census(800, seed=2).select(SCHEMA.names)
QUICK = "gsd:denoise=false"


@dataclass(frozen=True, kw_only=True)
class Toy(ColumnsFirst):
    """Measures all columns, and the one pair that is farthest from independent.

    Attributes:
        columns_fraction: The fraction of the budget that measures the columns.
    """

    columns_fraction: float = 0.5

    name: ClassVar[str] = "toy"
    selection_summary: ClassVar[str] = "all columns are measured, and one pair that is selected"

    def __post_init__(self) -> None:
        fraction("columns_fraction", self.columns_fraction, BudgetError)

    def candidates(self, target: Workload) -> Workload:
        """Every column of the target workload, and every pair of them."""
        return all_pairs(self.name, target)

    def steps(self, task: Task) -> Steps:
        """Measure columns, select a pair, measure it, project."""
        columns, selecting, measuring = self.allocate(task)
        singles = range(single_columns(task.workload))
        units = equal_noise(task, columns, singles)
        measured = yield from measure("columns", singles, units, stream=0)
        pairs = list(range(len(singles), task.workload.num_groups))

        def candidates() -> Candidates:
            return Candidates(
                pairs, lambda: independent_shares(task.workload, measured), distance=True
            )

        pair = yield from select("select a pair", candidates, units=selecting, stream=1)
        yield from measure("the pair", pair, [measuring], stream=2)
        yield from project(0)

    def plan(self, task: Task) -> Plan:
        """What columns get, and the pair."""
        columns, selecting, measuring = self.allocate(task)
        number = single_columns(task.workload)
        units = equal_noise(task, columns, range(number))
        units += [measuring] * (task.workload.num_groups - number)
        squares = task.workload.squared_sensitivities(task.neighbours)
        noise = selection_scale(selecting, 1, int(max(squares[number:].max(), 1)))
        return Plan(task.budget.units, units, 1, noise, number + 1)

    def allocate(self, task: Task) -> tuple[int, int, int]:
        """What columns, the selection and the pair get."""
        rest = 1 - self.columns_fraction
        columns, selecting, _ = task.budget.split([self.columns_fraction, rest / 2, rest / 2])
        return columns, selecting, task.budget.units - columns - selecting


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "toy", Toy)


class TestToy(MechanismContract):
    """The toy keeps the contract of all mechanisms."""

    @pytest.fixture(params=[0.5, 0.2])
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return Toy(columns_fraction=request.param)


@pytest.fixture
def synth() -> Synthesizer:
    return Synthesizer(
        SCHEMA, 2.0, workload="categorical:2", mechanism="toy", projector=QUICK, rows=40
    )


def test_it_is_planned_and_fitted_by_name(synth: Synthesizer, tmp_path: Path) -> None:
    forecast = synth.plan(TABLE)
    assert forecast.mechanism == Toy()
    assert forecast.projections == 1
    assert len(forecast.groups) == 6
    synth.fit(TABLE, ledger=tmp_path / "ledger.db", create_ledger=True)
    assert synth.release_.settings.mechanism == Toy()
    assert synth.sample().num_rows == 40
    with Ledger(tmp_path / "ledger.db", read_only=True) as ledger:
        steps = [charge.run.partition(" ")[2] for charge in ledger.charges("table")]
        assert ledger.account("table").remaining == 0
    assert steps == ["columns", "select a pair", "the pair"]


class Killed(BaseException):
    """What a kill is."""


def test_it_resumes(synth: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "table.csv"
    pyarrow.csv.write_csv(TABLE, data)
    whole = synth.fit(data, insecure_noise_seed=3).release_
    real = RunFolder.save_measurements

    def save(self: RunFolder, measurements: Measurements, commit: object) -> None:
        real(self, measurements, commit)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_measurements", save)
        with pytest.raises(Killed):
            synth.fit(data, insecure_noise_seed=3, release=tmp_path / "release")
    again = Synthesizer.resume(tmp_path / "release").release_
    assert again.synthetic.equals(whole.synthetic)
    assert again.privacy["spent"] == whole.privacy["spent"]


def test_it_is_swept() -> None:
    sweep = Sweep(SCHEMA, TABLE, "categorical:2")
    settings = [
        {"mechanism": each, "projector": QUICK, "rows": 40}
        for each in ("toy", Toy(columns_fraction=0.9))
    ]
    runs = sweep.run([1.0, 5.0], settings=settings, insecure=True, n_jobs=1)
    assert [run.measurements.workload.num_groups for run in runs] == [4] * 4
    assert len({run.matrix.tobytes() for run in runs}) == 4
    one, other = (run.measurements.scales for run in runs[:2])
    assert (np.sign(other - one) == [-1, -1, -1, 1]).all()
