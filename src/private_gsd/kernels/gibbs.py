"""Annealing: sweeps that give each value an alternative by chance, the better the likelier.

Where a search takes the best alternative, here each is taken with a chance that grows with what it
gains (a heat bath): tables come as often as they deserve, and their answers can be averaged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.cells import draw_within
from private_gsd.kernels.compiling import inlined, kernel
from private_gsd.kernels.edits import apply_edit, load_row, looks_at_values, score_atoms
from private_gsd.kernels.streams import begin, shuffle, uniform

# Streams of random numbers of a row that is heated; others are those of the search.
HEATED = 2**53


class Forest(NamedTuple):
    """Which columns rows are drawn along, and how likely two of their atoms are together."""

    starts: Any
    """Where each column's neighbours begin; one more than columns."""
    neighbours: Any
    """The neighbouring columns."""
    places: Any
    """For each of them, where its lifts begin."""
    lifts: Any
    """For each neighbour and its atom, for each atom of the column: the logarithm of how often they
    come together, to how often they would by chance."""


@inlined
def _draw_atom(size, temperature, row):  # type: ignore[no-untyped-def]
    """One of the atoms, after ``score_atoms``; -1 if none may be had."""
    most = -np.inf
    for atom in range(np.uint64(size)):
        most = max(most, row.scores[atom])
    if most == -np.inf:
        return np.int64(-1)
    total = 0.0
    for atom in range(np.uint64(size)):
        total += np.exp((row.scores[atom] - most) / temperature)
        row.scores[atom] = total
    wanted = uniform(row.stream) * total
    for atom in range(size - 1):
        if wanted < row.scores[np.uint64(atom)]:
            return np.int64(atom)
    return np.int64(size - 1)


@inlined
def _add_lifts(forest, atoms, number, column, size, temperature, row):  # type: ignore[no-untyped-def]
    """Add to the atoms' scores what the neighbouring columns say."""
    for edge in range(forest.starts[column], forest.starts[column + 1]):
        first = forest.places[edge] + atoms[number, forest.neighbours[edge]] * size
        for atom in range(np.uint64(size)):
            row.scores[atom] += temperature * forest.lifts[np.uint64(first) + atom]


@kernel
def anneal(problem, state, rows, seed, generation, temperature, forest, row):  # type: ignore[no-untyped-def]
    """Give all values of some rows an alternative by chance.

    The chance of an atom is in proportion to exp(gain / temperature), where the gain is how much
    less the loss is with the row there, and the atom's barrier. Columns that queries see by their
    numbers stay as they are.

    Args:
        problem: What does not change; barriers are the atoms' chances before anything was asked:
            their logarithms, times the temperature.
        state: The table; changed.
        rows: Which rows, in which order.
        seed: Of the search.
        generation: Which sweep this is.
        temperature: In units of the loss.
        forest: Which atoms of two columns come together, before anything was asked.
        row: Room.

    Returns:
        How many values moved, how many edits were scored.
    """
    moves = edits = 0
    for turn in range(rows.size):
        number = rows[turn]
        begin(row.stream, seed, generation, HEATED + number)
        shuffle(row.stream, row.order)
        load_row(problem, state, number, -1, row)
        for place in range(row.order.size):
            column = row.order[place]
            if looks_at_values(problem, column):
                continue
            size = score_atoms(problem, state, number, column, row)
            edits += size
            _add_lifts(forest, state.atoms, number, column, size, temperature, row)
            atom = _draw_atom(size, temperature, row)
            if atom < 0 or atom == state.atoms[number, column]:
                continue
            value = draw_within(problem.columns, column, atom, row.stream)
            apply_edit(problem, state, number, column, value, atom, row)
            moves += 1
    return moves, edits
