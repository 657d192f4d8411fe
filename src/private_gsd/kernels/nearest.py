"""Nearest rows: for each row of a table the nearest row of another table."""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import kernel
from private_gsd.kernels.streams import begin, below


@kernel
def nearest_rows(rows, others, discrete, distances, places):  # type: ignore[no-untyped-def]
    """Find the nearest of the others to each row: its distance, averaged over columns, and number.

    The distance of two numbers, which lie between 0 and 1, is their difference; that of two values
    of ``discrete`` columns is 0 or 1; that of a null and a value is 1. A comparison ends as soon as
    the distance reaches the smallest one found so far.
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
    """For each given row the nearest row of a table; a random one of those that are equally near.

    The distance of two categories, or of a null and a value, is 0 or 1; that of two numbers is
    their difference as a share of the column's span.

    Args:
        given: The given rows.
        table: The rows to choose from.
        columns: The columns that are compared.
        discrete: For each column, whether it holds categories.
        spans: For each column, its upper bound minus its lower bound.
        often: The number of times that a row of the table may be chosen.
        seed: The seed of the choice.
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
