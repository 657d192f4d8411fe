"""Gibbs sweeps: each value is redrawn from its distribution given all others.

The coordinate search takes the best alternative. A Gibbs sweep draws an alternative instead, with a
probability that grows with the gain. Tables thus occur in proportion to their probability, and
their answers can be averaged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.cells import draw_within
from private_gsd.kernels.compiling import inlined, kernel
from private_gsd.kernels.edits import apply_edit, load_row, looks_at_values, score_atoms
from private_gsd.kernels.streams import begin, shuffle, uniform

# Streams of random numbers of Gibbs sweeps; those below belong to the search.
GIBBS_STREAMS = 2**53


class ChowLiuForest(NamedTuple):
    """A Chow–Liu forest: neighbouring columns, and the log-lifts of their atoms."""

    starts: Any
    """Where each column's neighbours begin; columns + 1 entries."""
    neighbours: Any
    """The neighbouring columns."""
    places: Any
    """For each neighbour, where its log-lifts begin."""
    log_lifts: Any
    """For each neighbour, its atoms and the atoms of the column: the logarithm of the frequency of
    both atoms in a row, divided by its value if the columns were independent."""


@inlined
def _draw_atom(size, temperature, workspace):  # type: ignore[no-untyped-def]
    """Draw one of the atoms, after ``score_atoms``; -1 if none is allowed."""
    most = -np.inf
    for atom in range(np.uint64(size)):
        most = max(most, workspace.scores[atom])
    if most == -np.inf:
        return np.int64(-1)
    total = 0.0
    for atom in range(np.uint64(size)):
        total += np.exp((workspace.scores[atom] - most) / temperature)
        workspace.scores[atom] = total
    wanted = uniform(workspace.stream) * total
    for atom in range(size - 1):
        if wanted < workspace.scores[np.uint64(atom)]:
            return np.int64(atom)
    return np.int64(size - 1)


@inlined
def _add_log_lifts(chow_liu_forest, atoms, row, column, size, temperature, workspace):  # type: ignore[no-untyped-def]
    """Add the log-lifts of the neighbouring columns to the scores of the atoms."""
    for edge in range(chow_liu_forest.starts[column], chow_liu_forest.starts[column + 1]):
        first = chow_liu_forest.places[edge] + atoms[row, chow_liu_forest.neighbours[edge]] * size
        for atom in range(np.uint64(size)):
            workspace.scores[atom] += (
                temperature * chow_liu_forest.log_lifts[np.uint64(first) + atom]
            )


@kernel
def gibbs_sweep(problem, state, rows, seed, generation, temperature, chow_liu_forest, workspace):  # type: ignore[no-untyped-def]
    """Redraw all values of some rows.

    The probability of an atom is proportional to exp(gain / temperature), where the gain is the
    fall of the loss by the atom, plus its base score. Columns on whose numbers queries depend stay
    as they are.

    Args:
        problem: The constant part of the search; base scores are the logarithms of the atoms'
            prior probabilities, times the temperature.
        state: The table and its counts; changed.
        rows: The rows, in order.
        seed: The seed of the search.
        generation: The number of the sweep.
        temperature: The temperature, in units of the loss.
        chow_liu_forest: The Chow–Liu forest of the prior distribution of a row.
        workspace: The workspace of the thread.

    Returns:
        The number of values changed, and the number of edits scored.
    """
    moves = edits = 0
    for turn in range(rows.size):
        row = rows[turn]
        begin(workspace.stream, seed, generation, GIBBS_STREAMS + row)
        shuffle(workspace.stream, workspace.order)
        load_row(problem, state, row, -1, workspace)
        for place in range(workspace.order.size):
            column = workspace.order[place]
            if looks_at_values(problem, column):
                continue
            size = score_atoms(problem, state, row, column, workspace)
            edits += size
            _add_log_lifts(chow_liu_forest, state.atoms, row, column, size, temperature, workspace)
            atom = _draw_atom(size, temperature, workspace)
            if atom < 0 or atom == state.atoms[row, column]:
                continue
            value = draw_within(problem.columns, column, atom, workspace.stream)
            apply_edit(problem, state, row, column, value, atom, workspace)
            moves += 1
    return moves, edits
