"""Sums: counted in whole steps, as a plain loop has it, and edited exactly."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import GeneticSearch, Measurements, datasets, evolve, workloads
from private_gsd.counting.exact import count, exact_counts
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.kernels.batches import score_edits
from private_gsd.mechanisms import Adaptive, OneShot, Task
from private_gsd.mechanisms.base import noise_scales
from private_gsd.privacy.budget import RhoBudget
from private_gsd.projection.objective import Objective
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import Sums, Workload, sums
from private_gsd.workloads.serialisation import dump_workload, load_workload
from private_gsd.workloads.specs import workload_of
from private_gsd.workloads.sums import STEPS, Part
from tests.kernels.making import make_edits
from tests.sql.people import SCHEMA, rows_of
from tests.workloads.random_sql import predicates_of

pytestmark = pytest.mark.worker("large")

QUERIES = [
    [Part(1, "age")],
    [Part(1, "pay", "job = 'a' OR age > 40")],
    [Part(3, "hours", "owner"), Part(-7, None, "owner"), Part(2, None)],
    [Part(-1, "begun", "ended > begun + 30")],
    [Part(16, "age", "pay > 100"), Part(-500, None, "age IS NOT NULL AND pay > 100")],
]
WORKLOAD = Workload(SCHEMA, (Sums(SCHEMA, QUERIES),))


def slow(family: Sums, rows: list[list[float]]) -> list[list[int]]:
    """What each row gives each sum; the obvious way."""
    found = []
    for row in rows:
        given_ = []
        for parts in family.queries:
            total = 0
            for part in parts:
                met = not part.where or truth_of(parse_predicate(SCHEMA, part.where), row) == 2
                if part.column is not None:
                    value = row[SCHEMA.names.index(part.column)]
                    low, high = SCHEMA[part.column].bounds
                    if met and not np.isnan(value):
                        total += part.factor * int((value - low) / (high - low) * STEPS + 0.5)
                elif met:
                    total += part.factor
            given_.append(total)
        found.append(given_)
    return found


def test_sums_are_counted_as_the_slow_way() -> None:
    rows = rows_of(SCHEMA, 300, 1)
    family = WORKLOAD.families[0]
    assert isinstance(family, Sums)
    expected = np.array(slow(family, rows.tolist())).sum(axis=0)
    np.testing.assert_array_equal(count(WORKLOAD, np.asfortranarray(rows)), expected)


@given(st.integers(0, 2**31), st.integers(0, 2**31))
def test_one_row_never_moves_a_sum_by_more_than_its_sensitivity(one: int, other: int) -> None:
    rows = [rows_of(SCHEMA, 1, seed) for seed in (one, other)]
    first, second = (count(WORKLOAD, np.asfortranarray(row)) for row in rows)
    assert ((first - second) ** 2 <= WORKLOAD.squared_sensitivities("replace-one")).all()
    assert (first**2 <= WORKLOAD.squared_sensitivities("add-remove")).all()
    assert (np.abs(first - second) <= WORKLOAD.max_contributions).all()


def test_the_sensitivity_is_reached() -> None:
    workload = sums(SCHEMA, ["age"])
    low, high = rows_of(SCHEMA, 1, 0), rows_of(SCHEMA, 1, 0)
    low[0, 4], high[0, 4] = 0, 99
    change = count(workload, np.asfortranarray(high)) - count(workload, np.asfortranarray(low))
    assert change[0] == workload.sensitivity() == STEPS


def test_edits_of_sums_are_scored_exactly() -> None:
    rows = rows_of(SCHEMA, 60, 2)
    workload = WORKLOAD + workloads.predicates(SCHEMA, predicates_of(SCHEMA, 20, 1))
    groups = workload.num_groups
    targets = np.random.default_rng(0).normal(0, 1000, workload.size)
    measurements = Measurements(workload, targets, np.ones(groups), 60, ("",) * groups, False)
    objective = Objective(measurements, "equal")
    state = objective.state(rows.copy())
    others = rows_of(SCHEMA, 400, 3)
    rng = np.random.default_rng(1)
    for number in range(400):
        row, column = int(rng.integers(60)), int(rng.integers(len(SCHEMA)))
        value = others[number, column]
        before = objective.loss(state)
        delta = np.zeros((1, 1))
        here = np.array([row])
        problem, workspace = objective.problem, objective.workspace()
        score_edits(problem, state, here, column, np.array([[value]]), delta, workspace)
        columns, values = np.array([column]), np.array([value])
        change = make_edits(problem, state, here, columns, values, workspace)
        assert change == pytest.approx(delta[0, 0], rel=1e-9, abs=1e-6)
        np.testing.assert_array_equal(state.counts, objective.state(state.values).counts)
        assert objective.loss(state) - before == pytest.approx(change, rel=1e-6, abs=1e-3)


def test_a_search_meets_sums() -> None:
    real = np.asfortranarray(rows_of(SCHEMA, 500, 4))
    workload = WORKLOAD + workloads.categorical_marginals(SCHEMA, 1)
    exact = count(workload, real).astype(np.float64)
    groups = workload.num_groups
    measured = Measurements(workload, exact, workload.max_contributions, 500, ("",) * groups, False)
    found = evolve(measured, GeneticSearch(rows=250), seed=1)
    error = np.abs(count(workload, found.matrix) / 250 - exact / 500)[: len(QUERIES)]
    assert (error < 0.02 * WORKLOAD.max_contributions).all()


def test_sums_get_the_noise_of_counts_in_their_own_units() -> None:
    workload = workloads.categorical_marginals(SCHEMA, 1) + sums(SCHEMA, ["age"])
    task = Task(workload, workload, RhoBudget.from_epsilon(1.0, 1e-6), "replace-one")
    scales = noise_scales(task, OneShot().plan(task).units)
    assert scales[-1] / STEPS == pytest.approx(scales[0])


def test_sums_are_not_selected_adaptively() -> None:
    task = Task(WORKLOAD, WORKLOAD, RhoBudget.from_epsilon(1.0, 1e-6), "replace-one")
    with pytest.raises(BudgetError, match="cannot select sums"):
        Adaptive().plan(task)


def test_sums_survive_saving_and_pickling() -> None:
    families, arrays = dump_workload(WORKLOAD)
    again = load_workload(SCHEMA, families, arrays)
    rows = np.asfortranarray(rows_of(SCHEMA, 50, 5))
    np.testing.assert_array_equal(count(again, rows), count(WORKLOAD, rows))
    np.testing.assert_array_equal(
        count(pickle.loads(pickle.dumps(WORKLOAD)), rows), count(again, rows)
    )
    assert [again.describe(group) for group in range(5)][2] == (
        "3 × sum(hours) where owner + -7 × count(*) where owner + 2 × count(*)"
    )


def test_sums_by_name_and_over_a_table() -> None:
    schema = datasets.census_schema()
    workload = workload_of(schema, ["sum:1"])
    table = datasets.census(400)
    exact = exact_counts(workload, table)
    names = [workload.describe(group) for group in range(workload.num_groups)]
    place = names.index("sum(age)")
    low, high = schema["age"].bounds
    steps = [int((age - low) / (high - low) * STEPS + 0.5) for age in table["age"].to_pylist()]
    assert exact.counts[place] == sum(steps)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([Part(1, "aeg")], r"no column 'aeg' \(did you mean 'age'"),
        ([Part(1, "job")], "only numbers can be summed"),
        ([Part(0, "age")], "at most a million, not 0"),
        ([Part(1, "age", "age <")], "not SQL"),
        ([], "none of them empty"),
    ],
)
def test_sums_that_make_no_sense(parts: list[Part], words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        Sums(SCHEMA, [parts])


@pytest.mark.parametrize("columns", ["age", []])
def test_sums_of_no_list(columns: list[str]) -> None:
    with pytest.raises(WorkloadError, match="give a list of columns"):
        sums(SCHEMA, columns)
    with pytest.raises(WorkloadError, match="should read sum, the sum"):
        workload_of(SCHEMA, ["sum:2"])
