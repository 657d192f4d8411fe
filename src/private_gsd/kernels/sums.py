"""Sums: of numbers over the rows that meet a condition, counted in whole steps, and edited.

A query is a few parts. A part gives a row so many steps if the row meets its condition: a constant,
or a constant times the step that a column's value is at. All numbers are whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.programs import AS_IS, Clauses, met_by


class Parts(NamedTuple):
    """The parts of all sums; those of a query stand together."""

    clauses: Clauses
    """Their conditions; a part whose column is null never meets its own."""
    factors: Any
    """For each part, how often it counts."""
    columns: Any
    """For each part, the column whose step it is multiplied with, or -1."""
    lows: Any
    """For each column, where its steps begin."""
    steps: Any
    """For each column, steps to one."""


@inlined
def _given(parts, part, values, atoms, column, value, atom, numbers):  # type: ignore[no-untyped-def]
    """What a part gives a row, one of its values replaced."""
    if not met_by(parts.clauses, part, values, atoms, column, value, atom, AS_IS, numbers):
        return 0
    own = parts.columns[part]
    if own < 0:
        return parts.factors[part]
    number = value if own == column else values[own]
    return parts.factors[part] * np.int64(
        np.floor((number - parts.lows[own]) * parts.steps[own] + 0.5)
    )


@optional(False)
def is_summed(parts, column):  # type: ignore[no-untyped-def]
    """Whether any sum looks at a column."""
    return parts.clauses.entry_starts[column + 1] > parts.clauses.entry_starts[column]


@optional(None)
def count_sums_of(parts, values, atoms, numbers, counts):  # type: ignore[no-untyped-def]
    """Count one row."""
    for part in range(parts.factors.size):
        query = parts.clauses.queries[part]
        counts[query] += _given(parts, part, values, atoms, -1, 0.0, 0, numbers)


@optional(0.0)
def edit_sums(  # type: ignore[no-untyped-def]
    parts, weights, targets, counts, values, atoms, column, value, atom, numbers, make
):
    """By how much the loss changes if a value of the row becomes another; counted, if it is made.

    The row itself is left for the caller to change.
    """
    clauses = parts.clauses
    delta = 0.0
    shift = 0
    begin, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    for entry in range(begin, end):
        part = clauses.entries[entry]
        for step in range(2):  # before and after; a loop, since each call is compiled in place
            trial = value if step == 1 else values[column]
            place = atom if step == 1 else np.int64(atoms[column])
            given = _given(parts, part, values, atoms, column, trial, place, numbers)
            shift += given if step == 1 else -given
        query = clauses.queries[part]
        last = entry + 1 == end or clauses.queries[clauses.entries[entry + 1]] != query
        if last and shift != 0:
            residual = targets[query] - counts[query]
            delta += weights[query] * shift * (shift - 2 * residual)
            if make:
                counts[query] += shift
        if last:
            shift = 0
    return delta


@kernel
def count_sums(parts, values, atoms, numbers, counts):  # type: ignore[no-untyped-def]
    """Count the rows of a table; added to ``counts``, one for each query."""
    for row in range(values.shape[0]):
        for part in range(parts.factors.size):
            query = parts.clauses.queries[part]
            counts[query] += _given(parts, part, values[row], atoms[row], -1, 0.0, 0, numbers)
