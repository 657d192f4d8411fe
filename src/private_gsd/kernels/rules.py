"""Rules: the values that a row may have, and random rows and changes that keep the rules.

All rows that these kernels get keep all rules, and so do all rows that they produce.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.cells import atom_of, draw_any, draw_between
from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.programs import (
    ALL_MET,
    AS_IS,
    EQUAL,
    LESS,
    LESS_EQUAL,
    MORE,
    MORE_EQUAL,
    UNEQUAL,
    Clauses,
    line_of,
    met_by,
)
from private_gsd.kernels.streams import begin, below, uniform


class Rules(NamedTuple):
    """Rules as programs that each row satisfies, and the columns that they link."""

    clauses: Clauses
    """The rules; an entry of a column is a rule that depends on it."""
    tied: Any
    """The columns that may change and that at least one rule depends on."""
    block_starts: Any
    """Where each block's columns begin; blocks + 1 entries."""
    block_columns: Any
    """For each block, the columns that change at the same time."""


@inlined
def _met_all(clauses, values, atoms, column, value, atom, numbers):  # type: ignore[no-untyped-def]
    """Whether a row, with one value replaced, keeps the rules of a column; all rules for -1."""
    begin_at, end = 0, clauses.roots.size
    if column >= 0:
        begin_at, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    for place in range(begin_at, end):
        rule = clauses.entries[place] if column >= 0 else place
        if not met_by(clauses, rule, values, atoms, column, value, atom, AS_IS, numbers):
            return False
    return True


@optional(True)
def keeps(rules, values, atoms, column, value, atom, numbers):  # type: ignore[no-untyped-def]
    """Whether a row keeps the rules if one of its values is replaced."""
    return _met_all(rules.clauses, values, atoms, column, value, atom, numbers)


@optional(False)
def ruled_by_number(rules, column):  # type: ignore[no-untyped-def]
    """Whether any rule depends on the numbers in a column, not only on their atoms."""
    return rules.clauses.valued_columns[column]


@optional(None)
def forbid_atoms(rules, values, atoms, column, numbers, scores):  # type: ignore[no-untyped-def]
    """Set the scores of atoms that break a rule to minus infinity, for rules on atoms alone."""
    clauses = rules.clauses
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        if clauses.valued[entry]:
            continue
        rule = clauses.entries[entry]
        for segment in range(clauses.segment_starts[entry], clauses.segment_starts[entry + 1]):
            low, high = clauses.firsts[segment], clauses.lasts[segment]
            if not met_by(clauses, rule, values, atoms, column, 0.0, low, AS_IS, numbers):
                for atom in range(low, high):
                    scores[atom] = -np.inf


@inlined
def _fresh(rules, columns, values, atoms, column, stream, numbers):  # type: ignore[no-untyped-def]
    """A uniform random value of a column among those that linear rules allow.

    Other rules may still forbid it.
    """
    clauses = rules.clauses
    low, high = -np.inf, np.inf
    for entry in range(clauses.entry_starts[column], clauses.entry_starts[column + 1]):
        comparison = clauses.lines[entry]
        if comparison < 0:
            continue
        rule = clauses.entries[entry]
        free = must = True
        for forced in range(2):  # a loop, since each call is inlined
            met = met_by(clauses, rule, values, atoms, column, 0.0, 0, forced, numbers)
            free &= met
            if forced == ALL_MET:
                must = met
        if free:
            continue
        coefficient, offset = line_of(clauses, comparison, values, column, numbers)
        if coefficient == 0 or coefficient != coefficient or offset != offset:
            continue
        edge = -offset / coefficient
        operator = clauses.operators[comparison]
        below_edge = (operator == LESS) | (operator == LESS_EQUAL)
        above_edge = (operator == MORE) | (operator == MORE_EQUAL)
        if operator == (EQUAL if must else UNEQUAL):
            low, high = max(low, edge), min(high, edge)
        elif below_edge | above_edge:
            # The allowed side of the edge depends on the sign of the coefficient, and on whether
            # the rule requires or forbids the comparison.
            if (below_edge != (coefficient < 0)) == must:
                high = min(high, edge)
            else:
                low = max(low, edge)
    if low == -np.inf and high == np.inf:
        return draw_any(columns, column, stream)
    if (
        columns.null_probabilities[column] > 0
        and uniform(stream) < columns.null_probabilities[column]
    ):
        return np.nan
    return draw_between(columns, column, low, high, stream)


@optional(0.0)
def draw_ruled(rules, columns, values, atoms, column, stream, numbers):  # type: ignore[no-untyped-def]
    """A random value for a column that rules depend on; the rules probably allow it."""
    return _fresh(rules, columns, values, atoms, column, stream, numbers)


@inlined
def _redraw(rules, columns, values, atoms, column, stream, numbers):  # type: ignore[no-untyped-def]
    """Try a few times to redraw a value within the rules; returns whether an attempt succeeded."""
    size = columns.starts[column + 1] - columns.starts[column]
    first = below(stream, size)
    for attempt in range(min(size, 16) if columns.discrete[column] else 4):
        if columns.discrete[column]:  # codes in order, from a random code on
            atom = (first + attempt) % size
            value = np.nan if atom == columns.nulls[column] else np.float64(atom)
        else:
            value = _fresh(rules, columns, values, atoms, column, stream, numbers)
            atom = atom_of(columns, column, value)
        if _met_all(rules.clauses, values, atoms, column, value, atom, numbers):
            values[column] = value
            atoms[column] = atom
            return True
    return False


@kernel
def random_rows(rules, columns, pool, rounds, seed, number, values, numbers):  # type: ignore[no-untyped-def]
    """Fill a table with rows that keep the rules.

    Each row begins as a row of a pool. Then its values are redrawn in turn, each among those that
    the rules allow next to the row's other values.

    Args:
        rules: The rules.
        columns: The values of the columns.
        pool: Rows that keep the rules.
        rounds: The number of times that each value is redrawn.
        seed: The seed of the search.
        number: The number of the table.
        values: The table; written.
        numbers: Workspace for the numbers of a program.
    """
    stream = np.empty(1, dtype=np.uint64)
    atoms = np.empty(values.shape[1], dtype=np.int32)
    ties = np.zeros(values.shape[1], dtype=np.bool_)
    for place in range(rules.tied.size):
        ties[rules.tied[place]] = True
    for row in range(values.shape[0]):
        begin(stream, seed, number, row)
        first = below(stream, pool.shape[0])
        for column in range(values.shape[1]):
            value = pool[first, column] if ties[column] else draw_any(columns, column, stream)
            values[row, column] = value
            atoms[column] = atom_of(columns, column, value)
        for _ in range(rounds * rules.tied.size):
            column = rules.tied[below(stream, rules.tied.size)]
            _redraw(rules, columns, values[row], atoms, column, stream, numbers)


@inlined
def propose_block(rules, columns, state, number, values, atoms, stream, numbers):  # type: ignore[no-untyped-def]
    """Propose to change some columns of a row at once: from another row, or at random.

    Args:
        rules: The rules.
        columns: The values of the columns.
        state: The table.
        number: The row.
        values: The proposed row; written.
        atoms: The atoms of the proposed row; written.
        stream: The stream of random numbers.
        numbers: Workspace for the numbers of a program.

    Returns:
        The block, or -1 if no allowed row was found.
    """
    for column in range(values.size):
        values[column] = state.values[number, column]
        atoms[column] = state.atoms[number, column]
    block = below(stream, rules.block_starts.size - 1)
    start, end = rules.block_starts[block], rules.block_starts[block + 1]
    fresh = below(stream, 2) == 0
    other = below(stream, state.values.shape[0])
    lead = start + below(stream, end - start)
    for place in range(start, end):
        if fresh and place != lead:
            continue
        column = rules.block_columns[place]
        value = draw_any(columns, column, stream) if fresh else state.values[other, column]
        values[column] = value
        atoms[column] = atom_of(columns, column, value)
    first = below(stream, end - start)
    for step in range(end - start + 1):
        if _met_all(rules.clauses, values, atoms, -1, 0.0, 0, numbers):
            return block
        if not fresh or step == end - start:
            return -1
        place = start + (first + step) % (end - start)
        if place != lead:
            column = rules.block_columns[place]
            _redraw(rules, columns, values, atoms, column, stream, numbers)
    return -1


@kernel
def mark_broken(rules, values, atoms, numbers, broken):  # type: ignore[no-untyped-def]
    """Find whether each row of a table breaks each rule."""
    for row in range(values.shape[0]):
        for rule in range(rules.clauses.roots.size):
            broken[row, rule] = not met_by(
                rules.clauses, rule, values[row], atoms[row], -1, 0.0, 0, AS_IS, numbers
            )
