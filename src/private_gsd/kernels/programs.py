"""Programs: conditions on a row as small branching programs.

A program is a graph of leaves. A leaf is a test, which looks up the atom of one column, or a
comparison of numbers, which runs a postfix program over the row's values. Its result leads to the
next leaf, or to the result of the condition. Most rows need few leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined

VALUE, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, ABSOLUTE, COALESCE = range(8)
LESS, LESS_EQUAL, MORE, MORE_EQUAL, EQUAL, UNEQUAL = range(6)
# The results of a program: the condition is satisfied, or not.
MET, MISSED = -1, -2
# How the leaves of a column are evaluated: as they are, or all as not satisfied or satisfied.
AS_IS, ALL_MISSED, ALL_MET = -1, 0, 1


class Clauses(NamedTuple):
    """Predicates as programs, and as edits use them.

    An entry is a column within a predicate. Where only tests depend on the column, an entry has
    segments: runs of atoms for which the result of the predicate is the same. Where a comparison
    depends on the number itself, the entry is valued and has no segments.
    """

    queries: Any
    """For each predicate, the query."""
    roots: Any
    """For each predicate, its first node."""
    nodes: Any
    """For each node: the next node if its leaf is not satisfied, and if it is; the column of a
    test, or, below 0, the comparison; where the table of the test begins."""
    tables: Any
    """For each test and atom, whether the atom satisfies the test."""
    operators: Any
    """For each comparison, its operator."""
    number_starts: Any
    """For each comparison, where its program of numbers begins; comparisons + 1 entries."""
    number_codes: Any
    """For each step of numbers, its operation."""
    number_columns: Any
    """For each step of numbers, the column."""
    constants: Any
    """For each step of numbers, the constant, or the factor of the column's value."""
    compared: Any
    """For each comparison and column, whether the comparison depends on the column."""
    entry_starts: Any
    """Where each column's entries begin; columns + 1 entries."""
    entries: Any
    """For each entry, the predicate."""
    valued: Any
    """For each entry, whether the predicate depends on the number itself."""
    rising: Any
    """For each predicate, whether it is monotone in its leaves."""
    segment_starts: Any
    """Where each entry's segments begin; entries + 1 entries."""
    firsts: Any
    """For each segment, its first atom."""
    lasts: Any
    """For each segment, the first atom after it."""
    lines: Any
    """For each entry, the only comparison that depends on the column, if it is linear, or -1."""
    valued_columns: Any
    """For each column, whether any of its entries is valued."""


@inlined
def _run_numbers(clauses, comparison, values, column, value, numbers):  # type: ignore[no-untyped-def]
    """Compute both sides of a comparison, as the first two of ``numbers``."""
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
                # Division by zero, as in ``divided``.
                by_zero = np.nan if left == 0 else left * np.inf
                left = left / right if right != 0 else by_zero
            elif left != left:
                left = right
            numbers[top - 1] = left


@inlined
def compares(operator, left, right):  # type: ignore[no-untyped-def]
    """Whether two numbers satisfy a comparison; false where one is null."""
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
def _holds(clauses, comparison, values, column, value, numbers):  # type: ignore[no-untyped-def]
    """Whether a comparison holds for a row with one value replaced; false where one is null."""
    _run_numbers(clauses, comparison, values, column, value, numbers)
    return compares(clauses.operators[comparison], numbers[0], numbers[1])


@inlined
def line_of(clauses, comparison, values, column, numbers):  # type: ignore[no-untyped-def]
    """Left minus right of a linear comparison, as coefficient and offset over one column."""
    coefficient = offset = 0.0
    for point in range(2):  # a loop, since each call is inlined
        _run_numbers(clauses, comparison, values, column, np.float64(point), numbers)
        difference = numbers[0] - numbers[1]
        if point == 0:
            offset = difference
        coefficient = difference - offset
    return coefficient, offset


@inlined
def met_by(clauses, predicate, values, atoms, column, value, atom, forced, numbers):  # type: ignore[no-untyped-def]
    """Whether a row satisfies a predicate, with one of its values replaced.

    Args:
        clauses: The predicates.
        predicate: The number of the predicate.
        values: The row.
        atoms: The atoms of the row.
        column: The column whose value is replaced, or -1.
        value: The new value.
        atom: The atom of the new value.
        forced: ``AS_IS``, or the result of all leaves that depend on the column.
        numbers: Workspace for the numbers of a program.
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
