"""Predicates: edits scored with conditions in SQL, each a program, and rows counted by them."""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.cells import atom_of
from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.programs import ALL_MET, ALL_MISSED, AS_IS, compares, line_of, met_by


@optional(False)
def looks_at_number(clauses, column):  # type: ignore[no-untyped-def]
    """Whether any predicate looks at the numbers in a column, not only at their atoms."""
    return clauses.valued_columns[column]


@optional(None)
def load_clauses(clauses, values, atoms, column, numbers, met):  # type: ignore[no-untyped-def]
    """Which predicates a row meets: all, or those that look at one column."""
    begin, end = 0, clauses.queries.size
    if column >= 0:
        begin, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    for place in range(begin, end):
        predicate = clauses.entries[place] if column >= 0 else place
        met[predicate] = met_by(clauses, predicate, values, atoms, -1, 0.0, 0, AS_IS, numbers)


@optional(None)
def count_clauses_of(clauses, met, counts):  # type: ignore[no-untyped-def]
    """Count one row, from ``load_clauses``."""
    for predicate in range(clauses.queries.size):
        if met[predicate]:
            counts[clauses.queries[predicate]] += 1


@inlined
def _is_open(clauses, predicate, values, atoms, column, met, numbers):  # type: ignore[no-untyped-def]
    """Whether it may depend on a column if a row meets a predicate, the rest being as it is.

    If it is met, then also with all leaves of the column missed; else, with all of them met.
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
    """Add to each atom of a column what the row would gain there, were it taken out first.

    What is the same for all atoms is left out, and valued entries are left to ``score_valued``.

    Args:
        clauses: The predicates.
        weights: For each query.
        targets: For each query.
        counts: For each query.
        values: The row.
        atoms: The row's atoms.
        column: Which column.
        size: How many atoms it has.
        met: Which predicates the row meets.
        numbers: Room for a program's numbers.
        steps: Room for one more number than atoms.
        scores: For each atom; added to.
    """
    begin, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    if begin == end:
        return
    value = values[column]
    for atom in range(size + 1):
        steps[atom] = 0
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
    total = 0.0
    for atom in range(np.uint64(size)):
        total += steps[atom]
        scores[atom] += total


@inlined
def _side(clauses, predicate, values, atoms, column, numbers):  # type: ignore[no-untyped-def]
    """1 if a row meets a predicate just if it meets its leaves of a column, -1 if just if not.

    0 where the column does not matter.
    """
    side = 0
    for forced in range(2):  # a loop, since each call is compiled in place
        met = met_by(clauses, predicate, values, atoms, column, 0.0, 0, forced, numbers)
        if met:
            side += 1 if forced == ALL_MET else -1
    return side


@optional(0)
def prepare_valued(  # type: ignore[no-untyped-def]
    clauses, weights, targets, counts, values, atoms, column, met, numbers, gains, lines
):
    """For each valued entry of a column, what meeting it gains, were the row taken out; written.

    0 where it does not depend on the column whether the row meets it. Entries with a line are put
    together instead: slope, offset, gain and operator.

    Returns:
        How many lines there are.
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
                    slope, offset = line_of(clauses, comparison, values, column, numbers)
                    lines[0, found] = slope
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
    """What the row gains in valued entries with a value, after ``prepare_valued``."""
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
    """By how much the loss changes if a value of the row becomes another; counted, if it is made.

    The row itself is left for the caller to change; which predicates it meets is not.
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
    """For each row and predicate, whether the row meets it; see ``count_clauses``."""
    counts = np.zeros(clauses.queries.size, dtype=np.int64)
    for row in range(values.shape[0]):
        counts[:] = 0
        count_clauses(clauses, columns, cuts, depth, values[row : row + 1], counts)
        for predicate in range(counts.size):
            met[row, predicate] = counts[predicate] > 0


@kernel
def count_clauses(clauses, columns, cuts, depth, values, counts):  # type: ignore[no-untyped-def]
    """Add to each predicate the rows that meet it.

    Args:
        clauses: The predicates.
        columns: The columns that tests look at.
        cuts: Where columns are cut.
        depth: How many numbers a program holds at most.
        values: The row matrix.
        counts: One for each predicate; added to.
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
