"""Sums of numbers over the rows that satisfy a condition, in whole steps; the effect of edits.

A query is a sum of parts. The contribution of a row to a part is 0 unless the row satisfies the
part's condition; else it is a constant, or a constant times the step of a column's value. Steps,
constants and sums are integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel, optional
from private_gsd.kernels.programs import AS_IS, Clauses, met_by


class Parts(NamedTuple):
    """The parts of all sums; those of a query are contiguous."""

    clauses: Clauses
    """The conditions of the parts; a row whose column is null satisfies none of its parts."""
    factors: Any
    """For each part, its factor."""
    columns: Any
    """For each part, the column whose step is multiplied by the factor, or -1."""
    lows: Any
    """For each column, where its steps begin."""
    steps: Any
    """For each column, the number of steps per 1."""


@inlined
def _given(parts, part, values, atoms, column, value, atom, numbers):  # type: ignore[no-untyped-def]
    """The contribution of a row to a part, with one of its values replaced."""
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
    """Whether any sum depends on a column."""
    return parts.clauses.entry_starts[column + 1] > parts.clauses.entry_starts[column]


@optional(None)
def count_sums_of(parts, values, atoms, numbers, counts):  # type: ignore[no-untyped-def]
    """Add one row to the counts."""
    for part in range(parts.factors.size):
        query = parts.clauses.queries[part]
        counts[query] += _given(parts, part, values, atoms, -1, 0.0, 0, numbers)


@optional(0.0)
def edit_sums(  # type: ignore[no-untyped-def]
    parts, weights, targets, counts, values, atoms, column, value, atom, numbers, make
):
    """The change of the loss if a value of the row is replaced.

    If ``make`` is true, the counts are updated as well. The caller changes the row itself.
    """
    clauses = parts.clauses
    delta = 0.0
    shift = 0
    begin, end = clauses.entry_starts[column], clauses.entry_starts[column + 1]
    for entry in range(begin, end):
        part = clauses.entries[entry]
        for step in range(2):  # before and after; a loop, since each call is inlined
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
    """Add the rows of a table to ``counts``, one count for each query."""
    for row in range(values.shape[0]):
        for part in range(parts.factors.size):
            query = parts.clauses.queries[part]
            counts[query] += _given(parts, part, values[row], atoms[row], -1, 0.0, 0, numbers)
