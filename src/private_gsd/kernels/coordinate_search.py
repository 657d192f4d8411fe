"""Search: sweeps over the rows of a table that give each value the best alternative there is.

Rows are visited in random order, and for every column all of its atoms are scored at once, so that
an edit costs a few nanoseconds. The loss never rises: each move's effect is computed exactly as it
is made, and taken back unless the loss fell.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.barrier import claim, meet
from private_gsd.kernels.cells import atom_of, draw_any, draw_within
from private_gsd.kernels.compiling import inlined, kernel
from private_gsd.kernels.edits import (
    apply_edit,
    delta_edit,
    delta_sums,
    load_row,
    looks_at_values,
    score_atoms,
)
from private_gsd.kernels.halfspaces import prepare_halfspaces, score_halfspaces
from private_gsd.kernels.predicates import looks_at_number, prepare_valued, score_valued
from private_gsd.kernels.rules import draw_ruled, keeps, propose_block, ruled_by_number
from private_gsd.kernels.streams import begin, below, shuffle

# Streams of random numbers that belong to a cell, or to a turn of exchanging; others are a row's.
CELLS = 2**50
TURNS = 2**51
BLOCKS = 2**52
# How many candidates are of the atoms that score best, where queries look at numbers themselves.
# With 12 instead of 1, the median of a column of 256 segments was off by 333 instead of 467.
BEST_ATOMS = 12
# Threads take so many rows at a time, so that one that was held up does not hold up the others.
CLAIMED_ROWS = 8


@inlined
def _best_atom(state, number, column, size, row):  # type: ignore[no-untyped-def]
    """The best atom, after ``score_atoms``; the present one where there is none better."""
    best = np.int64(state.atoms[number, column])
    most = row.scores[np.uint64(best)]
    for atom in range(np.uint64(size)):
        if row.scores[atom] > most:
            most = row.scores[atom]
            best = np.int64(atom)
    return best


@inlined
def _best_atoms(size, row):  # type: ignore[no-untyped-def]
    """The atoms that score best, in order, as the first candidates; returns how many."""
    found = 0
    for atom in range(size):
        score = row.scores[atom]
        if score == -np.inf or (found == BEST_ATOMS and score <= row.candidates[0, found - 1]):
            continue
        place = min(found, BEST_ATOMS - 1)
        while place > 0 and row.candidates[0, place - 1] < score:
            row.candidates[0, place] = row.candidates[0, place - 1]
            row.candidates[1, place] = row.candidates[1, place - 1]
            place -= 1
        row.candidates[0, place] = score
        row.candidates[1, place] = atom
        found = min(found + 1, BEST_ATOMS)
    return found


@inlined
def _gather_candidates(problem, state, number, column, size, row):  # type: ignore[no-untyped-def]
    """Values to be tried where queries look at the number itself, not at its atom.

    All categories, where they fit; else values of the atoms that score best so far, values of other
    rows (crossover) and fresh ones (mutation).

    Returns:
        How many there are.
    """
    columns = problem.columns
    room = row.candidates.shape[1]
    if columns.discrete[column] and size <= room:
        for atom in range(size):
            value = np.nan if atom == columns.nulls[column] else np.float64(atom)
            row.candidates[0, atom] = value
            row.candidates[1, atom] = atom
        return size
    best = _best_atoms(size, row)
    for place in range(room):
        if place < best:
            value = draw_within(columns, column, np.int64(row.candidates[1, place]), row.stream)
        elif 2 * (place - best) < room - best:
            other = below(row.stream, state.values.shape[0])
            value = state.values[other, column]
        elif ruled_by_number(problem.rules, column):
            value = draw_ruled(
                problem.rules,
                columns,
                state.values[number],
                state.atoms[number],
                column,
                row.stream,
                row.numbers,
            )
        else:
            value = draw_any(columns, column, row.stream)
        row.candidates[0, place] = value
        row.candidates[1, place] = atom_of(columns, column, value)
    return room


@inlined
def _best_candidate(problem, state, number, column, size, row):  # type: ignore[no-untyped-def]
    """The best of some candidates, after ``score_atoms``: its place or -1, and how many."""
    prepare_halfspaces(
        problem.directions,
        problem.columns.discrete,
        state.pulls,
        state.values[number],
        state.atoms[number],
        column,
        row.products,
        row.slacks,
        row.gains,
    )
    found = prepare_valued(
        problem.clauses,
        problem.weights,
        state.targets,
        state.counts,
        state.values[number],
        state.atoms[number],
        column,
        row.met,
        row.numbers,
        row.clause_gains,
        row.lines,
    )
    tried = _gather_candidates(problem, state, number, column, size, row)
    discrete = problem.columns.discrete
    most = 0.0
    best = -1
    for place in range(-1, tried):  # the present value first
        value = state.values[number, column]
        atom = np.int64(state.atoms[number, column])
        if place >= 0:
            value = row.candidates[0, place]
            atom = np.int64(row.candidates[1, place])
        score = row.scores[atom]
        if problem.directions.queries.size > 0:
            score += score_halfspaces(
                problem.directions, discrete, column, value, atom, row.slacks, row.gains
            )
        if looks_at_number(problem.clauses, column):
            score += score_valued(
                problem.clauses,
                state.values[number],
                state.atoms[number],
                column,
                value,
                atom,
                row.numbers,
                row.clause_gains,
                row.lines,
                found,
            )
        score -= delta_sums(problem, state, number, column, value, atom, row, False)
        if place < 0:
            most = score
        elif score > most and keeps(
            problem.rules,
            state.values[number],
            state.atoms[number],
            column,
            value,
            atom,
            row.numbers,
        ):
            most = score
            best = place
    return best, tried


@inlined
def _begin_cell(problem, number, column, seed, generation, row):  # type: ignore[no-untyped-def]
    """Begin the stream of one cell: whoever looks at it in this generation draws the same."""
    cell = number * problem.columns.discrete.size + column
    begin(row.stream, seed, generation, CELLS + cell)


@inlined
def _visit(problem, state, number, column, seed, generation, row):  # type: ignore[no-untyped-def]
    """Give one value its best alternative; returns the change of the loss, and edits scored.

    Scores are sums of float32. They choose; whether the loss falls is then computed exactly.
    """
    size = score_atoms(problem, state, number, column, row)
    old = np.int64(state.atoms[number, column])
    if not looks_at_values(problem, column):
        tried = size
        atom = _best_atom(state, number, column, size, row)
        if atom == old:
            return 0.0, tried
        _begin_cell(problem, number, column, seed, generation, row)
        value = draw_within(problem.columns, column, atom, row.stream)
    else:
        _begin_cell(problem, number, column, seed, generation, row)
        best, tried = _best_candidate(problem, state, number, column, size, row)
        if best < 0:
            return 0.0, tried
        value = row.candidates[0, best]
        atom = np.int64(row.candidates[1, best])
    before = state.values[number, column]
    delta = 0.0
    for step in range(2):  # made, and taken back; a loop, since each call is compiled in place
        effect = apply_edit(problem, state, number, column, value, atom, row)
        if step == 0:
            delta = effect
            if delta < 0:
                break
            value, atom = before, old
    return min(delta, 0.0), tried


@inlined
def _promising(problem, state, number, column, seed, generation, row):  # type: ignore[no-untyped-def]
    """Whether a value has a better alternative, and how many edits were scored."""
    size = score_atoms(problem, state, number, column, row)
    if not looks_at_values(problem, column):
        best = _best_atom(state, number, column, size, row)
        return best != state.atoms[number, column], size
    _begin_cell(problem, number, column, seed, generation, row)
    best, tried = _best_candidate(problem, state, number, column, size, row)
    return best >= 0, tried


@inlined
def _visit_row(problem, state, number, seed, generation, some, marks, row):  # type: ignore[no-untyped-def]
    """Visit the values of a row in random order: all, or some that are marked."""
    change = 0.0
    moves = edits = 0
    begin(row.stream, seed, generation, number)
    shuffle(row.stream, row.order)
    loaded = False
    for place in range(row.order.size):
        column = row.order[place]
        if some and not marks[column]:
            continue
        if not loaded:
            load_row(problem, state, number, -1, row)
            loaded = True
        delta, tried = _visit(problem, state, number, column, seed, generation, row)
        change += delta
        moves += delta < 0
        edits += tried
    return change, moves, edits


@kernel
def sweep(problem, state, rows, seed, generation, row):  # type: ignore[no-untyped-def]
    """Visit all values of some rows.

    Args:
        problem: What does not change.
        state: The table; changed.
        rows: Which rows, in which order.
        seed: Of the search.
        generation: Which sweep this is.
        row: Room.

    Returns:
        By how much the loss changed, how many values moved, how many edits were scored.
    """
    change = 0.0
    moves = edits = 0
    for turn in range(rows.size):
        delta, moved, tried = _visit_row(
            problem, state, rows[turn], seed, generation, False, problem.columns.discrete, row
        )
        change += delta
        moves += moved
        edits += tried
    return change, moves, edits


@kernel
def sweep_together(  # type: ignore[no-untyped-def]
    problem, state, rows, block, seed, generation, marks, counters, thread, threads, row
):
    """Visit the values of some rows that have a better alternative, on several threads.

    Each thread calls this. Block by block, all of them mark values, changing nothing, and then
    the first visits what is marked. The result does not depend on the number of threads.

    Args:
        problem: What does not change.
        state: The table; changed.
        rows: Which rows, in which order.
        block: How many rows are marked before they are visited.
        seed: Of the search.
        generation: Which sweep this is.
        marks: For each row of a block and column; written.
        counters: What the threads meet at; zeros, one more than there are blocks.
        thread: Which thread this is.
        threads: How many there are.
        row: Room, each thread's own.

    Returns:
        By how much the loss changed, how many values moved, how many edits were scored, all by
        this thread.
    """
    change = 0.0
    moves = edits = 0
    meeting = 1
    for first in range(0, rows.size, block):
        size = min(block, rows.size - first)
        taken = claim(counters, first // block) * CLAIMED_ROWS
        while taken < size:
            for turn in range(taken, min(taken + CLAIMED_ROWS, size)):
                number = rows[first + turn]
                load_row(problem, state, number, -1, row)
                for place in range(problem.free.size):
                    column = problem.free[place]
                    marks[turn, column], tried = _promising(
                        problem, state, number, column, seed, generation, row
                    )
                    edits += tried
            taken = claim(counters, first // block) * CLAIMED_ROWS
        meeting = meet(counters, meeting, threads)
        if thread == 0:
            for turn in range(size):
                delta, moved, tried = _visit_row(
                    problem, state, rows[first + turn], seed, generation, True, marks[turn], row
                )
                change += delta
                moves += moved
                edits += tried
        meeting = meet(counters, meeting, threads)
    return change, moves, edits


@kernel
def swap(problem, state, rows, first, seed, generation, tries, row):  # type: ignore[no-untyped-def]
    """Let rows exchange one value with other rows, where that lowers the loss.

    Two values change at once, and the column keeps its distribution: this finds what no single
    edit does.

    Args:
        problem: What does not change.
        state: The table; changed.
        rows: Which rows; one may have several turns.
        first: How many turns came before in this generation.
        seed: Of the search.
        generation: Which sweep this is.
        tries: How many exchanges are tried in a turn.
        row: Room.

    Returns:
        By how much the loss changed, how many values moved, how many edits were scored.
    """
    change = 0.0
    moves = edits = 0
    values, atoms = state.values, state.atoms
    for turn in range(rows.size):
        number = rows[turn]
        begin(row.stream, seed, generation, TURNS + first + turn)
        for _ in range(tries):
            column = problem.free[below(row.stream, problem.free.size)]
            other = below(row.stream, min(problem.movable, values.shape[0]))
            mine, theirs = values[number, column], values[other, column]
            my_atom = np.int64(atoms[number, column])
            their_atom = np.int64(atoms[other, column])
            if mine == theirs or (mine != mine and theirs != theirs):
                continue
            if my_atom == their_atom and not looks_at_values(problem, column):
                continue
            edits += 1
            if not keeps(
                problem.rules,
                values[number],
                atoms[number],
                column,
                theirs,
                their_atom,
                row.numbers,
            ) or not keeps(
                problem.rules, values[other], atoms[other], column, mine, my_atom, row.numbers
            ):
                continue
            # Both are edited; if that does not help, both are edited back. A loop, since each
            # call is compiled in place.
            delta = 0.0
            for step in range(4):
                if step == 2 and delta < 0:
                    break
                which = number if step % 2 == 0 else other
                value, atom = theirs, their_atom
                if (step == 1) | (step == 2):
                    value, atom = mine, my_atom
                load_row(problem, state, which, column, row)
                effect = apply_edit(problem, state, which, column, value, atom, row)
                if step < 2:
                    delta += effect
            if delta < 0:
                change += delta
                moves += 2
    return change, moves, edits


@kernel
def relink(problem, state, rows, first, seed, generation, tries, row):  # type: ignore[no-untyped-def]
    """Change several columns of a row together that rules tie, where that lowers the loss.

    Single edits cannot leave a row that any single edit would bring to break a rule.

    Args:
        problem: What does not change; it has rules.
        state: The table; changed.
        rows: Which rows.
        first: How many turns came before in this generation.
        seed: Of the search.
        generation: Which sweep this is.
        tries: How many changes are tried for a row.
        row: Room.

    Returns:
        By how much the loss changed, how many rows changed, how many changes were tried.
    """
    change = 0.0
    moves = edits = 0
    for turn in range(rows.size):
        number = rows[turn]
        begin(row.stream, seed, generation, BLOCKS + first + turn)
        for _ in range(tries):
            block = propose_block(
                problem.rules,
                problem.columns,
                state,
                number,
                row.values,
                row.atoms,
                row.stream,
                row.numbers,
            )
            if block < 0:
                continue
            edits += 1
            load_row(problem, state, number, -1, row)
            begin_at, end = problem.rules.block_starts[block], problem.rules.block_starts[block + 1]
            delta = 0.0
            for step in range(2):  # made, and taken back; each edit is swapped with what was there
                for place in range(begin_at, end):
                    column = problem.rules.block_columns[place]
                    value, atom = row.values[column], np.int64(row.atoms[column])
                    before = state.values[number, column]
                    old = state.atoms[number, column]
                    if atom == old and (value == before or (value != value and before != before)):
                        continue
                    effect = apply_edit(problem, state, number, column, value, atom, row)
                    row.values[column] = before
                    row.atoms[column] = old
                    if step == 0:
                        delta += effect
                if step == 0 and delta < 0:
                    change += delta
                    moves += 1
                    break
    return change, moves, edits


@kernel
def score_edits(problem, state, rows, column, candidates, deltas, row):  # type: ignore[no-untyped-def]
    """By how much each candidate value of one column of some rows would change the loss."""
    for place in range(rows.size):
        load_row(problem, state, rows[place], column, row)
        for candidate in range(candidates.shape[1]):
            value = candidates[place, candidate]
            atom = atom_of(problem.columns, column, value)
            deltas[place, candidate] = np.inf
            if keeps(
                problem.rules,
                state.values[rows[place]],
                state.atoms[rows[place]],
                column,
                value,
                atom,
                row.numbers,
            ):
                deltas[place, candidate] = delta_edit(
                    problem, state, rows[place], column, value, atom, row
                )


@kernel
def commit(problem, state, rows, column, candidates, answers, answered, queries, row):  # type: ignore[no-untyped-def]
    """Make edits of one column of different rows, each if it lowers the loss when its turn comes.

    Args:
        problem: What does not change.
        state: The table; changed.
        rows: Which rows.
        column: Which column.
        candidates: For each row, the new value.
        answers: For each row and query that is not compiled, whether it would meet it.
        answered: For each row of the table and such query, whether it meets it; changed.
        queries: The numbers of these queries.
        row: Room.

    Returns:
        By how much the loss changed, and how many values moved.
    """
    change = 0.0
    moves = 0
    for place in range(rows.size):
        number = rows[place]
        value = candidates[place]
        atom = atom_of(problem.columns, column, value)
        load_row(problem, state, number, column, row)
        delta = delta_edit(problem, state, number, column, value, atom, row)
        for each in range(queries.size):
            query = queries[each]
            shift = np.int64(answers[place, each]) - np.int64(answered[number, each])
            if shift != 0:
                residual = state.targets[query] - state.counts[query]
                delta += problem.weights[query] * (1 - 2 * shift * residual)
        if delta >= 0:
            continue
        apply_edit(problem, state, number, column, value, atom, row)
        for each in range(queries.size):
            state.counts[queries[each]] += np.int64(answers[place, each]) - np.int64(
                answered[number, each]
            )
            answered[number, each] = answers[place, each]
        change += delta
        moves += 1
    return change, moves


@kernel
def make_edits(problem, state, rows, columns, values, row):  # type: ignore[no-untyped-def]
    """Make edits one after the other, whatever they do; returns by how much the loss changed."""
    change = 0.0
    for place in range(rows.size):
        atom = atom_of(problem.columns, columns[place], values[place])
        load_row(problem, state, rows[place], columns[place], row)
        change += apply_edit(problem, state, rows[place], columns[place], values[place], atom, row)
    return change
