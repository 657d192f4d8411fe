"""Joint last: its cells, when it is worth it, what it spends, and what a table keeps by it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Budget,
    Categorical,
    Integer,
    JointLast,
    Knowledge,
    Layered,
    NumbersFirst,
    Release,
    Schema,
    StrongestPairs,
    Synthesizer,
    datasets,
)
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.mechanisms import joint_last
from private_gsd.mechanisms.base import Plan, Task
from private_gsd.mechanisms.defaults import choose_joint
from private_gsd.mechanisms.joint_last import MOST_COLUMNS, balanced, joint_table
from private_gsd.mechanisms.registry import mechanism_from_dict
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import gaussian_scale
from private_gsd.workloads import Workload
from private_gsd.workloads.features import discrete_feature
from private_gsd.workloads.specs import default_specs, workload_of
from tests.fitting import QUICK
from tests.mechanisms.contract import MechanismContract
from tests.mechanisms.tables import spent

BUDGET = RhoBudget.from_epsilon(1.0, 1e-8)
STEPS = ["measure", "joint: measure"]


def parity(
    rows: int, numeric: int, binary: int, seed: int = 0, **more: int
) -> tuple[Schema, pa.Table]:
    """Numbers and binary columns, of which y says whether an odd number is large; and others."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 100, (rows, numeric))
    bits = rng.integers(0, 2, (rows, binary))
    odd = (np.column_stack([numbers >= 50, bits]).sum(axis=1)) % 2
    described: list[Any] = [Integer(f"n{i}", lower=0, upper=99) for i in range(numeric)]
    described += [Categorical(f"b{i}", values=[0, 1]) for i in range(binary)]
    described += [Categorical(name, values=list(range(size))) for name, size in more.items()]
    others = [rng.integers(0, size, rows) for size in more.values()]
    schema = Schema([*described, Categorical("y", values=[0, 1])])
    columns = [*numbers.T, *bits.T, *others, odd]
    return schema, pa.table(dict(zip(schema.names, columns, strict=True)))


def agreement(release: Release, numeric: int, binary: int) -> float:
    """In how many rows y is the parity."""
    values = np.asarray(release.matrix)
    found = (values[:, :numeric] >= 50).sum(axis=1)
    found += values[:, numeric : numeric + binary].sum(axis=1).astype(int)
    return float((found % 2 == values[:, -1]).mean())


def joint_of(release: Release) -> list[Any]:
    """The joint tables that were measured."""
    measured = release.measurements()
    assert measured is not None
    columns = len(release.schema)
    return [
        marginal
        for family in measured.workload.families
        for marginal in family.marginals
        if len(marginal.positions) == columns
    ]


def steps_of(release: Release) -> list[str]:
    return [charge["run"].split(" ", 1)[1] for charge in release.privacy["charges"]]


class TestOfNumbers(MechanismContract):
    """After histograms of numbers, the contract holds as well."""

    @pytest.fixture
    def mechanism(self) -> NumbersFirst:
        return NumbersFirst(JointLast())


@given(
    sizes=st.lists(st.integers(2, 30), min_size=3, max_size=7),
    nullable=st.lists(st.booleans(), min_size=7, max_size=7),
    most=st.integers(1, 5000),
)
def test_a_joint_table_has_not_too_many_cells(
    sizes: list[int], nullable: list[bool], most: int
) -> None:
    schema = Schema(
        [
            Categorical(f"c{place}", values=list(range(size)), nullable=nullable[place])
            for place, size in enumerate(sizes)
        ]
    )
    finest = [discrete_feature(schema, place) for place in range(len(sizes))]
    table = joint_table(schema, finest, most)
    smallest = math.prod(2 + nullable[place] for place in range(len(sizes)))
    size = math.prod(feature.size for feature in table)
    assert size <= max(most, smallest)
    for feature, full in zip(table, finest, strict=True):
        assert 2 <= feature.size - feature.nullable <= full.size - full.nullable
        # No column can have twice as many cells.
        twice = min(2 * (feature.size - feature.nullable), full.size - full.nullable)
        grown = size // feature.size * (twice + feature.nullable)
        assert feature == full or grown > most


def test_eight_numbers_are_256_cells() -> None:
    schema = Schema([Integer(f"n{i}", lower=0, upper=999) for i in range(8)])
    target = workload_of(schema, default_specs(schema, 2))
    candidates = NumbersFirst(JointLast()).candidates(target)
    assert candidates.group_sizes[-1] == 256
    assert candidates.describe(candidates.num_groups - 1).count(" x ") == 7


def test_joined_categories_have_about_the_same_mass() -> None:
    schema = Schema([Categorical("c", values=list("abcdef"), nullable=True)])
    (even,) = joint_table(schema, [discrete_feature(schema, 0)], 1)
    assert even.size == 3
    shares = np.array([0.5, 0.05, 0.2, 0.1, 0.1, 0.0, 0.05])
    found = balanced(even, shares)
    assert found.nullable
    assert found.size == 3
    masses = np.bincount(found.segments, weights=shares[:6])
    np.testing.assert_allclose(np.sort(masses), [0.45, 0.5])
    # No mass at all: every cell has a category still.
    assert balanced(even, np.zeros(7)).size == 3


def task_of(target: Workload, n: int | None, neighbours: Any = "replace-one") -> Task:
    return Task(target, target, BUDGET, neighbours, n_records=n)


def plan_of(schema: Schema, n: int | None, neighbours: Any = "replace-one") -> Plan | None:
    target = workload_of(schema, default_specs(schema, 2))
    found = choose_joint(target, task_of(target, n, neighbours))
    if found is None:
        return None
    workload = found.candidates(target)
    return found.plan(replace(task_of(target, n, neighbours), workload=workload))


def test_it_is_worth_it_by_public_sizes() -> None:
    """By the noise of an interaction, and columns have more cells where there is less noise."""
    schema, _ = parity(10, 0, 2, a=9, b=5)
    cells = []
    for n in (400, 2000, 20_000):
        plan = plan_of(schema, n)
        if plan is None or plan.joint is None:
            cells.append(0)
            continue
        noise = gaussian_scale(2, plan.units[-1], BUDGET.conversion)
        assert plan.joint.noise == pytest.approx(noise)
        assert plan.joint.columns == len(schema)
        assert math.sqrt(plan.joint.cells) * noise <= joint_last.MOST_NOISE * n
        assert plan.units[-1] == pytest.approx(0.1 * BUDGET.units, rel=1e-6)
        cells.append(plan.joint.cells)
    assert cells == [0, 32, 360]
    # Under add-remove neighbours there is less noise.
    assert plan_of(schema, 1300) is None
    assert plan_of(schema, 1300, "add-remove") is not None


def test_tables_of_many_columns_stay_as_they_are() -> None:
    def chosen(columns: int) -> JointLast | None:
        schema = Schema([Categorical(f"c{i}", values=[0, 1]) for i in range(columns)])
        target = workload_of(schema, ["categorical:2"])
        return choose_joint(target, task_of(target, 10**7))

    assert chosen(2) is None
    assert chosen(3) is not None
    assert chosen(MOST_COLUMNS) is not None
    assert chosen(MOST_COLUMNS + 1) is None
    schema = datasets.census_schema()
    target = workload_of(schema, default_specs(schema, 2))
    assert choose_joint(target, task_of(target, 10**6)) is None
    # Single columns alone are measured where noise hides pairs, and the joint table with them.
    few = schema.select(["sex", "marital", "citizen"])
    target = workload_of(few, ["categorical:1"])
    assert choose_joint(target, task_of(target, 10**6)) is None


def test_what_a_user_names_is_left_alone() -> None:
    schema, table = parity(2000, 0, 3)
    for settings in (
        {"workload": ["categorical:2"]},
        {"mechanism": "one-shot"},
        {"projector": "gsd:denoise=false"},
    ):
        forecast = Synthesizer(schema, 1.0, **settings).plan(expected_records=2000)
        assert forecast.plan.joint is None
        assert forecast.joint_summary == ""
    forecast = Synthesizer(schema, 1.0).plan(table)
    assert isinstance(forecast.mechanism, JointLast)
    assert forecast.plan.joint is not None
    assert forecast.document()["joint"] == forecast.plan.joint._asdict()
    assert forecast.plan.joint.cells == 16
    assert "all 4 columns are measured together, in a table of 16 cells" in forecast.joint_summary
    assert forecast.groups[-1].queries == 16


def test_it_pays_for_two_steps_and_resumes(tmp_path: Path) -> None:
    schema, table = parity(3000, 0, 3, a=7)
    synth = Synthesizer(schema, 1.0, rows=300).fit(table, release=tmp_path / "r")
    release = synth.release_
    assert steps_of(release) == STEPS
    left = RhoBudget.from_epsilon(1.0, 1 / 3000**2, "gdp").units - spent(release)
    assert 0 <= left < 20  # less than a unit a group
    rho = np.array([charge["rho"] for charge in release.privacy["charges"]])
    np.testing.assert_allclose(rho / rho.sum(), [0.9, 0.1], rtol=1e-6)
    assert mechanism_from_dict(release.settings.mechanism.to_dict()) == release.settings.mechanism
    before = release.matrix.copy()
    (joint,) = joint_of(release)
    assert joint.size <= 112
    again = Synthesizer.resume(tmp_path / "r", table).release_
    assert steps_of(again) == STEPS
    np.testing.assert_array_equal(again.matrix, before)


@pytest.mark.parametrize(("numeric", "binary"), [(0, 3), (2, 0), (1, 2)])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_release_keeps_what_no_pair_shows(numeric: int, binary: int, neighbours: Any) -> None:
    schema, table = parity(4000, numeric, binary)
    budget = Budget(1.0, delta=1e-7, neighbours=neighbours)
    synth = Synthesizer(schema, budget, threads=1).fit(table, insecure_noise_seed=1)
    assert len(joint_of(synth.release_)) == 1
    assert agreement(synth.release_, numeric, binary) > 0.9


def test_a_private_number_of_records_decides_when_it_is_measured() -> None:
    """The joint table is a candidate, and too few records leave all to the marginals."""
    schema, many = parity(3000, 0, 4)
    budget = Budget(1.0, delta=1e-7, neighbours="add-remove")
    for table, steps in ((many, STEPS), (many.slice(0, 250), STEPS[:1])):
        synth = Synthesizer(schema, budget, rows=200, projector="gsd:generations=1")
        release = synth.fit(table).release_
        assert steps_of(release)[1:] == steps
        resolved = RhoBudget.from_epsilon(1.0, 1e-7, "gdp")
        assert 0 <= resolved.units - spent(release) < 20
    few = Synthesizer(schema, budget).plan(expected_records=250)
    assert few.joint_summary == ""
    assert all(" x " in group.name and group.name.count(" x ") == 1 for group in few.groups)
    assert Synthesizer(schema, budget).plan(expected_records=3000).joint_summary


def test_numbers_are_cut_at_their_medians() -> None:
    schema, table = parity(4000, 3, 0)
    synth = Synthesizer(schema, 2.0, rows=500, threads=1).fit(table, insecure_noise_seed=1)
    (joint,) = joint_of(synth.release_)
    for feature in joint.tables[0][:3]:
        halves = feature.breaks[len(feature.breaks) // 2]
        assert 46 <= halves <= 54


@pytest.mark.slow
def test_rules_and_derived_statistics_go_with_it() -> None:
    schema, table = parity(4000, 2, 1)
    ruled = replace(schema, constraints=("NOT (n0 < 20 AND b0 = 1)",))
    kept = table.filter(pa.array(~((table["n0"].to_numpy() < 20) & (table["b0"].to_numpy() == 1))))
    knowledge = Knowledge(derived_statistics=("median(n1)",))
    synth = Synthesizer(ruled, 1.0, knowledge=knowledge, threads=1)
    release = synth.fit(kept, insecure_noise_seed=1).release_
    assert len(joint_of(release)) == 1
    values = np.asarray(release.matrix)
    assert not ((values[:, 0] < 20) & (values[:, 2] == 1)).any()
    assert agreement(release, 2, 1) > 0.8


def test_layered_may_come_first() -> None:
    schema, table = parity(3000, 0, 3, a=3)
    synth = Synthesizer(schema, 3.0, rows=300, threads=1).fit(table, insecure_noise_seed=1)
    mechanism = synth.release_.settings.mechanism
    assert isinstance(mechanism, JointLast)
    assert mechanism.first == Layered()
    assert agreement(synth.release_, 0, 3) > 0.9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"first": StrongestPairs()}, "first must be OneShot"),
        ({"first": JointLast()}, "first must be OneShot"),
        ({"cells": 0}, "cells must be"),
        ({"fraction": 1.5}, "fraction must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BudgetError, match=words):
        JointLast(**settings)


def test_what_it_cannot_measure_is_refused() -> None:
    schema, table = parity(500, 0, 1)
    for workload in (["categorical:2"], ["halfspace:10"]):
        with pytest.raises(WorkloadError, match="a table of 3 to 12 columns"):
            Synthesizer(schema, 1.0, workload=workload, mechanism="joint-last").fit(table)
    schema, table = parity(500, 0, 3)
    with pytest.raises(WorkloadError, match="goes with the projector 'gsd' that denoises"):
        Synthesizer(schema, 1.0, mechanism="joint-last", projector=QUICK).fit(table)
