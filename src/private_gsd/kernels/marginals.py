"""Marginals: count rows in tables over several columns' atoms."""

from __future__ import annotations

import numba
import numpy as np

# Rows of all columns in a block stay in the second-level cache while every table is counted.
BLOCK_ROWS = 4096


@numba.njit(nogil=True, cache=True)
def count_tables(atoms, columns, strides, starts, offsets, counts):  # type: ignore[no-untyped-def]
    """Add each row to one cell of each table.

    Args:
        atoms: For each column, the atom of each row.
        columns: The columns of all tables, one table after the other.
        strides: How far apart neighbouring atoms of that column are in its table.
        starts: Where each table begins in ``columns`` and ``strides``; one more than tables.
        offsets: Where each table begins in ``counts``.
        counts: The cells of all tables; added to.
    """
    rows = atoms.shape[1]
    cells = np.empty(BLOCK_ROWS, dtype=np.int64)
    for begin in range(0, rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, rows - begin)
        for table in range(starts.size - 1):
            first = starts[table]
            # One pass a column vectorises; increments in the last pass cannot.
            codes = atoms[columns[first]]
            stride = strides[first]
            offset = offsets[table]
            for row in range(size):
                cells[row] = offset + codes[begin + row] * stride
            for position in range(first + 1, starts[table + 1]):
                codes = atoms[columns[position]]
                stride = strides[position]
                for row in range(size):
                    cells[row] += codes[begin + row] * stride
            for row in range(size):
                counts[cells[row]] += 1
