"""Edits: what is carried along equals a full recount, for every family and for mixtures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Boolean, Categorical, Date, Integer, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.kernels import edits
from private_gsd.kernels.cells import fill_atoms
from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.coordinate_search import make_edits, score_edits
from private_gsd.kernels.edits import Problem, Row, State
from private_gsd.kernels.halfspaces import fill_pulls, prepare_halfspaces, score_halfspaces
from private_gsd.kernels.marginals import fill_residuals
from private_gsd.kernels.predicates import prepare_valued, score_valued
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.domain import random_table
from private_gsd.projection.objective import Objective
from private_gsd.workloads import Workload
from tests.strategies import encoded_values, examples, sql_workloads
from tests.workloads.random_sql import predicates_of

pytestmark = pytest.mark.worker("large")

# Here they are kernels of their own, which are kept: no run but the first compiles them.
load_row, score_atoms = (kernel(part.py_func) for part in (edits.load_row, edits.score_atoms))

SCHEMA = Schema(
    [
        Categorical("job", values=["a", "b", "c", "d", "e"], nullable=True),
        Boolean("owner"),
        Categorical("code", values=tuple(range(11))),
        Integer("age", lower=0, upper=99),
        Real("pay", lower=-10, upper=1000, decimals=1, nullable=True),
        Real("share", lower=0, upper=1),
        Date("day", lower="2020-01-01", upper="2024-12-31", nullable=True),  # type: ignore[arg-type]
    ]
)
FAMILIES: dict[str, Callable[[], Workload]] = {
    "one-way": lambda: workloads.categorical_marginals(SCHEMA, 1),
    "two-way": lambda: workloads.categorical_marginals(SCHEMA, 2),
    "three-way": lambda: workloads.categorical_marginals(SCHEMA, 3),
    "trees": lambda: workloads.tree_marginals(SCHEMA, 2, 4),
    "trees of two numbers": lambda: workloads.tree_marginals(
        SCHEMA, sets=[["age", "pay"], ["share", "day"]], depth=3, levels="all"
    ),
    "ranges with gaps": lambda: workloads.range_marginals(
        SCHEMA, {"age": [(0, 17), (10, 30), (65, 80)], "pay": [(0, 5.5)], "job": ...}
    ),
    "prefixes": lambda: workloads.random_prefixes(SCHEMA, 60, seed=1),
    "four conditions": lambda: workloads.random_prefixes(SCHEMA, 40, seed=2, k=4),
    "halfspaces": lambda: workloads.random_halfspaces(SCHEMA, 45, seed=3),
    "predicates": lambda: workloads.predicates(SCHEMA, predicates_of(SCHEMA, 80, 4, compared=0)),
    "compared numbers": lambda: workloads.predicates(
        SCHEMA, predicates_of(SCHEMA, 80, 5, compared=0.4)
    ),
}
FAMILIES["all of them"] = lambda: sum(
    (make() for name, make in list(FAMILIES.items())[1:-1]), FAMILIES["one-way"]()
)


def measured(workload: Workload, rng: np.random.Generator, rows: int = 500) -> Measurements:
    """Answers that nobody gave: any number will do."""
    return Measurements(
        workload,
        rng.normal(rows / 5, rows, workload.size),
        rng.uniform(0.5, 20, workload.num_groups),
        rows,
        ("",) * workload.num_groups,
        private=False,
    )


def begun(
    workload: Workload, rows: int, seed: int, weights: Any = "inverse-variance"
) -> tuple[Objective, State]:
    rng = np.random.default_rng(seed)
    objective = Objective(measured(workload, rng), weights)
    table = random_table(objective.problem.columns, rows, seed)
    return objective, objective.state(table)


def random_edits(
    objective: Objective, state: State, number: int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Rows, columns, and values from anywhere in the domain."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, len(state.values), number)
    columns = rng.integers(0, len(objective.schema), number)
    fresh = random_table(objective.problem.columns, number, seed + 1)
    return rows, columns, fresh[np.arange(number), columns]


def check(objective: Objective, state: State, loss: float) -> None:
    """All that is carried along, against a recount; the engine's own count as well."""
    recount = count(objective.workload, state.values, threads=1)
    np.testing.assert_array_equal(state.counts, recount)
    np.testing.assert_array_equal(objective.state(state.values).counts, recount)
    residuals = objective.shares * len(state.values) - recount
    assert loss == pytest.approx(float(objective.share_weights @ residuals**2), rel=1e-9)
    atoms = np.empty_like(state.atoms)
    fill_atoms(objective.problem.columns, state.values, atoms)
    np.testing.assert_array_equal(state.atoms, atoms)
    fresh = np.zeros_like(state.residuals)
    problem = objective.problem
    fill_residuals(problem.tables.sources, problem.weights, state.targets, recount, fresh)
    np.testing.assert_array_equal(state.residuals, fresh)
    pulls = np.zeros_like(state.pulls)
    queries = problem.directions.queries
    fill_pulls(queries, problem.weights, state.targets, recount, pulls)
    np.testing.assert_array_equal(state.pulls, pulls)


@pytest.mark.parametrize("name", FAMILIES)
def test_thousands_of_edits_equal_a_recount(name: str) -> None:
    objective, state = begun(FAMILIES[name](), 200, 7)
    loss = objective.loss(state)
    for turn in range(3):
        edits = random_edits(objective, state, 2000, turn)
        loss += make_edits(objective.problem, state, *edits, objective.row())
        check(objective, state, loss)


@given(st.data())
def test_edits_of_any_schema_equal_a_recount(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples(max_rows=12))
    workload = data.draw(sql_workloads(schema)) + workloads.random_halfspaces(schema, 9)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    weights: Any = data.draw(st.sampled_from(["inverse-variance", "equal"]))
    objective = Objective(measured(workload, rng), weights)
    table = np.ascontiguousarray(matrix)
    state = objective.state(table)
    loss = objective.loss(state)
    for _ in range(5):
        row = data.draw(st.integers(0, len(table) - 1))
        column = data.draw(st.integers(0, len(schema) - 1))
        value = data.draw(encoded_values(schema.columns[column]))
        loss += make_edits(
            objective.problem,
            state,
            np.array([row]),
            np.array([column]),
            np.array([value]),
            objective.row(),
        )
        check(objective, state, loss)


def valued(
    problem: Problem, state: State, row: int, column: int, value: float, atom: int, room: Row
) -> float:
    """What predicates that look at the number itself have to say."""
    if not problem.clauses:
        return 0.0
    here = (state.values[row], state.atoms[row], column)
    known = (problem.weights, state.targets, state.counts)
    space = (room.numbers, room.clause_gains, room.lines)
    found = prepare_valued(problem.clauses, *known, *here, room.met, *space)
    return float(score_valued(problem.clauses, *here, value, atom, *space, found))


@pytest.mark.parametrize("name", FAMILIES)
def test_scoring_an_edit_equals_making_it(name: str) -> None:
    """Deltas exactly, and what all atoms are scored at, to the rounding of float32."""
    objective, state = begun(FAMILIES[name](), 50, 11)
    problem, room = objective.problem, objective.row()
    before = objective.loss(state)
    rows, columns, values = random_edits(objective, state, 150, 5)
    scored_by_atom = len(problem.directions.queries) == 0
    for row, column, value in zip(rows, columns, values, strict=True):
        here = np.array([row])
        deltas = np.zeros((1, 1))
        score_edits(problem, state, here, column, np.array([[value]]), deltas, room)
        copy = state.values.copy()
        copy[row, column] = value
        recount = count(objective.workload, copy, threads=1)
        after = float(objective.share_weights @ (state.targets - recount) ** 2)
        assert deltas[0, 0] == pytest.approx(after - before, rel=1e-9, abs=1e-6 * before)
        if scored_by_atom:
            load_row(problem, state, row, -1, room)
            score_atoms(problem, state, row, column, room)
            old, new = state.atoms[row, column], objective.state(copy).atoms[row, column]
            gain = room.scores[new] - room.scores[old]
            gain += valued(problem, state, row, column, value, new, room)
            gain -= valued(problem, state, row, column, state.values[row, column], old, room)
            size = np.abs(room.scores[np.isfinite(room.scores)]).max()
            assert gain == pytest.approx(-deltas[0, 0], abs=1e-5 * size)


def test_scoring_halfspaces_equals_making_the_edit() -> None:
    """What candidates are scored at, to the rounding of float32."""
    objective, state = begun(FAMILIES["halfspaces"](), 50, 12)
    problem, room = objective.problem, objective.row()
    discrete = problem.columns.discrete
    rows, columns, values = random_edits(objective, state, 150, 6)
    for row, column, value in zip(rows, columns, values, strict=True):
        deltas = np.zeros((1, 1))
        here = np.array([row])
        score_edits(problem, state, here, column, np.array([[value]]), deltas, room)
        load_row(problem, state, row, -1, room)
        prepare_halfspaces(
            problem.directions,
            discrete,
            state.pulls,
            state.values[row],
            state.atoms[row],
            column,
            room.products,
            room.slacks,
            room.gains,
        )
        copy = state.values[row : row + 1].copy()
        copy[0, column] = value
        atom = objective.state(copy).atoms[0, column]
        both = ((value, atom), (state.values[row, column], state.atoms[row, column]))
        after, before = [
            score_halfspaces(
                problem.directions, discrete, column, what, int(where), room.slacks, room.gains
            )
            for what, where in both
        ]
        size = float(np.abs(room.gains).sum())
        assert after - before == pytest.approx(-deltas[0, 0], abs=1e-5 * size)


def test_atoms_without_a_value_are_barred() -> None:
    """Cuts between two steps of a grid make atoms that no value is in."""
    schema = Schema([Integer("n", lower=0, upper=3), Real("x", lower=0, upper=1, decimals=1)])
    workload = workloads.tree_marginals(schema, sets=[["n"], ["x"]], depth=5)
    objective, state = begun(workload, 40, 1)
    columns = objective.problem.columns
    barred = np.isinf(columns.barriers)
    for place in range(len(barred)):
        assert barred[place] == (columns.firsts[place] > columns.lasts[place])
    assert barred.sum() == 32 - 11
    assert {float(value) for value in state.values[:, 0]} == {0.0, 1.0, 2.0, 3.0}
    assert {round(value * 10) / 10 for value in state.values[:, 1]} == set(state.values[:, 1])


def test_cuts_that_rounding_puts_beside_the_grid() -> None:
    """The next number after 1.7 is more than 1.7, though ten times it is 17."""
    cut = float(np.nextafter(1.7, np.inf))
    assert np.ceil(cut * 10) == 17
    schema = Schema([Real("x", lower=0, upper=2, decimals=1)])
    workload = workloads.range_marginals(schema, {"x": [(0.0, cut), (cut, 2.0)]})
    columns = Objective(measured(workload, np.random.default_rng(0)), "equal").problem.columns
    assert columns.lasts.tolist() == [17, 20]
    assert columns.firsts.tolist() == [0, 18]


@given(st.data())
def test_random_tables_are_of_the_domain_and_cover_it(data: st.DataObject) -> None:
    schema, _ = data.draw(examples())
    workload = data.draw(sql_workloads(schema))
    objective = Objective(measured(workload, np.random.default_rng(0)), "equal")
    table = random_table(objective.problem.columns, 300, data.draw(st.integers(0, 2**63 - 1)))
    count(workload, table, threads=1)  # refuses what is outside
    for position, column in enumerate(schema):
        null = np.isnan(table[:, position])
        assert null.any() == column.nullable or (column.nullable and null.mean() < 0.05)
        if not isinstance(column, Real):
            assert (table[~null, position] == np.rint(table[~null, position])).all()
        elif column.decimals is not None:
            values = table[~null, position]
            np.testing.assert_array_equal(values, np.round(values, column.decimals) + 0.0)
