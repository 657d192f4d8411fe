"""Edits: one value of one row replaced, seen by all families of queries at once.

An edit is scored for many values together, to rounding, and its effect on the loss is then found
exactly, in whole counts, before it counts.
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
    load_halfspaces,
)
from private_gsd.kernels.marginals import (
    Tables,
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
from private_gsd.kernels.rules import Rules, bar_atoms, ruled_by_number
from private_gsd.kernels.sums import Parts, count_sums_of, edit_sums, is_summed


class Problem(NamedTuple):
    """What does not change in a search."""

    columns: Columns
    tables: Tables
    conditions: Conditions
    directions: Directions
    clauses: Clauses | tuple[()]
    """Predicates; an empty tuple where there are none."""
    parts: Parts | tuple[()]
    """Sums; an empty tuple where there are none."""
    rules: Rules | tuple[()]
    """What every row keeps; an empty tuple where there is nothing."""
    free: Any
    """The columns that may change."""
    movable: int
    """How many rows may change, the first ones; all, if there are not so many."""
    weights: Any
    """For each query."""


class State(NamedTuple):
    """A table, and how it answers."""

    values: Any
    """The table."""
    atoms: Any
    """The atom of each value."""
    targets: Any
    """For each query, how many rows should answer it."""
    counts: Any
    """For each query, how many do."""
    residuals: Any
    """For the tables, weighted target less weighted count, in all orders."""
    pulls: Any
    """For the halfspaces, what one more row in each gains."""


class Row(NamedTuple):
    """Room for one row at a time; every thread has its own."""

    cells: Any
    """The row's cell in each feature."""
    products: Any
    """The row's product with each direction."""
    trial: Any
    """The products after an edit."""
    sums: Any
    """For each cell of each feature."""
    scores: Any
    """For each atom of the column with the most."""
    steps: Any
    """One more than that."""
    slacks: Any
    """For each direction."""
    gains: Any
    """For each direction."""
    candidates: Any
    """Values to be tried, and their atoms."""
    met: Any
    """Which predicates the row meets."""
    numbers: Any
    """For the program of a comparison."""
    clause_gains: Any
    """For each entry of the predicates."""
    lines: Any
    """Slope, offset, gain and operator for each of them."""
    order: Any
    """The columns that may change, in some order."""
    values: Any
    """A row as it might be."""
    atoms: Any
    """Its atoms."""
    stream: Any
    """Of random numbers."""


@inlined
def load_row(problem, state, number, column, row):  # type: ignore[no-untyped-def]
    """Turn to a row of the table, to edit any of its columns (-1) or only that one."""
    load_tables(problem.tables, state.atoms[number], row.cells)
    load_halfspaces(
        problem.directions,
        problem.columns.discrete,
        state.values[number],
        state.atoms[number],
        row.products,
    )
    load_clauses(
        problem.clauses, state.values[number], state.atoms[number], column, row.numbers, row.met
    )


@kernel
def count_rows(problem, values, atoms, counts, row):  # type: ignore[no-untyped-def]
    """Count the rows of a table, for every query that has a kernel; added to ``counts``."""
    for number in range(values.shape[0]):
        load_tables(problem.tables, atoms[number], row.cells)
        count_tables_of(problem.tables, row.cells, counts)
        count_conjunctions_of(problem.conditions, atoms[number], counts)
        load_halfspaces(
            problem.directions,
            problem.columns.discrete,
            values[number],
            atoms[number],
            row.products,
        )
        count_halfspaces_of(problem.directions, row.products, counts)
        load_clauses(problem.clauses, values[number], atoms[number], -1, row.numbers, row.met)
        count_clauses_of(problem.clauses, row.met, counts)
        count_sums_of(problem.parts, values[number], atoms[number], row.numbers, counts)


@inlined
def score_atoms(problem, state, number, column, row):  # type: ignore[no-untyped-def]
    """What the row would gain in each atom of a column, were it taken out; values aside."""
    start = problem.columns.starts[column]
    size = problem.columns.starts[column + 1] - start
    for atom in range(np.uint64(size)):
        row.scores[atom] = problem.columns.barriers[np.uint64(start) + np.uint64(atom)]
    score_tables(problem.tables, state.residuals, row.cells, column, row.sums, row.scores)
    score_conjunctions(
        problem.conditions,
        problem.weights,
        state.targets,
        state.counts,
        state.atoms[number],
        column,
        size,
        row.steps,
        row.scores,
    )
    score_clauses(
        problem.clauses,
        problem.weights,
        state.targets,
        state.counts,
        state.values[number],
        state.atoms[number],
        column,
        size,
        row.met,
        row.numbers,
        row.steps,
        row.scores,
    )
    bar_atoms(
        problem.rules,
        state.values[number],
        state.atoms[number],
        column,
        row.numbers,
        row.scores,
    )
    return size


@inlined
def looks_at_values(problem, column):  # type: ignore[no-untyped-def]
    """Whether any query or rule looks at the numbers in a column, not only at their atoms."""
    return (
        problem.directions.queries.size > 0
        or looks_at_number(problem.clauses, column)
        or is_summed(problem.parts, column)
        or ruled_by_number(problem.rules, column)
    )


@inlined
def _edit_clauses(problem, state, number, column, value, atom, row, make):  # type: ignore[no-untyped-def]
    delta = edit_clauses(
        problem.clauses,
        problem.weights,
        state.targets,
        state.counts,
        state.values[number],
        state.atoms[number],
        column,
        value,
        atom,
        row.met,
        row.numbers,
        make,
    )
    return delta + delta_sums(problem, state, number, column, value, atom, row, make)


@inlined
def delta_sums(problem, state, number, column, value, atom, row, make):  # type: ignore[no-untyped-def]
    """What sums have to say of an edit."""
    return edit_sums(
        problem.parts,
        problem.weights,
        state.targets,
        state.counts,
        state.values[number],
        state.atoms[number],
        column,
        value,
        atom,
        row.numbers,
        make,
    )


@inlined
def _delta_products(problem, state, number, column, value, atom, row):  # type: ignore[no-untyped-def]
    """What halfspaces have to say; ``row.trial`` holds the products after the edit."""
    return delta_halfspaces(
        problem.directions,
        problem.columns.discrete,
        problem.weights,
        state.targets,
        state.counts,
        state.values[number],
        state.atoms[number],
        column,
        value,
        atom,
        row.products,
        row.trial,
    )


@inlined
def delta_edit(problem, state, number, column, value, atom, row):  # type: ignore[no-untyped-def]
    """By how much the loss changes if a value becomes another; the row must have been loaded."""
    delta = delta_tables(
        problem.tables, state.targets, state.counts, state.residuals, row.cells, column, atom
    )
    delta += delta_conjunctions(
        problem.conditions,
        problem.weights,
        state.targets,
        state.counts,
        state.atoms[number],
        column,
        atom,
    )
    delta += _edit_clauses(problem, state, number, column, value, atom, row, False)
    return delta + _delta_products(problem, state, number, column, value, atom, row)


@inlined
def apply_edit(problem, state, number, column, value, atom, row):  # type: ignore[no-untyped-def]
    """Replace a value; returns by how much the loss changes. The row must have been loaded."""
    delta = _delta_products(problem, state, number, column, value, atom, row)
    apply_halfspaces(
        problem.directions,
        problem.weights,
        state.targets,
        state.counts,
        state.pulls,
        row.products,
        row.trial,
    )
    delta += apply_conjunctions(
        problem.conditions,
        problem.weights,
        state.targets,
        state.counts,
        state.atoms[number],
        column,
        atom,
    )
    delta += _edit_clauses(problem, state, number, column, value, atom, row, True)
    delta += apply_tables(
        problem.tables, state.targets, state.counts, state.residuals, row.cells, column, atom
    )
    state.atoms[number, column] = atom
    state.values[number, column] = value
    return delta
