"""Changes of several values at once: exchanges between two rows, and linked columns of one row.

Such changes find improvements that no single edit finds. The loss never rises: each change is made,
and reversed unless the loss fell.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.edits import apply_edit, is_allowed, load_row, looks_at_values
from private_gsd.kernels.rules import propose_block
from private_gsd.kernels.streams import begin, below

# Streams of random numbers that belong to a turn of exchanges, and to a turn of linked changes.
TURNS = 2**51
BLOCKS = 2**52


@kernel
def swap(problem, state, rows, first, seed, generation, tries, workspace):  # type: ignore[no-untyped-def]
    """Let rows exchange one value with other rows, where that lowers the loss.

    Two values change at once, and the distribution of the column stays the same.

    Args:
        problem: The constant part of the search.
        state: The table and its counts; changed.
        rows: The rows; a row may have several turns.
        first: The number of turns before these in the generation.
        seed: The seed of the search.
        generation: The number of the sweep.
        tries: The number of exchanges tried in a turn.
        workspace: The workspace of the thread.

    Returns:
        The change of the loss, the number of values changed, and the number of edits scored.
    """
    change = 0.0
    moves = edits = 0
    values, atoms = state.values, state.atoms
    for turn in range(rows.size):
        row = rows[turn]
        begin(workspace.stream, seed, generation, TURNS + first + turn)
        for _ in range(tries):
            column = below(workspace.stream, values.shape[1])
            other = below(workspace.stream, values.shape[0])
            mine, theirs = values[row, column], values[other, column]
            my_atom = np.int64(atoms[row, column])
            their_atom = np.int64(atoms[other, column])
            if mine == theirs or (mine != mine and theirs != theirs):
                continue
            if my_atom == their_atom and not looks_at_values(problem, column):
                continue
            edits += 1
            if not is_allowed(
                problem, state, row, column, theirs, their_atom, workspace
            ) or not is_allowed(problem, state, other, column, mine, my_atom, workspace):
                continue
            # Both rows are edited; if the loss does not fall, both edits are reversed. It is a
            # loop, since each call is inlined.
            delta = 0.0
            for step in range(4):
                if step == 2 and delta < 0:
                    break
                which = row if step % 2 == 0 else other
                value, atom = theirs, their_atom
                if (step == 1) | (step == 2):
                    value, atom = mine, my_atom
                load_row(problem, state, which, column, workspace)
                effect = apply_edit(problem, state, which, column, value, atom, workspace)
                if step < 2:
                    delta += effect
            if delta < 0:
                change += delta
                moves += 2
    return change, moves, edits


@kernel
def change_linked_columns(problem, state, rows, first, seed, generation, tries, workspace):  # type: ignore[no-untyped-def]
    """Change several columns that rules link, at once in one row, where that lowers the loss.

    A row in which every single edit breaks a rule can change in no other way.

    Args:
        problem: The constant part of the search; it has rules.
        state: The table and its counts; changed.
        rows: The rows.
        first: The number of turns before these in the generation.
        seed: The seed of the search.
        generation: The number of the sweep.
        tries: The number of changes tried for a row.
        workspace: The workspace of the thread.

    Returns:
        The change of the loss, the number of rows changed, and the number of changes tried.
    """
    change = 0.0
    moves = edits = 0
    for turn in range(rows.size):
        row = rows[turn]
        begin(workspace.stream, seed, generation, BLOCKS + first + turn)
        for _ in range(tries):
            block = propose_block(
                problem.rules,
                problem.columns,
                state,
                row,
                workspace.values,
                workspace.atoms,
                workspace.stream,
                workspace.numbers,
            )
            if block < 0:
                continue
            edits += 1
            load_row(problem, state, row, -1, workspace)
            begin_at, end = problem.rules.block_starts[block], problem.rules.block_starts[block + 1]
            delta = 0.0
            for step in range(2):  # the change, and its reversal; each edit swaps the two values
                for place in range(begin_at, end):
                    column = problem.rules.block_columns[place]
                    value, atom = workspace.values[column], np.int64(workspace.atoms[column])
                    before = state.values[row, column]
                    old = state.atoms[row, column]
                    if atom == old and (value == before or (value != value and before != before)):
                        continue
                    effect = apply_edit(problem, state, row, column, value, atom, workspace)
                    workspace.values[column] = before
                    workspace.atoms[column] = old
                    if step == 0:
                        delta += effect
                if step == 0 and delta < 0:
                    change += delta
                    moves += 1
                    break
    return change, moves, edits
