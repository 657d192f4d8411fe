"""Cells: the values that a cell of the table may hold, and the atoms of these values.

The atoms of a column are its categories, or the segments between all of its cut points, and its
null as the last one. Marginal tables and conjunctions do not distinguish the values of one atom.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel
from private_gsd.kernels.streams import begin, below, uniform


class Columns(NamedTuple):
    """The values of the columns.

    Numbers on a grid (whole numbers, dates, declared decimals) are counted on it: a number is
    ``step / denominator``. Without a grid the denominator is 0, and steps are the numbers.
    """

    starts: Any
    """Where each column's atoms begin; columns + 1 entries."""
    firsts: Any
    """For each atom, its first step; greater than its last step if the atom holds no value."""
    lasts: Any
    """For each atom, its last step."""
    base_scores: Any
    """For each atom, its score before any query: 0, or minus infinity if it holds no value."""
    denominators: Any
    """For each column, the number of steps per 1; 0 without a grid."""
    nulls: Any
    """For each column, the atom of its null, or -1."""
    ends: Any
    """For each column, its first and last step."""
    null_probabilities: Any
    """For each column, the probability of a null among uniform random values."""
    cuts: Any
    """The cut points of all columns, in order; none for a column of categories."""
    cut_starts: Any
    """Where each column's cut points begin; columns + 1 entries."""
    discrete: Any
    """For each column, whether it holds categories."""


class Cuts(NamedTuple):
    """The fields of ``Columns`` that are needed to find the atom of a value."""

    nulls: Any
    cuts: Any
    cut_starts: Any
    discrete: Any


@inlined
def _between(stream, first, last, denominator):  # type: ignore[no-untyped-def]
    share = uniform(stream)
    if denominator == 0:
        return min(max(first * (1 - share) + last * share, first), last)
    step = first + np.floor(share * (last - first + 1))
    return min(max(step, first), last) / denominator


@inlined
def draw_within(columns, column, atom, stream):  # type: ignore[no-untyped-def]
    """A uniform random value of an atom."""
    if atom == columns.nulls[column]:
        return np.nan
    place = columns.starts[column] + atom
    return _between(
        stream, columns.firsts[place], columns.lasts[place], columns.denominators[column]
    )


@inlined
def draw_any(columns, column, stream):  # type: ignore[no-untyped-def]
    """A uniform random value of the column, or null; see ``null_probabilities``."""
    if (
        columns.null_probabilities[column] > 0
        and uniform(stream) < columns.null_probabilities[column]
    ):
        return np.nan
    return _between(
        stream, columns.ends[column, 0], columns.ends[column, 1], columns.denominators[column]
    )


@inlined
def draw_between(columns, column, low, high, stream):  # type: ignore[no-untyped-def]
    """A uniform random number of the column between two bounds, up to rounding."""
    first, last = columns.ends[column, 0], columns.ends[column, 1]
    denominator = columns.denominators[column]
    if denominator == 0:
        return _between(stream, min(max(first, low), last), max(min(last, high), first), 0.0)
    slack = 1e-9 * max(1.0, denominator)
    start = max(first, np.ceil(low * denominator - slack))
    end = min(last, np.floor(high * denominator + slack))
    return _between(stream, min(start, last), max(end, first), denominator)


@inlined
def atom_of(columns, column, value):  # type: ignore[no-untyped-def]
    """The atom of a value: its code, or the number of cut points at or below it."""
    if value != value:
        return columns.nulls[column]
    if columns.discrete[column]:
        return np.int64(value)
    low, high = columns.cut_starts[column], columns.cut_starts[column + 1]
    start = low
    while low < high:
        middle = (low + high) // 2
        if columns.cuts[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - start


@kernel
def draw_table(columns, stream, values):  # type: ignore[no-untyped-def]
    """Fill a table with uniform random values."""
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            values[row, column] = draw_any(columns, column, stream)


@kernel
def draw_again(columns, some, atoms, seed, values):  # type: ignore[no-untyped-def]
    """Draw the values of some columns again within their atoms.

    Args:
        columns: The values of the columns.
        some: The columns.
        atoms: The atom of every value.
        seed: The seed of the drawing.
        values: The table; changed.
    """
    stream = np.empty(1, dtype=np.uint64)
    for row in range(values.shape[0]):
        begin(stream, seed, row, 0)
        for column in some:
            values[row, column] = draw_within(columns, column, atoms[row, column], stream)


@kernel
def fill_atoms(columns, values, atoms):  # type: ignore[no-untyped-def]
    """Find the atom of every value of a table."""
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            atoms[row, column] = atom_of(columns, column, values[row, column])


@kernel
def draw_rows(columns, values, seed, generation, rows, column, shares, out):  # type: ignore[no-untyped-def]
    """Candidate values for some rows of one column: by crossover from other rows, or by mutation.

    Args:
        columns: The values of the columns.
        values: The table.
        seed: The seed of the search.
        generation: The number of the draw.
        rows: The rows.
        column: The column.
        shares: The fraction of candidates that are values of other rows.
        out: The candidates, by row and candidate; written.
    """
    stream = np.empty(1, dtype=np.uint64)
    for place in range(rows.size):
        begin(stream, seed, generation, rows[place])
        for candidate in range(out.shape[1]):
            if uniform(stream) < shares:
                out[place, candidate] = values[below(stream, values.shape[0]), column]
            else:
                out[place, candidate] = draw_any(columns, column, stream)
