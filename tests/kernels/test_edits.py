"""Edits: what is carried along equals a full recount, for every family and for mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import workloads
from private_gsd.counting.exact import count
from private_gsd.kernels import edits, halfspaces, predicates
from private_gsd.kernels.batches import score_edits
from private_gsd.kernels.cells import fill_atoms
from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.edits import Problem, State, Workspace
from private_gsd.kernels.halfspaces import fill_halfspace_gains
from private_gsd.kernels.marginals import fill_residuals
from private_gsd.projection.domain import random_table
from private_gsd.projection.objective import Objective
from tests.kernels.making import make_edits
from tests.projection.families import FAMILIES, begun, measured
from tests.strategies import encoded_values, examples, sql_workloads

pytestmark = pytest.mark.worker("large")

# Here they are kernels of their own, which are kept: no run but the first compiles them.
load_row, score_atoms = (kernel(part.py_func) for part in (edits.load_row, edits.score_atoms))
prepare_valued, score_valued, prepare_halfspaces, score_halfspaces = (
    kernel(part)
    for part in (
        predicates.prepare_valued,
        predicates.score_valued,
        halfspaces.prepare_halfspaces,
        halfspaces.score_halfspaces,
    )
)


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
    halfspace_gains = np.zeros_like(state.halfspace_gains)
    if problem.directions:
        queries = problem.directions.queries
        fill_halfspace_gains(queries, problem.weights, state.targets, recount, halfspace_gains)
    np.testing.assert_array_equal(state.halfspace_gains, halfspace_gains)


@pytest.mark.parametrize("name", FAMILIES)
def test_thousands_of_edits_equal_a_recount(name: str) -> None:
    objective, state = begun(FAMILIES[name](), 200, 7)
    loss = objective.loss(state)
    for turn in range(3):
        edits = random_edits(objective, state, 2000, turn)
        loss += make_edits(objective.problem, state, *edits, objective.workspace())
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
            objective.workspace(),
        )
        check(objective, state, loss)


def valued(
    problem: Problem,
    state: State,
    row: int,
    column: int,
    value: float,
    atom: int,
    workspace: Workspace,
) -> float:
    """What predicates that look at the number itself have to say."""
    if not problem.clauses:
        return 0.0
    here = (state.values[row], state.atoms[row], column)
    known = (problem.weights, state.targets, state.counts)
    space = (workspace.numbers, workspace.clause_gains, workspace.lines)
    found = prepare_valued(problem.clauses, *known, *here, workspace.met, *space)
    return float(score_valued(problem.clauses, *here, value, atom, *space, found))


@pytest.mark.parametrize("name", FAMILIES)
def test_scoring_an_edit_equals_making_it(name: str) -> None:
    """Deltas exactly, and what all atoms are scored at, to the rounding of float32."""
    objective, state = begun(FAMILIES[name](), 50, 11)
    problem, workspace = objective.problem, objective.workspace()
    before = objective.loss(state)
    rows, columns, values = random_edits(objective, state, 150, 5)
    scored_by_atom = not (problem.directions and len(problem.directions.queries))
    for row, column, value in zip(rows, columns, values, strict=True):
        here = np.array([row])
        deltas = np.zeros((1, 1))
        score_edits(problem, state, here, column, np.array([[value]]), deltas, workspace)
        copy = state.values.copy()
        copy[row, column] = value
        recount = count(objective.workload, copy, threads=1)
        after = float(objective.share_weights @ (state.targets - recount) ** 2)
        assert deltas[0, 0] == pytest.approx(after - before, rel=1e-9, abs=1e-6 * before)
        if scored_by_atom:
            load_row(problem, state, row, -1, workspace)
            score_atoms(problem, state, row, column, workspace)
            old, new = state.atoms[row, column], objective.state(copy).atoms[row, column]
            gain = workspace.scores[new] - workspace.scores[old]
            gain += valued(problem, state, row, column, value, new, workspace)
            gain -= valued(problem, state, row, column, state.values[row, column], old, workspace)
            size = np.abs(workspace.scores[np.isfinite(workspace.scores)]).max()
            assert gain == pytest.approx(-deltas[0, 0], abs=1e-5 * size)


def test_scoring_halfspaces_equals_making_the_edit() -> None:
    """What candidates are scored at, to the rounding of float32."""
    objective, state = begun(FAMILIES["halfspaces"](), 50, 12)
    problem, workspace = objective.problem, objective.workspace()
    discrete = problem.columns.discrete
    rows, columns, values = random_edits(objective, state, 150, 6)
    for row, column, value in zip(rows, columns, values, strict=True):
        deltas = np.zeros((1, 1))
        here = np.array([row])
        score_edits(problem, state, here, column, np.array([[value]]), deltas, workspace)
        load_row(problem, state, row, -1, workspace)
        prepare_halfspaces(
            problem.directions,
            discrete,
            state.halfspace_gains,
            state.values[row],
            state.atoms[row],
            column,
            workspace.products,
            workspace.slacks,
            workspace.gains,
        )
        copy = state.values[row : row + 1].copy()
        copy[0, column] = value
        atom = objective.state(copy).atoms[0, column]
        both = ((value, atom), (state.values[row, column], state.atoms[row, column]))
        after, before = [
            score_halfspaces(
                problem.directions,
                discrete,
                column,
                what,
                int(where),
                workspace.slacks,
                workspace.gains,
            )
            for what, where in both
        ]
        size = float(np.abs(workspace.gains).sum())
        assert after - before == pytest.approx(-deltas[0, 0], abs=1e-5 * size)
