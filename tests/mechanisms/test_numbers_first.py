"""Numbers first: the contract on a table with numbers, what is spent on what, and cut points."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import (
    AIM,
    MST,
    Adaptive,
    Categorical,
    Integer,
    Layered,
    Measurements,
    Mechanism,
    NumbersFirst,
    OneShot,
    Schema,
    Synthesizer,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError
from private_gsd.mechanisms.base import Task, noise_scales, plan_run
from private_gsd.mechanisms.cut_marginals import CELLS, LEVELS, cut
from private_gsd.mechanisms.registry import mechanism_from_dict
from private_gsd.mechanisms.steps import Measure
from private_gsd.privacy.budget import RhoBudget
from private_gsd.workloads import Workload
from private_gsd.workloads.histograms import first_histograms, histogram_feature
from private_gsd.workloads.specs import workload_of
from tests.fitting import QUICK
from tests.mechanisms.contract import MechanismContract, Watched

SCHEMA = Schema(
    [
        Categorical("a", values=["x", "y"]),
        Integer("n", lower=0, upper=500, nullable=True),
        Integer("m", lower=-50, upper=100_000),
    ]
)
TARGET = workload_of(SCHEMA, ["categorical:1", "tree:2", "numeric:2"])


def numbers(rows: int = 500) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A table in which both numbers have a value that many rows share."""
    rng = np.random.default_rng(5)
    table = np.column_stack(
        [
            rng.integers(0, 2, rows),
            np.where(rng.random(rows) < 0.5, 501 - 1, rng.integers(0, 100, rows)),
            np.where(rng.random(rows) < 0.4, 0, rng.integers(1000, 50_000, rows)),
        ]
    ).astype(np.float64)
    table[rng.random(rows) < 0.1, 1] = np.nan
    return table


class WatchedNumbers(Watched):
    """Runs on a table with numbers, with enough budget that cells are split."""

    def __init__(self, mechanism: Mechanism, neighbours: Any, *, limited: bool) -> None:
        super().__init__(mechanism, neighbours, limited=limited, target=TARGET, table=numbers())
        budget = RhoBudget.from_epsilon(20.0, 1e-6, self.task.budget.conversion)
        self.task = replace(self.task, budget=budget)
        self.payments = type(self.payments)(budget)

    def _project(self, measured: Any, start: Any, number: int) -> Any:
        self.projections += 1
        self.starts += start is not None
        seeds = [number, int(abs(measured.counts).sum())]
        table = numbers(40)
        return table[np.random.default_rng(seeds).permutation(40)]


class TestNumbersFirst(MechanismContract):
    """With numbers, and every mechanism after it."""

    watched = WatchedNumbers

    @pytest.fixture(
        params=[
            OneShot(),
            MST(),
            pytest.param(Layered(), marks=pytest.mark.slow),
            pytest.param(Adaptive(epochs=2), marks=pytest.mark.slow),
            pytest.param(AIM(), marks=pytest.mark.slow),
        ],
        ids=repr,
    )
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return NumbersFirst(request.param)


def task_of(mechanism: Mechanism, epsilon: float = 1.0) -> Task:
    return Task(mechanism.candidates(TARGET), TARGET, RhoBudget.from_epsilon(epsilon, 1e-6, "gdp"))


def measured_in(watched: Watched) -> Measurements:
    return watched.run().measurements


def test_histograms_come_first_and_get_their_fraction_at_most() -> None:
    mechanism = NumbersFirst(fraction=0.2)
    task = task_of(mechanism)
    names = [task.workload.describe(group) for group in range(task.workload.num_groups)]
    assert names[0].startswith("n (histogram of")
    assert names[1].startswith("m (histogram of")
    assert names[2:] == ["m (how round)", "a", "a x n", "a x m", "n x m"]
    assert mechanism.counted_first(task.workload).num_groups == 3
    plan = mechanism.plan(task)
    assert plan.total == task.budget.units
    rest = sum(plan.units[3:])
    assert rest / plan.total == pytest.approx(0.8, abs=0.01)
    scales = noise_scales(task, plan.units)
    assert scales[0] == pytest.approx(scales[1]) == pytest.approx(scales[2])
    assert scales[3:].max() == pytest.approx(scales[3:].min(), rel=1e-6)


def test_what_levels_do_not_need_goes_to_the_marginals() -> None:
    watched = WatchedNumbers(NumbersFirst(), "replace-one", limited=False)
    planned = noise_scales(watched.task, watched.plan.units)
    measured = measured_in(watched)
    assert watched.payments.spent > 0.999 * watched.task.budget.units
    groups = [measured.workload.describe(each) for each in range(measured.workload.num_groups)]
    scale = measured.scales[groups.index("a x m")]
    assert scale <= planned[watched.task.workload.num_groups - 2] * 1.0001


def test_marginals_are_cut_where_the_data_is() -> None:
    """Values that many rows share have cells of their own, and null too."""
    measured = measured_in(WatchedNumbers(NumbersFirst(), "replace-one", limited=False))
    [last] = [family for family in measured.workload.families if family.marginals]
    tables = {marginal.positions: marginal.tables for marginal in last.marginals}
    coarse, fine = tables[(0, 1)]
    assert len(coarse[1].breaks) < len(fine[1].breaks)
    assert set(coarse[1].breaks) <= set(fine[1].breaks)
    assert fine[1].nullable
    assert 500.0 in fine[1].breaks
    assert tables[(0, 2)][-1][1].breaks[0] == 1.0  # 0, and the empty stretch below
    assert all(table[0].segments == (0, 1) for table in tables[(0, 1)])
    assert len(tables[(1, 2)]) == len(LEVELS[1])


def test_levels_are_ever_finer_partitions() -> None:
    measured = measured_in(WatchedNumbers(NumbersFirst(), "add-remove", limited=False))
    found: dict[int, list[set[float]]] = {}
    for family in measured.workload.families:
        for feature in family.histograms:
            found.setdefault(feature.position, []).append(set(feature.breaks))
            assert not feature.has_gap
    assert all(len(levels) > 1 for levels in found.values())
    for levels in found.values():
        assert all(one < other for one, other in itertools.pairwise(levels))


def test_a_level_costs_what_one_histogram_costs() -> None:
    """A row is in one cell of a level: the sensitivity does not grow with the cells."""
    for workload in (
        Workload(SCHEMA, (first_histograms(SCHEMA),)),
        NumbersFirst().candidates(TARGET),
    ):
        squares = workload.squared_sensitivities("replace-one")
        assert (squares[:2] == 2).all()
        assert (workload.squared_sensitivities("add-remove")[:2] == 1).all()


def test_without_numbers_it_is_the_other_mechanism() -> None:
    schema = Schema([Categorical("a", values=["x", "y"]), Categorical("b", values=["x", "y"])])
    target = workloads.categorical_marginals(schema, 2)
    budget = RhoBudget.from_epsilon(1.0, 1e-6)
    for then in (OneShot(), Adaptive()):
        mechanism = NumbersFirst(then)
        assert mechanism.candidates(target) is target
        task = Task(target, target, budget)
        assert plan_run(mechanism, task) == plan_run(then, task)


def test_single_numbers_alone_get_all_of_the_budget() -> None:
    schema = Schema([Integer("n", lower=0, upper=100)])
    target = workload_of(schema, ["tree:1"])
    mechanism = NumbersFirst()
    workload = mechanism.candidates(target)
    assert workload.num_groups == 1
    plan = mechanism.plan(Task(workload, target, RhoBudget.from_epsilon(1.0, 1e-6)))
    assert plan.total == RhoBudget.from_epsilon(1.0, 1e-6).units
    assert plan.units[0] * 3 == pytest.approx(plan.total, rel=0.01)  # three levels


def test_cut_keeps_other_families_and_the_number_of_groups() -> None:
    workload = TARGET + workloads.random_prefixes(SCHEMA, 5)
    feature = histogram_feature(SCHEMA, 2, np.array([-50, 0, 1, 10_000]))
    found = cut(workload, {2: (feature,) * len(CELLS)})
    assert found.num_groups == workload.num_groups
    assert found.families[1] is workload.families[1]
    assert found.families[0].marginals[2].tables == (
        (workload.families[0].marginals[0].tables[0][0], feature),
    )


def test_ranges_that_the_user_named_stay() -> None:
    """Cut points replace those of binary trees alone."""
    ranges = workloads.range_marginals(SCHEMA, {"n": [(0, 99), (100, 499)]})
    target = ranges + workload_of(SCHEMA, ["tree:2", "tree:1"])
    candidates = NumbersFirst().candidates(target)
    names = [candidates.describe(group) for group in range(candidates.num_groups)]
    assert names[3:] == ["n", "a x n", "a x m"]
    [tables] = [each.marginals for each in candidates.families if each.marginals]
    assert tables[0] == ranges.families[0].marginals[0]
    feature = histogram_feature(SCHEMA, 1, np.array([0, 7]))
    found = cut(candidates, {1: (feature,) * len(CELLS)})
    [marginals] = [each.marginals for each in found.families if each.marginals]
    assert marginals[0] == ranges.families[0].marginals[0]
    assert marginals[1].tables[0][1] == feature


@given(
    seed=st.integers(0, 10**6),
    upper=st.integers(1, 2000),
    spikes=st.integers(0, 40),
    epsilon=st.floats(0.05, 50),
)
@settings(max_examples=25)
def test_measured_cells_are_at_most_the_planned_ones(
    seed: int, upper: int, spikes: int, epsilon: float
) -> None:
    """What was checked before paying holds: sizes of tables, and their number."""
    schema = Schema([Categorical("a", values=["x", "y"]), Integer("n", lower=0, upper=upper)])
    target = workload_of(schema, ["tree:2"])
    mechanism = NumbersFirst()
    task = Task(mechanism.candidates(target), target, RhoBudget.from_epsilon(epsilon, 1e-6, "gdp"))
    rng = np.random.default_rng(seed)
    values = np.concatenate(
        [rng.integers(0, upper + 1, 200), np.repeat(rng.integers(0, upper + 1, spikes), 200)]
    )
    rows = np.column_stack([rng.integers(0, 2, len(values)), values]).astype(np.float64)
    steps = mechanism.steps(task)
    measured, result = None, None
    while True:
        step = steps.send(result)
        if not isinstance(step, Measure):
            break
        workload = (step.workload or task.workload).select(step.groups)
        noise = rng.normal(
            0, noise_scales(replace(task, workload=workload), step.units).mean(), workload.size
        )
        groups = workload.num_groups
        counts, scales = count(workload, rows) + noise, np.full(groups, max(noise.std(), 1e-3))
        charges = ("",) * groups
        new = Measurements(workload, counts, scales, len(rows), charges, private=False)
        result = measured = new if measured is None else measured + new
    assert measured is not None
    [planned] = [m for family in task.workload.families for m in family.marginals]
    [found] = [m for family in measured.workload.families for m in family.marginals]
    assert found.size <= planned.size
    assert len(found.tables) <= len(planned.tables)


def test_no_level_has_more_cells_than_a_run_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MOST_CELLS", 60), ("MOST_CELLS_OF_LEVEL", 30)):
        with monkeypatch.context() as patch:
            patch.setattr(f"private_gsd.mechanisms.numbers_first.{name}", most)
            measured = measured_in(WatchedNumbers(NumbersFirst(), "replace-one", limited=False))
        sizes = [
            f.size - f.nullable for each in measured.workload.families for f in each.histograms
        ]
        first = max(f.size for f in first_histograms(SCHEMA).histograms)
        assert max(sizes) <= max(30, first)
    measured = measured_in(WatchedNumbers(NumbersFirst(), "replace-one", limited=False))
    assert max(f.size for each in measured.workload.families for f in each.histograms) > 40


def test_all_levels_fit_into_a_workload_beside_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured_cells() -> int:
        watched = WatchedNumbers(NumbersFirst(), "replace-one", limited=False)
        return measured_in(watched).workload.size

    without = measured_cells()
    planned = NumbersFirst().candidates(TARGET).size
    assert planned + 100 < without
    for limit in (planned, planned + 100, without - 1):
        monkeypatch.setattr("private_gsd.mechanisms.numbers_first.CELL_LIMIT", limit)
        assert measured_cells() <= limit


@pytest.mark.parametrize("projector", ["pgm", "rap", "rap++", "gem"])
def test_every_projector_takes_the_defaults(projector: str) -> None:
    """Histograms and patterns are no queries of a projector."""
    schema = datasets.census_schema().select(["sex", "income", "birth_date"])
    forecast = Synthesizer(schema, 1.0, projector=projector).plan(expected_records=3000)
    assert forecast.mechanism.name == "numbers-first"
    assert "patterns" in repr(forecast.workload)


@pytest.mark.parametrize("mechanism", ["auto", "mst", "adaptive"])
def test_a_single_column_of_few_values(mechanism: str) -> None:
    schema = Schema([Integer("n", lower=1, upper=5)])
    table = pa.table({"n": [1, 2, 2, 5] * 50})
    synth = Synthesizer(schema, 5.0, mechanism=mechanism, rows=100, projector=QUICK)
    made = synth.fit(table, insecure_noise_seed=1).sample()["n"].to_numpy()
    assert 10 <= (made == 1).sum() <= 40
    assert 30 <= (made == 2).sum() <= 70


def test_settings_are_checked() -> None:
    for bad in (0, 1, -0.1, "half", float("nan")):
        with pytest.raises(BudgetError, match="fraction"):
            NumbersFirst(fraction=bad)  # type: ignore[arg-type]
    for then in ("one-shot", None, NumbersFirst()):
        with pytest.raises(BudgetError, match="then must be another mechanism"):
            NumbersFirst(then)  # type: ignore[arg-type]
    nested = NumbersFirst(Adaptive(epochs=3), 0.3)
    assert mechanism_from_dict(nested.to_dict()) == nested
    assert nested.gaussian_noise_only is False
    assert NumbersFirst().gaussian_noise_only is True


def test_defaults_measure_numbers_first_unless_one_shot_is_asked() -> None:
    schema = datasets.census_schema().select(["sex", "age", "income"])
    table = datasets.census(400).select(schema.names)
    for chosen, name in (
        ({}, "numbers-first"),
        ({"mechanism": "adaptive"}, "numbers-first"),
        ({"mechanism": "layered"}, "numbers-first"),
        ({"mechanism": "one-shot"}, "one-shot"),
        ({"workload": "tree:2"}, "one-shot"),
    ):
        synth = Synthesizer(schema, 1.0, rows=50, projector=QUICK, **chosen)  # type: ignore[arg-type]
        assert synth.fit(table).release_.settings.mechanism.name == name
