"""Nearest rows: for each row of a table the nearest row of another table."""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel
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


@inlined
def _fill_distances(given, table, columns, discrete, spreads, distances):  # type: ignore[no-untyped-def]
    """The distance of every row of a table to a given row."""
    distances[:] = 0.0
    for place in range(columns.size):
        column = columns[place]
        mine = given[column]
        for other in range(table.shape[0]):
            theirs = table[other, column]
            if mine == theirs:
                continue
            if mine != mine or theirs != theirs:
                distances[other] += (mine == mine) != (theirs == theirs)
            elif discrete[column]:
                distances[other] += 1.0
            else:
                distances[other] += abs(mine - theirs) / spreads[column]


@kernel
def draw_donors(given, table, columns, discrete, spreads, enough, seed, turn, uses, out):  # type: ignore[no-untyped-def]
    """For each given row a random one of the rows of a table that are most like it.

    These are the ``enough`` nearest rows, and all that are as near as the last of them. One that
    was drawn least often is drawn. The distance of two categories, or of a null and a value, is 0
    or 1; that of two numbers is their difference divided by the column's spread.

    Args:
        given: The given rows; those that are equal should follow each other.
        table: The rows to draw from.
        columns: The columns that are compared.
        discrete: For each column, whether it holds categories.
        spreads: For each column, its standard deviation in the table.
        enough: The least number of rows to draw from.
        seed: The seed of the draws.
        turn: The number of draws before for these rows.
        uses: For each row of the table, how often it was drawn; changed.
        out: For each given row, the number of a row of the table; written.
    """
    stream = np.empty(1, dtype=np.uint64)
    distances = np.empty(table.shape[0])
    last = 0.0
    for row in range(given.shape[0]):
        same = row > 0
        for place in range(columns.size):
            same &= given[row, columns[place]] == given[row - 1, columns[place]]
        if not same:
            _fill_distances(given[row], table, columns, discrete, spreads, distances)
            last = np.partition(distances, enough - 1)[enough - 1]
        begin(stream, seed, row, turn)
        least = np.int64(2**62)
        ties = 0
        for other in range(table.shape[0]):
            if distances[other] > last or uses[other] > least:
                continue
            if uses[other] < least:
                least = uses[other]
                ties = 0
            ties += 1
            if below(stream, ties) == 0:
                out[row] = other
        uses[out[row]] += 1
