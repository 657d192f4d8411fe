"""One-shot and layered: what is measured, who gets what, and that errors fall."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from private_gsd import Sweep, datasets, workloads
from private_gsd.errors import WorkloadError
from private_gsd.mechanisms import Layered, OneShot, Task
from private_gsd.mechanisms.base import noise_scales
from private_gsd.mechanisms.candidates import scopes_of
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.workloads import Neighbours
from private_gsd.workloads.specs import workload_of
from tests.fitting import QUICK

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "tenure", "income"])
TABLE = datasets.census(800, seed=2).select(SCHEMA.names)
LAYERED = Layered()
BUDGET = RhoBudget.from_epsilon(1.0, 1e-6)


def test_pairs_of_triples_are_measured_once() -> None:
    triples = workload_of(SCHEMA, ["categorical:3"])
    asked = LAYERED.candidates(triples)
    pairs = workload_of(SCHEMA, ["categorical:2"])
    assert scopes_of(asked)[: triples.num_groups] == scopes_of(triples)
    assert sorted(scopes_of(asked)[triples.num_groups :]) == sorted(scopes_of(pairs))
    both = workload_of(SCHEMA, ["categorical:2", "categorical:3"])
    assert LAYERED.candidates(both) is both
    one = workloads.categorical_marginals(SCHEMA, sets=[("sex", "marital")])
    assert LAYERED.candidates(one + triples).num_groups == both.num_groups


@pytest.mark.parametrize(
    "specs", [["categorical:2"], ["tree:2"], ["prefix:10", "categorical:1"], ["halfspace:5"]]
)
def test_without_triples_it_is_one_shot(specs: list[str]) -> None:
    workload = workload_of(SCHEMA, specs)
    assert LAYERED.candidates(workload) is workload
    task = Task(workload, workload, BUDGET)
    assert OneShot().plan(task) == LAYERED.plan(task)


def test_pairs_get_four_fifths_and_the_same_noise() -> None:
    """To the unit: budgets are split exactly; trees of three columns have pairs of their levels."""
    for specs in (["categorical:3"], ["tree:3:3"], ["categorical:3", "prefix:10", "tree:2:3"]):
        target = workload_of(SCHEMA, specs)
        measured = LAYERED.candidates(target)
        assert (measured.group_sizes > 0).all()
        relations: tuple[Neighbours, ...] = ("replace-one", "add-remove")
        for neighbours in relations:
            task = Task(measured, target, BUDGET, neighbours)
            plan = LAYERED.plan(task)
            assert 0 <= BUDGET.units - plan.total < measured.num_groups
            names = [measured.describe(group) for group in range(measured.num_groups)]
            upper = np.array([name.count(" x ") >= 2 for name in names])
            units = np.array(plan.units, dtype=float)
            assert units[upper].sum() / units.sum() == pytest.approx(0.2, rel=1e-6)
            scales = noise_scales(task, plan.units)
            for layer in (upper, ~upper):
                assert scales[layer].max() == pytest.approx(scales[layer].min(), rel=1e-6)
            assert plan.total == sum(plan.units)


def test_a_run_spends_its_budget_and_no_more(tmp_path: Path) -> None:
    """But for what a split leaves over: less than a unit a group."""
    ledger = tmp_path / "ledger"
    synth = Synthesizer(SCHEMA, 1.0, workload=["categorical:3"], rows=100, projector=QUICK)
    synth.fit(TABLE, ledger=ledger, create_ledger=True)
    assert synth.release_.settings.mechanism == LAYERED
    measured = synth.release_.measurements()
    assert measured is not None
    assert measured.workload.num_groups == LAYERED.candidates(synth.release_.workload).num_groups
    with Ledger(ledger, read_only=True) as opened:
        assert 0 <= opened.account("table").remaining < measured.workload.num_groups


@pytest.mark.slow
def test_errors_fall() -> None:
    """Of all triples of the simulated census, with four seeds, by a fiftieth at least."""
    schema = datasets.census_schema()
    sweep = Sweep(schema, datasets.census(4000, seed=1), ["categorical:3"])
    settings = [{"mechanism": name, "rows": 1000} for name in ("one-shot", "layered")]
    runs = sweep.run(
        [0.5], seeds=range(4), settings=settings, insecure=True, evaluate=True, n_jobs=1
    )
    means = {
        name: np.mean([r.errors.mean for r in runs if r.errors and r.settings["mechanism"] == name])
        for name in ("one-shot", "layered")
    }
    assert means["layered"] < 0.98 * means["one-shot"]


def test_what_is_too_large_for_a_projector_is_refused() -> None:
    synth = Synthesizer(
        datasets.census_schema(), 1.0, workload=["categorical:3"], projector="pgm", rows=50
    )
    with pytest.raises(WorkloadError, match="the graphical model of these"):
        synth.fit(datasets.census(500))
