"""Predicates: count the rows that satisfy conditions in SQL, and score edits."""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.cells import atom_of
from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.programs import ALL_MET, ALL_MISSED, AS_IS, compares, line_of, met_by
from private_gsd.kernels.range_gains import add_steps, clear_steps


@optional(False)
def looks_at_number(clauses, column):  # type: ignore[no-untyped-def]
    """Whether any predicate depends on the numbers in a column, not only on their atoms."""
    return clauses.valued_columns[column]


@optional(None)
def load_clauses(clauses, values, atoms, column, numbers, met):  # type: ignore[no-untyped-def]
    """Find whether a row satisfies each predicate: all, or those of one column."""
    begin, end = 0, clauses.queries.size
    if column >= 0:
        begin, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    for place in range(begin, end):
        predicate = clauses.entries[place] if column >= 0 else place
        met[predicate] = met_by(clauses, predicate, values, atoms, -1, 0.0, 0, AS_IS, numbers)


@optional(None)
def count_clauses_of(clauses, met, counts):  # type: ignore[no-untyped-def]
    """Add one row to the counts, after ``load_clauses``."""
    for predicate in range(clauses.queries.size):
        if met[predicate]:
            counts[clauses.queries[predicate]] += 1


@inlined
def _is_open(clauses, predicate, values, atoms, column, met, numbers):  # type: ignore[no-untyped-def]
    """Whether changing this column could change the predicate's result.

    For a monotone predicate, the most that the column can do is to make all of its leaves fail,
    where the row satisfies the predicate, or all of them hold, where it does not. The column is
    open if that changes the result. For any other predicate, each column counts as open.
    """
    if not clauses.rising[predicate]:
        return True
    forced = ALL_MISSED if met else ALL_MET
    again = met_by(clauses, predicate, values, atoms, column, 0.0, 0, forced, numbers)
    return again != met


@optional(None)
def score_clauses(  # type: ignore[no-untyped-def]
    clauses, weights, targets, counts, values, atoms, column, size, met, numbers, steps, scores
):
    """Add to each atom's score the gain of putting the row there, after taking the row out.

    Gains that are the same for all atoms are left out, and so are entries that depend on numbers;
    see ``score_valued``.

    Args:
        clauses: The predicates.
        weights: The weight of each query.
        targets: The target of each query.
        counts: The count of each query.
        values: The row.
        atoms: The row's atoms.
        column: The column.
        size: The number of atoms of the column.
        met: Whether the row satisfies each predicate.
        numbers: Workspace for the numbers of a program.
        steps: Workspace; atoms + 1 entries.
        scores: The score of each atom; added to.
    """
    begin, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    if begin == end:
        return
    value = values[column]
    clear_steps(size, steps)
    for entry in range(begin, end):
        predicate = clauses.entries[entry]
        here = met[predicate]
        if clauses.valued[entry] or not _is_open(
            clauses, predicate, values, atoms, column, here, numbers
        ):
            continue
        query = np.uint64(clauses.queries[predicate])
        gain = weights[query] * (2 * (targets[query] - counts[query] + np.int64(here)) - 1)
        for segment in range(clauses.segment_starts[entry], clauses.segment_starts[entry + 1]):
            low, high = clauses.firsts[segment], clauses.lasts[segment]
            if met_by(clauses, predicate, values, atoms, column, value, low, AS_IS, numbers):
                steps[np.uint64(low)] += gain
                steps[np.uint64(high)] -= gain
    add_steps(size, steps, scores)


@inlined
def _side(clauses, predicate, values, atoms, column, numbers):  # type: ignore[no-untyped-def]
    """How a predicate depends on its leaves of a column, given the rest of the row.

    Returns:
        1 if the predicate holds exactly when the leaves hold, -1 if it holds exactly when they do
        not, and 0 if the column does not matter.
    """
    side = 0
    for forced in range(2):  # a loop, since each call is inlined
        met = met_by(clauses, predicate, values, atoms, column, 0.0, 0, forced, numbers)
        if met:
            side += 1 if forced == ALL_MET else -1
    return side


@optional(0)
def prepare_valued(  # type: ignore[no-untyped-def]
    clauses, weights, targets, counts, values, atoms, column, met, numbers, gains, lines
):
    """Compute the gain of satisfying each valued entry of a column, after taking the row out.

    The gain is 0 where the column does not matter. Entries that are linear in the column become
    lines instead: coefficient, offset, gain and operator.

    Returns:
        The number of lines.
    """
    found = 0
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        if clauses.valued[entry]:
            predicate = clauses.entries[entry]
            query = clauses.queries[predicate]
            here = met[predicate]
            gains[entry] = 0.0
            gain = weights[query] * (2 * (targets[query] - counts[query] + np.int64(here)) - 1)
            comparison = clauses.lines[entry]
            if comparison >= 0:
                side = _side(clauses, predicate, values, atoms, column, numbers)
                if side != 0:
                    coefficient, offset = line_of(clauses, comparison, values, column, numbers)
                    lines[0, found] = coefficient
                    lines[1, found] = offset
                    lines[2, found] = gain * side
                    lines[3, found] = clauses.operators[comparison]
                    found += 1
            elif _is_open(clauses, predicate, values, atoms, column, here, numbers):
                gains[entry] = gain
    return found


@optional(0.0)
def score_valued(  # type: ignore[no-untyped-def]
    clauses, values, atoms, column, value, atom, numbers, gains, lines, found
):
    """The gain of a value over the valued entries, after ``prepare_valued``."""
    total = 0.0
    for line in range(found):
        if compares(np.int64(lines[3, line]), lines[0, line] * value + lines[1, line], 0.0):
            total += lines[2, line]
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        if clauses.valued[entry] and gains[entry] != 0:
            predicate = clauses.entries[entry]
            if met_by(clauses, predicate, values, atoms, column, value, atom, AS_IS, numbers):
                total += gains[entry]
    return total


@optional(0.0)
def edit_clauses(  # type: ignore[no-untyped-def]
    clauses, weights, targets, counts, values, atoms, column, value, atom, met, numbers, make
):
    """The change of the loss if a value of the row is replaced.

    If ``make`` is true, the counts and ``met`` are updated as well. The caller changes the row.
    """
    delta = 0.0
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        predicate = clauses.entries[entry]
        after = met_by(clauses, predicate, values, atoms, column, value, atom, AS_IS, numbers)
        change = np.int64(after) - np.int64(met[predicate])
        if change != 0:
            query = clauses.queries[predicate]
            delta += weights[query] * (1 - 2 * change * (targets[query] - counts[query]))
            if make:
                counts[query] += change
                met[predicate] = after
    return delta


@kernel
def mark_clauses(clauses, columns, cuts, depth, values, met):  # type: ignore[no-untyped-def]
    """Find whether each row satisfies each predicate; see ``count_clauses``."""
    counts = np.zeros(clauses.queries.size, dtype=np.int64)
    for row in range(values.shape[0]):
        counts[:] = 0
        count_clauses(clauses, columns, cuts, depth, values[row : row + 1], counts)
        for predicate in range(counts.size):
            met[row, predicate] = counts[predicate] > 0


@kernel
def count_clauses(clauses, columns, cuts, depth, values, counts):  # type: ignore[no-untyped-def]
    """Add to each predicate the number of rows that satisfy it.

    Args:
        clauses: The predicates.
        columns: The columns of the tests.
        cuts: The cut points of the columns.
        depth: The most numbers that a program holds at once.
        values: The row matrix.
        counts: The count of each predicate; added to.
    """
    row = np.empty(values.shape[1])
    atoms = np.zeros(values.shape[1], dtype=np.int32)
    numbers = np.empty(depth)
    for number in range(values.shape[0]):
        for column in range(row.size):
            row[column] = values[number, column]
        for place in range(columns.size):
            column = columns[place]
            atoms[column] = atom_of(cuts, column, row[column])
        for predicate in range(clauses.queries.size):
            counts[predicate] += met_by(clauses, predicate, row, atoms, -1, 0.0, 0, AS_IS, numbers)
