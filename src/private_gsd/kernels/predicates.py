"""Predicates: conditions on a row as small branching programs, and edits scored with them.

A program is a graph of leaves. Each leaf is a test, which looks up the atom of one column, or a
comparison of numbers, which runs a postfix program over the row's values; met or not, it says which
leaf is next, or that the predicate is met or not. Few leaves are looked at for most rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel, optional

VALUE, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, ABSOLUTE, COALESCE = range(8)
LESS, LESS_EQUAL, MORE, MORE_EQUAL, EQUAL, UNEQUAL = range(6)
# Where a program may end.
MET, MISSED = -1, -2
# What a column's leaves are taken for: as they are, or all met, or all missed.
AS_IS, ALL_MISSED, ALL_MET = -1, 0, 1


class Clauses(NamedTuple):
    """Predicates, as programs, and as edits need them.

    An entry is a column within a predicate. Where only tests look at the column, an entry has
    segments: runs of atoms that look the same to the predicate. Where a comparison looks at the
    number itself, it is valued, and has none.
    """

    queries: Any
    """For each predicate, the query."""
    roots: Any
    """For each predicate, its first node."""
    nodes: Any
    """For each node: where to go if its leaf is missed, and if it is met; the column of a test, or,
    below 0, the comparison; where the test's table begins."""
    tables: Any
    """For each test and atom, whether it is met."""
    operators: Any
    """For each comparison, how it compares."""
    number_starts: Any
    """For each comparison, where its numbers' program begins; one more than comparisons."""
    number_codes: Any
    """For each step of numbers, what it does."""
    number_columns: Any
    """For each step of numbers, the column."""
    constants: Any
    """For each step of numbers, the constant, or the factor of the column's value."""
    compared: Any
    """For each comparison and column, whether it looks at the column."""
    entry_starts: Any
    """Where each column's entries begin; one more than columns."""
    entries: Any
    """For each entry, the predicate."""
    valued: Any
    """For each entry, whether the number itself counts."""
    rising: Any
    """For each predicate, whether it is met all the more, the more of its leaves are."""
    segment_starts: Any
    """Where each entry's segments begin; one more than entries."""
    firsts: Any
    """For each segment, its first atom."""
    lasts: Any
    """For each segment, the first atom after it."""
    valued_columns: Any
    """For each column, whether any of its entries is valued."""


@inlined
def _holds(clauses, comparison, values, column, value, numbers):  # type: ignore[no-untyped-def]
    """Whether a comparison holds for a row, one of its values replaced; not so where null is."""
    top = 0
    for step in range(clauses.number_starts[comparison], clauses.number_starts[comparison + 1]):
        code = clauses.number_codes[step]
        if code == VALUE:
            each = clauses.number_columns[step]
            number = value if each == column else values[each]
            numbers[top] = number * clauses.constants[step]
            top += 1
        elif code == CONSTANT:
            numbers[top] = clauses.constants[step]
            top += 1
        elif code == ABSOLUTE:
            numbers[top - 1] = abs(numbers[top - 1])
        else:
            top -= 1
            left, right = numbers[top - 1], numbers[top]
            if code == ADD:
                left = left + right
            elif code == SUBTRACT:
                left = left - right
            elif code == MULTIPLY:
                left = left * right
            elif code == DIVIDE:
                left = np.nan if right == 0 else left / right
            elif left != left:
                left = right
            numbers[top - 1] = left
    left, right = numbers[0], numbers[1]
    operator = clauses.operators[comparison]
    if operator == LESS:
        return left < right
    if operator == LESS_EQUAL:
        return left <= right
    if operator == MORE:
        return left > right
    if operator == MORE_EQUAL:
        return left >= right
    if operator == EQUAL:
        return left == right
    return left != right and left == left and right == right


@inlined
def _met(clauses, predicate, values, atoms, column, value, atom, forced, numbers):  # type: ignore[no-untyped-def]
    """Whether a row meets a predicate, one of its values replaced.

    Args:
        clauses: The predicates.
        predicate: Which.
        values: The row.
        atoms: Its atoms.
        column: The column whose value is replaced, or -1.
        value: By what.
        atom: By which atom.
        forced: What leaves that look at the column are taken for instead.
        numbers: Room.
    """
    node = np.int64(clauses.roots[predicate])
    while node >= 0:
        place = np.uint64(node)
        leaf = np.int64(clauses.nodes[place, 2])
        if leaf >= 0:
            if leaf != column:
                start = np.int64(clauses.nodes[place, 3])
                met = clauses.tables[np.uint64(start + np.int64(atoms[np.uint64(leaf)]))]
            elif forced >= 0:
                met = np.uint8(forced)
            else:
                met = clauses.tables[np.uint64(np.int64(clauses.nodes[place, 3]) + atom)]
        elif forced >= 0 and clauses.compared[-1 - leaf, column]:
            met = np.uint8(forced)
        else:
            met = np.uint8(_holds(clauses, -1 - leaf, values, column, value, numbers))
        node = np.int64(clauses.nodes[place, np.uint64(met)])
    return node == MET


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
        met[predicate] = _met(clauses, predicate, values, atoms, -1, 0.0, 0, AS_IS, numbers)


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
    again = _met(clauses, predicate, values, atoms, column, 0.0, 0, forced, numbers)
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
            if _met(clauses, predicate, values, atoms, column, value, low, AS_IS, numbers):
                steps[np.uint64(low)] += gain
                steps[np.uint64(high)] -= gain
    total = 0.0
    for atom in range(np.uint64(size)):
        total += steps[atom]
        scores[atom] += total


@optional(None)
def prepare_valued(  # type: ignore[no-untyped-def]
    clauses, weights, targets, counts, values, atoms, column, met, numbers, gains
):
    """For each valued entry of a column, what meeting it gains, were the row taken out; written.

    0 where it does not depend on the column whether the row meets it.
    """
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        if clauses.valued[entry]:
            predicate = clauses.entries[entry]
            query = clauses.queries[predicate]
            here = met[predicate]
            gains[entry] = 0.0
            if _is_open(clauses, predicate, values, atoms, column, here, numbers):
                residual = targets[query] - counts[query] + np.int64(here)
                gains[entry] = weights[query] * (2 * residual - 1)


@optional(0.0)
def score_valued(clauses, values, atoms, column, value, atom, numbers, gains):  # type: ignore[no-untyped-def]
    """What the row gains in valued entries with a value, after ``prepare_valued``."""
    total = 0.0
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        if clauses.valued[entry] and gains[entry] != 0:
            predicate = clauses.entries[entry]
            if _met(clauses, predicate, values, atoms, column, value, atom, AS_IS, numbers):
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
        after = _met(clauses, predicate, values, atoms, column, value, atom, AS_IS, numbers)
        change = np.int64(after) - np.int64(met[predicate])
        if change != 0:
            query = clauses.queries[predicate]
            delta += weights[query] * (1 - 2 * change * (targets[query] - counts[query]))
            if make:
                counts[query] += change
                met[predicate] = after
    return delta


@kernel
def count_clauses(  # type: ignore[no-untyped-def]
    clauses, columns, discrete, nulls, cuts, cut_starts, depth, values, counts
):
    """Add to each predicate the rows that meet it.

    Args:
        clauses: The predicates.
        columns: The columns that tests look at.
        discrete: For each column, whether it holds categories.
        nulls: For each column, the atom of its null.
        cuts: All columns' cuts.
        cut_starts: Where each column's cuts begin; one more than columns.
        depth: How many numbers a program holds at most.
        values: The row matrix.
        counts: One for each predicate; added to.
    """
    row = np.empty(discrete.size)
    atoms = np.zeros(discrete.size, dtype=np.int32)
    numbers = np.empty(depth)
    for number in range(values.shape[0]):
        for column in range(row.size):
            row[column] = values[number, column]
        for place in range(columns.size):
            column = columns[place]
            value = row[column]
            if value != value:
                atoms[column] = nulls[column]
            elif discrete[column]:
                atoms[column] = np.int32(value)
            else:
                first = cut_starts[column]
                low, high = first, cut_starts[column + 1]
                while low < high:
                    middle = (low + high) // 2
                    if cuts[middle] <= value:
                        low = middle + 1
                    else:
                        high = middle
                atoms[column] = low - first
        for predicate in range(clauses.queries.size):
            counts[predicate] += _met(clauses, predicate, row, atoms, -1, 0.0, 0, AS_IS, numbers)
