"""Batches of edits: candidate values of one column of many rows, scored and made.

Queries that have no kernel are answered by the caller.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.cells import atom_of
from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.edits import apply_edit, delta_edit, is_allowed, load_row


@kernel
def score_edits(problem, state, rows, column, candidates, deltas, workspace):  # type: ignore[no-untyped-def]
    """Compute the change of the loss by each candidate value of one column of some rows."""
    for place in range(rows.size):
        load_row(problem, state, rows[place], column, workspace)
        for candidate in range(candidates.shape[1]):
            value = candidates[place, candidate]
            atom = atom_of(problem.columns, column, value)
            deltas[place, candidate] = np.inf
            if is_allowed(problem, state, rows[place], column, value, atom, workspace):
                deltas[place, candidate] = delta_edit(
                    problem, state, rows[place], column, value, atom, workspace
                )


@kernel
def commit(problem, state, rows, column, candidates, answers, answered, queries, workspace):  # type: ignore[no-untyped-def]
    """Make edits of one column, row by row; an edit is skipped unless it lowers the loss.

    Args:
        problem: The constant part of the search.
        state: The table and its counts; changed.
        rows: The rows.
        column: The column.
        candidates: The new value of each row.
        answers: Whether each row would satisfy each query without a kernel.
        answered: Whether each row of the table satisfies each such query; changed.
        queries: The numbers of these queries among all.
        workspace: The workspace of the thread.

    Returns:
        The change of the loss, and the number of values changed.
    """
    change = 0.0
    moves = 0
    for place in range(rows.size):
        row = rows[place]
        value = candidates[place]
        atom = atom_of(problem.columns, column, value)
        load_row(problem, state, row, column, workspace)
        delta = delta_edit(problem, state, row, column, value, atom, workspace)
        for each in range(queries.size):
            query = queries[each]
            shift = np.int64(answers[place, each]) - np.int64(answered[row, each])
            if shift != 0:
                residual = state.targets[query] - state.counts[query]
                delta += problem.weights[query] * (1 - 2 * shift * residual)
        if delta >= 0:
            continue
        apply_edit(problem, state, row, column, value, atom, workspace)
        for each in range(queries.size):
            state.counts[queries[each]] += np.int64(answers[place, each]) - np.int64(
                answered[row, each]
            )
            answered[row, each] = answers[place, each]
        change += delta
        moves += 1
    return change, moves
