"""Edits: the effect of replacing one value of one row on the queries of all families.

The scores of all values of a column are computed at once, up to rounding. The effect of the chosen
edit on the loss is then computed exactly, from integer counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.cells import Columns
from private_gsd.kernels.compiling import inlined, kernel
from private_gsd.kernels.conjunctions import (
    Conditions,
    apply_conjunctions,
    count_conjunctions_of,
    delta_conjunctions,
    score_conjunctions,
)
from private_gsd.kernels.halfspaces import (
    Directions,
    apply_halfspaces,
    count_halfspaces_of,
    delta_halfspaces,
    has_halfspaces,
    load_halfspaces,
)
from private_gsd.kernels.marginals import (
    MarginalTables,
    apply_tables,
    count_tables_of,
    delta_tables,
    load_tables,
    score_tables,
)
from private_gsd.kernels.predicates import (
    count_clauses_of,
    edit_clauses,
    load_clauses,
    looks_at_number,
    score_clauses,
)
from private_gsd.kernels.programs import Clauses
from private_gsd.kernels.rules import Rules, forbid_atoms, keeps, ruled_by_number
from private_gsd.kernels.sums import Parts, count_sums_of, edit_sums, is_summed


class Problem(NamedTuple):
    """The constant part of a search.

    What there is none of is an empty tuple. It has another type, and a kernel for such a problem is
    compiled without the parts that it does not need.
    """

    columns: Columns
    tables: MarginalTables
    conditions: Conditions | tuple[()]
    directions: Directions | tuple[()]
    clauses: Clauses | tuple[()]
    """Predicates."""
    parts: Parts | tuple[()]
    """Sums."""
    rules: Rules | tuple[()]
    """The rules that every row keeps."""
    valued: tuple[bool] | tuple[()]
    """Not empty where queries or rules may depend on numbers, not only on their atoms."""
    weights: Any
    """The weight of each query."""


class State(NamedTuple):
    """A table and its counts."""

    values: Any
    """The table."""
    atoms: Any
    """The atom of each value."""
    targets: Any
    """For each query, the number of rows that should satisfy it."""
    counts: Any
    """For each query, the number of rows that satisfy it."""
    residuals: Any
    """For the tables, weighted target minus weighted count, in all orders."""
    halfspace_gains: Any
    """For each halfspace, the gain of one more row in it."""


class Workspace(NamedTuple):
    """Arrays that a thread works in, for one row at a time."""

    cells: Any
    """The cell of the row in each feature."""
    products: Any
    """The product of the row with each direction."""
    trial: Any
    """The products after an edit."""
    sums: Any
    """A sum for each cell of each feature."""
    scores: Any
    """A score for each atom of the column with the most atoms."""
    steps: Any
    """A step for each of these atoms, and one more; see ``range_gains``."""
    slacks: Any
    """The slack of each direction."""
    gains: Any
    """The gain of each direction."""
    candidates: Any
    """Candidate values, and their atoms."""
    met: Any
    """For each predicate, whether the row satisfies it."""
    numbers: Any
    """The numbers on the stack of a comparison's program."""
    clause_gains: Any
    """The gain of each entry of the predicates."""
    lines: Any
    """Coefficient, offset, gain and operator of each of these entries."""
    order: Any
    """The columns that may change, in random order."""
    values: Any
    """The values of a proposed row."""
    atoms: Any
    """The atoms of the proposed row."""
    stream: Any
    """The state of a stream of random numbers."""


@inlined
def load_row(problem, state, row, column, workspace):  # type: ignore[no-untyped-def]
    """Load a row into the workspace, to edit any of its columns (-1) or only the given one."""
    load_tables(problem.tables, state.atoms[row], workspace.cells)
    load_halfspaces(
        problem.directions,
        problem.columns.discrete,
        state.values[row],
        state.atoms[row],
        workspace.products,
    )
    load_clauses(
        problem.clauses,
        state.values[row],
        state.atoms[row],
        column,
        workspace.numbers,
        workspace.met,
    )


@kernel
def count_rows(problem, values, atoms, counts, workspace):  # type: ignore[no-untyped-def]
    """Add the rows of a table to ``counts``, for every query that has a kernel."""
    for row in range(values.shape[0]):
        load_tables(problem.tables, atoms[row], workspace.cells)
        count_tables_of(problem.tables, workspace.cells, counts)
        count_conjunctions_of(problem.conditions, atoms[row], counts)
        load_halfspaces(
            problem.directions,
            problem.columns.discrete,
            values[row],
            atoms[row],
            workspace.products,
        )
        count_halfspaces_of(problem.directions, workspace.products, counts)
        load_clauses(problem.clauses, values[row], atoms[row], -1, workspace.numbers, workspace.met)
        count_clauses_of(problem.clauses, workspace.met, counts)
        count_sums_of(problem.parts, values[row], atoms[row], workspace.numbers, counts)


@inlined
def score_atoms(problem, state, row, column, workspace):  # type: ignore[no-untyped-def]
    """Score each atom of a column by the gain of putting the row there, after taking it out.

    Queries that depend on numbers are left out. Returns the number of atoms.
    """
    start = problem.columns.starts[column]
    size = problem.columns.starts[column + 1] - start
    for atom in range(np.uint64(size)):
        workspace.scores[atom] = problem.columns.base_scores[np.uint64(start) + np.uint64(atom)]
    score_tables(
        problem.tables, state.residuals, workspace.cells, column, workspace.sums, workspace.scores
    )
    score_conjunctions(
        problem.conditions,
        problem.weights,
        state.targets,
        state.counts,
        state.atoms[row],
        column,
        size,
        workspace.steps,
        workspace.scores,
    )
    score_clauses(
        problem.clauses,
        problem.weights,
        state.targets,
        state.counts,
        state.values[row],
        state.atoms[row],
        column,
        size,
        workspace.met,
        workspace.numbers,
        workspace.steps,
        workspace.scores,
    )
    forbid_atoms(
        problem.rules,
        state.values[row],
        state.atoms[row],
        column,
        workspace.numbers,
        workspace.scores,
    )
    return size


@inlined
def looks_at_values(problem, column):  # type: ignore[no-untyped-def]
    """Whether any query or rule depends on the numbers in a column, not only on their atoms."""
    return (
        has_halfspaces(problem.directions)
        or looks_at_number(problem.clauses, column)
        or is_summed(problem.parts, column)
        or ruled_by_number(problem.rules, column)
    )


@inlined
def is_allowed(problem, state, row, column, value, atom, workspace):  # type: ignore[no-untyped-def]
    """Whether a row keeps the rules if one of its values is replaced."""
    return keeps(
        problem.rules,
        state.values[row],
        state.atoms[row],
        column,
        value,
        atom,
        workspace.numbers,
    )


@inlined
def _edit_clauses(problem, state, row, column, value, atom, workspace, make):  # type: ignore[no-untyped-def]
    delta = edit_clauses(
        problem.clauses,
        problem.weights,
        state.targets,
        state.counts,
        state.values[row],
        state.atoms[row],
        column,
        value,
        atom,
        workspace.met,
        workspace.numbers,
        make,
    )
    return delta + delta_sums(problem, state, row, column, value, atom, workspace, make)


@inlined
def delta_sums(problem, state, row, column, value, atom, workspace, make):  # type: ignore[no-untyped-def]
    """The change of the loss over the sums by an edit."""
    return edit_sums(
        problem.parts,
        problem.weights,
        state.targets,
        state.counts,
        state.values[row],
        state.atoms[row],
        column,
        value,
        atom,
        workspace.numbers,
        make,
    )


@inlined
def _delta_products(problem, state, row, column, value, atom, workspace):  # type: ignore[no-untyped-def]
    """The change over the halfspaces; writes the products after the edit to the workspace."""
    return delta_halfspaces(
        problem.directions,
        problem.columns.discrete,
        problem.weights,
        state.targets,
        state.counts,
        state.values[row],
        state.atoms[row],
        column,
        value,
        atom,
        workspace.products,
        workspace.trial,
    )


@inlined
def delta_edit(problem, state, row, column, value, atom, workspace):  # type: ignore[no-untyped-def]
    """The change of the loss if a value is replaced; the row must be loaded."""
    delta = delta_tables(
        problem.tables, state.targets, state.counts, state.residuals, workspace.cells, column, atom
    )
    delta += delta_conjunctions(
        problem.conditions,
        problem.weights,
        state.targets,
        state.counts,
        state.atoms[row],
        column,
        atom,
    )
    delta += _edit_clauses(problem, state, row, column, value, atom, workspace, False)
    return delta + _delta_products(problem, state, row, column, value, atom, workspace)


@inlined
def apply_edit(problem, state, row, column, value, atom, workspace):  # type: ignore[no-untyped-def]
    """Replace a value; returns the change of the loss. The row must be loaded."""
    delta = _delta_products(problem, state, row, column, value, atom, workspace)
    apply_halfspaces(
        problem.directions,
        problem.weights,
        state.targets,
        state.counts,
        state.halfspace_gains,
        workspace.products,
        workspace.trial,
    )
    delta += apply_conjunctions(
        problem.conditions,
        problem.weights,
        state.targets,
        state.counts,
        state.atoms[row],
        column,
        atom,
    )
    delta += _edit_clauses(problem, state, row, column, value, atom, workspace, True)
    delta += apply_tables(
        problem.tables, state.targets, state.counts, state.residuals, workspace.cells, column, atom
    )
    state.atoms[row, column] = atom
    state.values[row, column] = value
    return delta
