"""The adaptive mechanism: it measures what is worst, with what it planned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from private_gsd import Adaptive, BudgetError
from private_gsd.counting.exact import count
from private_gsd.mechanisms import Task
from private_gsd.privacy.budget import RhoBudget
from private_gsd.synthesis.synthesizer import Synthesizer
from private_gsd.workloads.specs import workload_of
from tests.fitting import ADAPTIVE, SCHEMA, TABLE


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
    task = Task(workload, workload, budget)
    units, parts = Adaptive(epochs=2, queries_per_epoch=3).allocate(task)
    each = budget.units // 12
    assert units == [pytest.approx(3 * each, abs=2)] * 2
    assert parts == [[pytest.approx(each, abs=2)] * 3] * 2
    assert 0 <= budget.units - sum(units) - sum(map(sum, parts)) < 12
    tenth = Adaptive(epochs=2, queries_per_epoch=3, selection_fraction=0.1)
    units, parts = tenth.allocate(task)
    assert sum(units) == pytest.approx(budget.units / 10, rel=1e-9)
    # No more epochs than there are groups to measure, and the last may be smaller.
    many = Adaptive(epochs=50, queries_per_epoch=4)
    assert [len(part) for part in many.allocate(task)[1]] == [4, 2]

    for wrong in ({"epochs": 0}, {"queries_per_epoch": "2"}, {"selection_fraction": 1}):
        with pytest.raises(BudgetError, match=next(iter(wrong))):
            Adaptive(**wrong)
