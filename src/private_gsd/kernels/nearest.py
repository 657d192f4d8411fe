"""Nearest: the closest row of another table to each row of one."""

from __future__ import annotations

from private_gsd.kernels.compiling import kernel


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
