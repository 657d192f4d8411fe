"""Coordinate search: sweeps over the rows of a table that replace each value by the best one.

Rows come in random order, and for every column all of its atoms are scored at once, so that an edit
costs a few nanoseconds. The loss never rises: the effect of each edit is computed exactly as it is
made, and the edit is reversed unless the loss fell.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.barrier import claim, wait_at_barrier
from private_gsd.kernels.cells import atom_of, draw_any, draw_within
from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.edits import (
    apply_edit,
    delta_sums,
    is_allowed,
    load_row,
    looks_at_values,
    score_atoms,
)
from private_gsd.kernels.halfspaces import has_halfspaces, prepare_halfspaces, score_halfspaces
from private_gsd.kernels.predicates import looks_at_number, prepare_valued, score_valued
from private_gsd.kernels.rules import draw_ruled, ruled_by_number
from private_gsd.kernels.streams import begin, below, shuffle

# Streams of random numbers that belong to a cell; those below belong to a row.
CELLS = 2**50
# Number of candidates from the atoms with the best scores, where queries depend on the number.
BEST_ATOMS = 12
# Number of rows that a thread takes at a time; small, so that a slow thread delays no other.
CLAIMED_ROWS = 8


@inlined
def _best_atom(state, row, column, size, workspace):  # type: ignore[no-untyped-def]
    """The best atom, after ``score_atoms``; the current one where no other is better."""
    best = np.int64(state.atoms[row, column])
    most = workspace.scores[np.uint64(best)]
    for atom in range(np.uint64(size)):
        if workspace.scores[atom] > most:
            most = workspace.scores[atom]
            best = np.int64(atom)
    return best


@inlined
def _best_atoms(size, workspace):  # type: ignore[no-untyped-def]
    """The atoms with the best scores, in order, as the first candidates; returns their number."""
    found = 0
    for atom in range(size):
        score = workspace.scores[atom]
        if score == -np.inf or (
            found == BEST_ATOMS and score <= workspace.candidates[0, found - 1]
        ):
            continue
        place = min(found, BEST_ATOMS - 1)
        while place > 0 and workspace.candidates[0, place - 1] < score:
            workspace.candidates[0, place] = workspace.candidates[0, place - 1]
            workspace.candidates[1, place] = workspace.candidates[1, place - 1]
            place -= 1
        workspace.candidates[0, place] = score
        workspace.candidates[1, place] = atom
        found = min(found + 1, BEST_ATOMS)
    return found


@inlined
def _gather_candidates(problem, state, row, column, size, workspace):  # type: ignore[no-untyped-def]
    """Candidate values for a column on whose numbers queries depend, not only on their atoms.

    All categories, where they fit; else values of the atoms with the best scores, values of other
    rows (crossover) and random values (mutation).

    Returns:
        The number of candidates.
    """
    columns = problem.columns
    limit = workspace.candidates.shape[1]
    if columns.discrete[column] and size <= limit:
        for atom in range(size):
            value = np.nan if atom == columns.nulls[column] else np.float64(atom)
            workspace.candidates[0, atom] = value
            workspace.candidates[1, atom] = atom
        return size
    best = _best_atoms(size, workspace)
    for place in range(limit):
        if place < best:
            value = draw_within(
                columns, column, np.int64(workspace.candidates[1, place]), workspace.stream
            )
        elif 2 * (place - best) < limit - best:
            other = below(workspace.stream, state.values.shape[0])
            value = state.values[other, column]
        elif ruled_by_number(problem.rules, column):
            value = draw_ruled(
                problem.rules,
                columns,
                state.values[row],
                state.atoms[row],
                column,
                workspace.stream,
                workspace.numbers,
            )
        else:
            value = draw_any(columns, column, workspace.stream)
        workspace.candidates[0, place] = value
        workspace.candidates[1, place] = atom_of(columns, column, value)
    return limit


@optional((-1, 0))
def _best_candidate(_valued, problem, state, row, column, size, workspace):  # type: ignore[no-untyped-def]
    """The best candidate, after ``score_atoms``: its place or -1, and the number of candidates."""
    prepare_halfspaces(
        problem.directions,
        problem.columns.discrete,
        state.halfspace_gains,
        state.values[row],
        state.atoms[row],
        column,
        workspace.products,
        workspace.slacks,
        workspace.gains,
    )
    found = prepare_valued(
        problem.clauses,
        problem.weights,
        state.targets,
        state.counts,
        state.values[row],
        state.atoms[row],
        column,
        workspace.met,
        workspace.numbers,
        workspace.clause_gains,
        workspace.lines,
    )
    tried = _gather_candidates(problem, state, row, column, size, workspace)
    discrete = problem.columns.discrete
    most = 0.0
    best = -1
    for place in range(-1, tried):  # the current value first
        value = state.values[row, column]
        atom = np.int64(state.atoms[row, column])
        if place >= 0:
            value = workspace.candidates[0, place]
            atom = np.int64(workspace.candidates[1, place])
        score = workspace.scores[atom]
        if has_halfspaces(problem.directions):
            score += score_halfspaces(
                problem.directions, discrete, column, value, atom, workspace.slacks, workspace.gains
            )
        if looks_at_number(problem.clauses, column):
            score += score_valued(
                problem.clauses,
                state.values[row],
                state.atoms[row],
                column,
                value,
                atom,
                workspace.numbers,
                workspace.clause_gains,
                workspace.lines,
                found,
            )
        score -= delta_sums(problem, state, row, column, value, atom, workspace, False)
        if place < 0:
            most = score
        elif score > most and is_allowed(problem, state, row, column, value, atom, workspace):
            most = score
            best = place
    return best, tried


@inlined
def _begin_cell(problem, row, column, seed, generation, workspace):  # type: ignore[no-untyped-def]
    """Begin the stream of one cell, so that marking and changing it draw the same candidates."""
    cell = row * problem.columns.discrete.size + column
    begin(workspace.stream, seed, generation, CELLS + cell)


@inlined
def _improve_cell(problem, state, row, column, seed, generation, workspace):  # type: ignore[no-untyped-def]
    """Replace a value by its best alternative; returns the change of the loss, and edits scored.

    Scores are sums of float32. They choose the edit; its effect on the loss is computed exactly.
    """
    size = score_atoms(problem, state, row, column, workspace)
    old = np.int64(state.atoms[row, column])
    if not looks_at_values(problem, column):
        tried = size
        atom = _best_atom(state, row, column, size, workspace)
        if atom == old:
            return 0.0, tried
        _begin_cell(problem, row, column, seed, generation, workspace)
        value = draw_within(problem.columns, column, atom, workspace.stream)
    else:
        _begin_cell(problem, row, column, seed, generation, workspace)
        best, tried = _best_candidate(problem.valued, problem, state, row, column, size, workspace)
        if best < 0:
            return 0.0, tried
        value = workspace.candidates[0, best]
        atom = np.int64(workspace.candidates[1, best])
    before = state.values[row, column]
    delta = 0.0
    for step in range(2):  # the edit, and its reversal; a loop, since each call is inlined
        effect = apply_edit(problem, state, row, column, value, atom, workspace)
        if step == 0:
            delta = effect
            if delta < 0:
                break
            value, atom = before, old
    return min(delta, 0.0), tried


@inlined
def _has_better(problem, state, row, column, seed, generation, workspace):  # type: ignore[no-untyped-def]
    """Whether a value has a better alternative, and the number of edits scored."""
    size = score_atoms(problem, state, row, column, workspace)
    if not looks_at_values(problem, column):
        best = _best_atom(state, row, column, size, workspace)
        return best != state.atoms[row, column], size
    _begin_cell(problem, row, column, seed, generation, workspace)
    best, tried = _best_candidate(problem.valued, problem, state, row, column, size, workspace)
    return best >= 0, tried


@inlined
def _improve_row(problem, state, row, seed, generation, some, marks, workspace):  # type: ignore[no-untyped-def]
    """Improve the values of a row in random order: all of them, or the marked ones."""
    change = 0.0
    moves = edits = 0
    begin(workspace.stream, seed, generation, row)
    shuffle(workspace.stream, workspace.order)
    loaded = False
    for place in range(workspace.order.size):
        column = workspace.order[place]
        if some and not marks[column]:
            continue
        if not loaded:
            load_row(problem, state, row, -1, workspace)
            loaded = True
        delta, tried = _improve_cell(problem, state, row, column, seed, generation, workspace)
        change += delta
        moves += delta < 0
        edits += tried
    return change, moves, edits


@kernel
def sweep(problem, state, rows, seed, generation, workspace):  # type: ignore[no-untyped-def]
    """Try to improve all values of some rows.

    Args:
        problem: The constant part of the search.
        state: The table and its counts; changed.
        rows: The rows, in order.
        seed: The seed of the search.
        generation: The number of the sweep.
        workspace: The workspace of the thread.

    Returns:
        The change of the loss, the number of values changed, and the number of edits scored.
    """
    change = 0.0
    moves = edits = 0
    for turn in range(rows.size):
        delta, moved, tried = _improve_row(
            problem, state, rows[turn], seed, generation, False, problem.columns.discrete, workspace
        )
        change += delta
        moves += moved
        edits += tried
    return change, moves, edits


@kernel
def sweep_parallel(  # type: ignore[no-untyped-def]
    problem, state, rows, block, seed, generation, marks, counters, thread, threads, workspace
):
    """Improve the values of some rows, on several threads.

    Each thread calls this function. Block by block, all threads mark the values that have a better
    alternative and change nothing; then the first thread improves the marked values. The result
    does not depend on the number of threads.

    Args:
        problem: The constant part of the search.
        state: The table and its counts; changed.
        rows: The rows, in order.
        block: The number of rows that are marked before any is changed.
        seed: The seed of the search.
        generation: The number of the sweep.
        marks: Whether each value of a block is marked, by row and column; written.
        counters: The counter of the barrier and one for each block; zeros.
        thread: The number of this thread.
        threads: The number of threads.
        workspace: The workspace of this thread.

    Returns:
        The change of the loss, the number of values changed, and the number of edits scored, all
        by this thread.
    """
    change = 0.0
    moves = edits = 0
    phase = 1
    for first in range(0, rows.size, block):
        size = min(block, rows.size - first)
        taken = claim(counters, first // block) * CLAIMED_ROWS
        while taken < size:
            for turn in range(taken, min(taken + CLAIMED_ROWS, size)):
                row = rows[first + turn]
                load_row(problem, state, row, -1, workspace)
                for column in range(state.values.shape[1]):
                    marks[turn, column], tried = _has_better(
                        problem, state, row, column, seed, generation, workspace
                    )
                    edits += tried
            taken = claim(counters, first // block) * CLAIMED_ROWS
        phase = wait_at_barrier(counters, phase, threads)
        if thread == 0:
            for turn in range(size):
                delta, moved, tried = _improve_row(
                    problem,
                    state,
                    rows[first + turn],
                    seed,
                    generation,
                    True,
                    marks[turn],
                    workspace,
                )
                change += delta
                moves += moved
                edits += tried
        phase = wait_at_barrier(counters, phase, threads)
    return change, moves, edits
