"""Nearest: the closest row of another table to each row of one, and donors of values."""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.streams import begin, below


@kernel
def nearest_rows(rows, others, discrete, distances, places):  # type: ignore[no-untyped-def]
    """The closest of the others to each row: how far it is, as a mean over the columns, and which.

    Numbers, which lie between 0 and 1, differ by their difference; values of ``discrete`` columns
    by 1 or not at all; a null and anything else by 1. A comparison ends when it can no longer be
    the least.
    """
    columns = rows.shape[1]
    for row in range(rows.shape[0]):
        best = columns + 1.0
        place = 0
        for other in range(others.shape[0]):
            total = 0.0
            for column in range(columns):
                one = rows[row, column]
                two = others[other, column]
                if one == two or (one != one and two != two):
                    continue
                if discrete[column] or one != one or two != two:
                    total += 1.0
                else:
                    total += abs(one - two)
                if total >= best:
                    break
            if total < best:
                best = total
                place = other
                if best == 0.0:
                    break
        distances[row] = best / columns
        places[row] = place


@kernel
def nearest_donors(given, table, columns, discrete, spans, often, seed, out):  # type: ignore[no-untyped-def]
    """For each given row the nearest one of a table; of equals, any, each as likely as another.

    Categories and nulls are alike or not; numbers differ by a share of their column's span.

    Args:
        given: The rows; only some columns count.
        table: The rows to choose from.
        columns: The columns that count.
        discrete: For each column, whether it holds categories.
        spans: For each column, its upper bound less its lower one.
        often: How often a row of the table may be chosen.
        seed: Of the choice.
        out: For each given row, the number of a row of the table, or -1; written.

    Returns:
        The mean distance.
    """
    total = 0.0
    chosen = np.zeros(table.shape[0], dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for row in range(given.shape[0]):
        begin(stream, seed, row, 0)
        least = np.inf
        ties = 0
        out[row] = -1
        for other in range(table.shape[0]):
            if chosen[other] >= often:
                continue
            distance = 0.0
            for place in range(columns.size):
                column = columns[place]
                mine, theirs = given[row, column], table[other, column]
                if mine != mine or theirs != theirs:
                    distance += (mine == mine) != (theirs == theirs)
                elif discrete[column]:
                    distance += mine != theirs
                else:
                    distance += abs(mine - theirs) / spans[column]
                if distance > least:
                    break
            if distance < least:
                least = distance
                ties = 0
            if distance == least:
                ties += 1
                if below(stream, ties) == 0:
                    out[row] = other
        if out[row] >= 0:
            chosen[out[row]] += 1
            total += least
    return total / given.shape[0]
