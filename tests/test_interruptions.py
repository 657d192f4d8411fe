"""Ctrl-C at the worst moments: a run ends, and pays for nothing more."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from private_gsd import Adaptive, Sweep, Synthesizer, datasets
from private_gsd.counting.exact import exact_counts
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.noise import InsecureSeededNoise
from private_gsd.projection.genetic.algorithm_1 import Algorithm1
from private_gsd.projection.genetic.config import GeneticSearch
from private_gsd.projection.genetic.coordinate_search import CoordinateSearch
from private_gsd.projection.genetic.evolve import evolve
from private_gsd.projection.genetic.function_search import FunctionSearch
from private_gsd.projection.watch import Watch
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads import Workload, categorical_marginals, functions
from tests.fitting import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.worker("baselines")

SCHEMA = datasets.census_schema().select(["sex", "marital", "tenure", "citizen"])
TABLE = datasets.census(1000, seed=3).select(SCHEMA.names)
# Few steps: only where they end matters.
PROJECTORS = (
    QUICK,
    "rap:iterations=4,mixtures=20",
    "rap++:iterations=4,temperatures=2,points=20",
    "gem:iterations=4,mixtures=20",
    "pgm:iterations=100",
)


def press() -> None:
    """Ctrl-C, as this thread gets it: when this returns, Python has heard."""
    signal.raise_signal(signal.SIGINT)


def fit_adaptively(folder: Path, projector: str, epochs: int = 2) -> None:
    synth = Synthesizer(
        SCHEMA,
        1.0,
        workload=["categorical:2"],
        mechanism=Adaptive(epochs=epochs),
        rows=50,
        threads=1,
        projector=projector,
    )
    synth.fit(
        TABLE,
        insecure_noise_seed=1,
        release=folder / "release",
        ledger=folder / "ledger.db",
        create_ledger=True,
    )


def charges(folder: Path) -> list[str]:
    with Ledger(folder / "ledger.db", create=False, read_only=True) as ledger:
        return [charge.run.partition(" ")[2] for charge in ledger.charges("table")]


def at_the_end(monkeypatch: pytest.MonkeyPatch, projector: str) -> None:
    """Press Ctrl-C when a search has checked for the last time, and still listens."""
    if projector.startswith("gsd"):
        real = CoordinateSearch.run

        def run(self: CoordinateSearch, start: Any) -> Any:
            found = real(self, start)
            press()
            return found

        monkeypatch.setattr(CoordinateSearch, "run", run)
        return
    # The others report after each of a known number of steps, and the last report is the last look.
    calls: list[int] = []
    check = Watch.check

    def counted(self: Watch) -> None:
        check(self)
        calls.append(1)

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "check", counted)
        evolve_once(projector)
    last = len(calls)

    def pressed(self: Watch) -> None:
        check(self)
        calls.append(1)
        if len(calls) == 2 * last:
            press()

    monkeypatch.setattr(Watch, "check", pressed)


def evolve_once(projector: str) -> Any:
    from private_gsd.projection import projector_of

    return projector_of(projector).project(measured(categorical_marginals(SCHEMA, 1)), rows=50)


def measured(workload: Workload) -> Any:
    budget = RhoBudget.from_epsilon(1.0, 1e-6)
    units = budget.split([1.0] * workload.num_groups)
    return measure(
        exact_counts(workload, TABLE),
        range(workload.num_groups),
        units,
        accountant=LocalAccountant(budget),
        noise=InsecureSeededNoise(1),
    )


@pytest.mark.slow
@pytest.mark.parametrize("projector", PROJECTORS)
def test_after_the_last_look_of_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, projector: str
) -> None:
    """An adaptive run ends in its first epoch, pays for no other, and resumes."""
    at_the_end(monkeypatch, projector)
    with pytest.raises(KeyboardInterrupt):
        fit_adaptively(tmp_path, projector)
    assert charges(tmp_path) == ["epoch 1: select", "epoch 1: measure"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    Synthesizer.resume(tmp_path / "release", TABLE)
    assert len(charges(tmp_path)) == 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CoordinateSearch, FunctionSearch, Algorithm1])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_every_kind_of_search_says_that_it_was_interrupted(
    monkeypatch: pytest.MonkeyPatch, kind: type[Any], times: int
) -> None:
    """After the last look; a second Ctrl-C raises there, and a third does not harm."""
    workload = categorical_marginals(SCHEMA, 2)
    if kind is FunctionSearch:
        workload = workload + functions(SCHEMA, {"female": lambda rows: rows["sex"] == "female"})
    known = measured(workload)
    config = GeneticSearch(rows=20, denoise=False)
    if kind is Algorithm1:
        config = GeneticSearch.paper(rows=20, generations=20)
    real = kind.run

    def run(self: Any, start: Any) -> Any:
        found = real(self, start)
        for _ in range(times):
            press()
        return found

    monkeypatch.setattr(kind, "run", run)
    if times == 1:
        assert evolve(known, config).reason == "interrupted"
    else:
        with pytest.raises(KeyboardInterrupt):
            evolve(known, config)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_while_answers_are_denoised(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of its reports, and where ``progress`` stops the search at the same time."""
    known = measured(categorical_marginals(SCHEMA, 2))

    def stop(what: str, done: float, total: float | None) -> bool:
        press()
        return True

    assert evolve(known, GeneticSearch(rows=50), progress=stop).reason == "interrupted"


def test_while_the_handler_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it, the search hears; after it, Python raises; in between nothing is lost."""
    known, config = (
        measured(categorical_marginals(SCHEMA, 1)),
        GeneticSearch(rows=20, denoise=False),
    )
    real = signal.signal

    def around(before: bool) -> Callable[..., Any]:
        def patched(number: Any, handler: Any) -> Any:
            back = number == signal.SIGINT and handler is signal.default_int_handler
            if back and before:
                press()
            found = real(number, handler)
            if back and not before:
                press()
            return found

        return patched

    monkeypatch.setattr(signal, "signal", around(before=True))
    assert evolve(known, config).reason == "interrupted"
    monkeypatch.setattr(signal, "signal", around(before=False))
    with pytest.raises(KeyboardInterrupt):
        evolve(known, config)
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_where_python_drops_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While an object is destroyed, between two searches: nothing more is paid for."""

    class Doomed:
        def __del__(self) -> None:
            press()

    real = RunFolder.save_table

    def save(self: RunFolder, number: int, table: Any) -> None:
        real(self, number, table)
        Doomed()

    monkeypatch.setattr(RunFolder, "save_table", save)
    with pytest.raises(KeyboardInterrupt):
        fit_adaptively(tmp_path, QUICK, epochs=3)
    assert charges(tmp_path) == ["epoch 1: select", "epoch 1: measure"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_sweep_pays_for_no_other_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_the_end(monkeypatch, QUICK)
    sweep = Sweep(SCHEMA, TABLE, ["categorical:2"])
    settings: list[dict[str, Any]] = [{"rows": 50, "projector": QUICK}]
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("table", RhoBudget.from_epsilon(9.0, sweep.delta))
        with pytest.raises(KeyboardInterrupt):
            sweep.run([0.5], seeds=[1, 2, 3], settings=settings, ledger=ledger, n_jobs=1)
    assert charges(tmp_path) == ["0: measure"]
    assert sorted(sweep.measured) == [0]


@pytest.mark.slow
def test_at_fifty_random_moments(tmp_path: Path) -> None:
    """Whenever it comes, a run ends, and pays for no more than the step that it is at."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.interruption_worker", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    everything, trials = json.loads(done.stdout)
    assert len(trials) == 50
    assert sum(code == 130 for code, _, _ in trials) >= 5
    for code, before, after in trials:
        if code in (130, -signal.SIGINT):
            assert after <= before + 2
        else:  # it was at its end
            assert code == 0
            assert before >= everything - 2
