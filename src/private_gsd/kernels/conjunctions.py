"""Conjunctions: count the rows that satisfy several conditions, and score edits.

For counting, a block of rows becomes bitmaps, one for each category and one for each rank of each
numeric column (the rows below the r-th smallest value). A query is the intersection of a few
bitmaps, which handles 64 rows in one operation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic

from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.range_gains import add_steps, clear_steps

BLOCK_ROWS = 1024
WORDS = BLOCK_ROWS // 64


@intrinsic
def _popcount(typing_context, word):  # type: ignore[no-untyped-def]  # noqa: ARG001
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@kernel
def count_conjunctions(  # type: ignore[no-untyped-def]
    values, discrete, numeric, sizes, category, columns, thresholds, places, starts, counts
):
    """Add to each query the number of rows that satisfy it.

    Args:
        values: The row matrix.
        discrete: The columns of ``values`` that hold categories.
        numeric: The columns of ``values`` that thresholds are on.
        sizes: For each discrete column, the number of atoms of the columns before it, with that of
            the null as each column's last; columns + 1 entries.
        category: For each query, its category: ``sizes`` of the column plus the atom.
        columns: For each query and condition, the numeric column, by position in ``numeric``.
        thresholds: For each numeric column, all its thresholds in order, one column after the
            other.
        places: For each query and condition, the place of its threshold in ``thresholds``.
        starts: Where each numeric column begins in ``thresholds``; columns + 1 entries.
        counts: The count of each query; added to.
    """
    rows = values.shape[0]
    queries, conditions = columns.shape
    categories = np.zeros((sizes[-1], WORDS), dtype=np.uint64)
    below = np.zeros((numeric.size, BLOCK_ROWS + 1, WORDS), dtype=np.uint64)
    ranks = np.empty(thresholds.size, dtype=np.int64)
    meets = np.empty(WORDS, dtype=np.uint64)
    one = np.uint64(1)
    for begin in range(0, rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, rows - begin)
        categories[:] = 0
        for position in range(discrete.size):
            first, null = sizes[position], sizes[position + 1] - 1
            for row in range(size):
                value = values[begin + row, discrete[position]]
                atom = null if value != value else first + int(value)
                categories[atom, row >> 6] |= one << np.uint64(row & 63)
        for position in range(numeric.size):
            block = values[begin : begin + size, numeric[position]].copy()
            order = np.argsort(block)  # NaN, which is below nothing, comes last
            place = starts[position]
            end = starts[position + 1]
            bitmaps = below[position]
            bitmaps[0, :] = 0
            for rank in range(size):
                row = order[rank]
                value = block[row]
                if value != value:
                    break
                while place < end and thresholds[place] <= value:
                    ranks[place] = rank
                    place += 1
                bitmaps[rank + 1, :] = bitmaps[rank]
                bitmaps[rank + 1, row >> 6] |= one << np.uint64(row & 63)
            else:
                rank = size
            while place < end:
                ranks[place] = rank
                place += 1
        for query in range(queries):
            chosen = categories[category[query]]
            total = np.uint64(0)
            if conditions == 2:
                first = below[columns[query, 0], ranks[places[query, 0]]]
                second = below[columns[query, 1], ranks[places[query, 1]]]
                for word in range(WORDS):
                    total += _popcount(chosen[word] & first[word] & second[word])  # type: ignore[call-arg]
            else:
                meets[:] = chosen
                for condition in range(conditions):
                    first = below[columns[query, condition], ranks[places[query, condition]]]
                    for word in range(WORDS):
                        meets[word] &= first[word]
                for word in range(WORDS):
                    total += _popcount(meets[word])  # type: ignore[call-arg]
            counts[query] += np.int64(total)


class Conditions(NamedTuple):
    """Conjunctions as edits use them: each condition is a range of one column's atoms.

    An entry is a column within a conjunction. ``others`` holds the other conditions of the entry,
    padded with conditions that are always satisfied.
    """

    starts: Any
    """Where each column's entries begin; columns + 1 entries."""
    queries: Any
    """For each entry, the query."""
    lows: Any
    """For each entry, the first atom that satisfies its condition."""
    highs: Any
    """For each entry, the first atom after those that satisfy its condition."""
    others: Any
    """For each entry, the columns of the other conditions."""
    other_lows: Any
    """For each entry and other condition, the first atom that satisfies it."""
    other_highs: Any
    """For each entry and other condition, the first atom after those that satisfy it."""
    first: Any
    """For each entry, whether it is the first of its conjunction."""


@inlined
def _others_met(conditions, entry, atoms):  # type: ignore[no-untyped-def]
    met = True
    for other in range(np.uint64(conditions.others.shape[1])):
        atom = atoms[np.uint64(conditions.others[entry, other])]
        met &= conditions.other_lows[entry, other] <= atom
        met &= atom < conditions.other_highs[entry, other]
    return met


@optional(None)
def score_conjunctions(conditions, weights, targets, counts, atoms, column, size, steps, scores):  # type: ignore[no-untyped-def]
    """Add to each atom's score the gain of putting the row there, after taking the row out.

    Args:
        conditions: The conjunctions.
        weights: The weight of each query.
        targets: The target of each query.
        counts: The count of each query.
        atoms: The atoms of the row.
        column: The column.
        size: The number of atoms of the column.
        steps: Workspace; atoms + 1 entries.
        scores: The score of each atom; added to.
    """
    begin, end = conditions.starts[column], conditions.starts[column + 1]
    if begin == end:
        return
    current = atoms[column]
    clear_steps(size, steps)
    for entry in range(np.uint64(begin), np.uint64(end)):
        if not _others_met(conditions, entry, atoms):
            continue
        query = np.uint64(conditions.queries[entry])
        low, high = conditions.lows[entry], conditions.highs[entry]
        here = low <= current < high
        gain = weights[query] * (2 * (targets[query] - counts[query] + here) - 1)
        steps[np.uint64(low)] += gain
        steps[np.uint64(high)] -= gain
    add_steps(size, steps, scores)


@optional(None)
def count_conjunctions_of(conditions, atoms, counts):  # type: ignore[no-untyped-def]
    """Add one row to the counts."""
    for column in range(atoms.size):
        atom = atoms[column]
        for entry in range(conditions.starts[column], conditions.starts[column + 1]):
            if (
                conditions.first[entry]
                and conditions.lows[entry] <= atom < conditions.highs[entry]
                and _others_met(conditions, entry, atoms)
            ):
                counts[conditions.queries[entry]] += 1


@inlined
def _edit(conditions, weights, targets, counts, atoms, column, atom, make):  # type: ignore[no-untyped-def]
    """The change of the loss with another atom in a column; if ``make``, counts are updated."""
    delta = 0.0
    current = atoms[column]
    for entry in range(conditions.starts[column], conditions.starts[column + 1]):
        low, high = conditions.lows[entry], conditions.highs[entry]
        change = np.int64(low <= atom < high) - np.int64(low <= current < high)
        if change != 0 and _others_met(conditions, entry, atoms):
            query = conditions.queries[entry]
            delta += weights[query] * (1 - 2 * change * (targets[query] - counts[query]))
            if make:
                counts[query] += change
    return delta


@optional(0.0)
def delta_conjunctions(conditions, weights, targets, counts, atoms, column, atom):  # type: ignore[no-untyped-def]
    """The change of the loss if the row gets another atom in a column."""
    return _edit(conditions, weights, targets, counts, atoms, column, atom, False)


@optional(0.0)
def apply_conjunctions(conditions, weights, targets, counts, atoms, column, atom):  # type: ignore[no-untyped-def]
    """Count the row with another atom in a column; returns the change of the loss.

    The caller changes the row itself.
    """
    return _edit(conditions, weights, targets, counts, atoms, column, atom, True)
