"""Marginals: count rows in tables over the atoms of several columns, and score edits.

For scoring, the weighted residuals of a table are stored once for each of its features, with this
feature innermost: the gains of all values of a cell are then sums of short contiguous slices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel

# Number of rows of a block; a block of all columns fits the second-level cache.
BLOCK_ROWS = 4096


@kernel
def count_tables(atoms, columns, strides, starts, offsets, counts):  # type: ignore[no-untyped-def]
    """Add each row to one cell of each table.

    Args:
        atoms: The atom of each column and row.
        columns: The columns of all tables, one table after the other.
        strides: For each of these columns, the stride of its atoms in the table.
        starts: Where each table begins in ``columns`` and ``strides``; tables + 1 entries.
        offsets: Where each table begins in ``counts``.
        counts: The cells of all tables; added to.
    """
    rows = atoms.shape[1]
    cells = np.empty(BLOCK_ROWS, dtype=np.int64)
    for begin in range(0, rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, rows - begin)
        for table in range(starts.size - 1):
            first = starts[table]
            # One pass for each column vectorises; the increments do not.
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


# Number of cells that are summed at once, in registers.
LANES = 8


class MarginalTables(NamedTuple):
    """Tables over features as edits use them.

    An entry is a feature within a table. ``others`` holds the other features of that table,
    padded with a feature whose cell is always 0.
    """

    feature_starts: Any
    """Where each column's features begin; columns + 1 entries."""
    atom_cells: Any
    """For each feature and atom, the cell, or -1."""
    atom_starts: Any
    """Where each feature begins in ``atom_cells``."""
    slots: Any
    """Where each feature's sums begin, padded to whole lanes; features + 1 entries."""
    entry_starts: Any
    """Where each feature's entries begin; features + 1 entries."""
    weights: Any
    """For each entry, the weight of its table."""
    weight_sums: Any
    """For each feature, the sum of the weights of its entries."""
    others: Any
    """For each entry, the other features."""
    bases: Any
    """For each entry, where its order of the table begins in the residuals."""
    strides: Any
    """For each entry and other feature, the stride of its cells in that order."""
    first: Any
    """For each entry, whether it is the first of its table."""
    queries: Any
    """For each entry, the first query of its table."""
    query_own: Any
    """For each entry, the stride of its own cells among the queries."""
    query_strides: Any
    """For each entry and other feature, the stride of its cells among the queries."""
    orders: Any
    """For each entry, the number of orders of its table."""
    order_bases: Any
    """For each entry and order, where it begins in the residuals."""
    order_own: Any
    """For each entry and order, the stride of the entry's own cells."""
    order_strides: Any
    """For each entry, order and other feature, the stride of its cells."""
    sources: Any
    """For each place in the residuals, the query."""


@kernel
def fill_residuals(sources, weights, targets, counts, residuals):  # type: ignore[no-untyped-def]
    """Compute all residuals from the counts, clipped to a range that sums of float32 can hold."""
    for place in range(sources.size):
        query = sources[place]
        residuals[place] = _clipped(weights[query] * (targets[query] - counts[query]))


@inlined
def _clipped(residual):  # type: ignore[no-untyped-def]
    return np.float32(min(max(residual, -1e30), 1e30))


@inlined
def load_tables(tables, atoms, cells):  # type: ignore[no-untyped-def]
    """Find the cell of a row in each feature; the last cell is the 0 of the padding."""
    for column in range(atoms.size):
        _load_column(tables, column, atoms[column], cells)
    cells[cells.size - 1] = 0


@inlined
def _load_column(tables, column, atom, cells):  # type: ignore[no-untyped-def]
    for feature in range(tables.feature_starts[column], tables.feature_starts[column + 1]):
        cells[feature] = tables.atom_cells[tables.atom_starts[feature] + atom]


@inlined
def score_tables(tables, residuals, cells, column, sums, scores):  # type: ignore[no-untyped-def]
    """Add to each atom's score the gain of putting the row there, after taking the row out.

    Indices are unsigned: Numba would otherwise test whether each is negative, and the sums would
    not vectorise. The first of the other features is outside the loop, as most tables have two.

    Args:
        tables: The tables.
        residuals: Weighted target minus weighted count, in all orders.
        cells: The cells of the row, from ``load_tables``.
        column: The column.
        sums: Workspace for sums.
        scores: The score of each atom; added to.
    """
    for feature in range(tables.feature_starts[column], tables.feature_starts[column + 1]):
        begin = np.uint64(tables.entry_starts[feature])
        end = np.uint64(tables.entry_starts[feature + 1])
        slot = np.uint64(tables.slots[feature])
        weight = 0.0
        lanes = np.uint64(LANES)
        for block in range(np.uint64(tables.slots[feature + 1] - tables.slots[feature]) // lanes):
            a = b = c = d = e = f = g = h = np.float32(0)
            first = np.uint64(block) * lanes
            weight = tables.weight_sums[feature]
            for entry in range(begin, end):
                cell = cells[np.uint64(tables.others[entry, 0])]
                place = np.uint64(tables.bases[entry]) + first
                place += np.uint64(tables.strides[entry, 0]) * np.uint64(cell)
                nowhere = cell < 0
                for other in range(1, tables.others.shape[1]):
                    cell = cells[np.uint64(tables.others[entry, other])]
                    nowhere |= cell < 0
                    place += np.uint64(tables.strides[entry, other]) * np.uint64(cell)
                if nowhere:
                    weight -= tables.weights[entry]
                    continue
                a += residuals[place]
                b += residuals[place + np.uint64(1)]
                c += residuals[place + np.uint64(2)]
                d += residuals[place + np.uint64(3)]
                e += residuals[place + np.uint64(4)]
                f += residuals[place + np.uint64(5)]
                g += residuals[place + np.uint64(6)]
                h += residuals[place + np.uint64(7)]
            sums[slot + first] = a
            sums[slot + first + np.uint64(1)] = b
            sums[slot + first + np.uint64(2)] = c
            sums[slot + first + np.uint64(3)] = d
            sums[slot + first + np.uint64(4)] = e
            sums[slot + first + np.uint64(5)] = f
            sums[slot + first + np.uint64(6)] = g
            sums[slot + first + np.uint64(7)] = h
        current = cells[feature]
        start = np.uint64(tables.atom_starts[feature])
        size = np.uint64(tables.atom_starts[feature + 1]) - start
        for atom in range(size):
            cell = tables.atom_cells[start + np.uint64(atom)]
            if cell >= 0:
                gain = 2 * np.float64(sums[slot + np.uint64(cell)]) - weight
                if cell == current:
                    gain += 2 * weight
                scores[np.uint64(atom)] += gain


@inlined
def _query_of(tables, entry, cells):  # type: ignore[no-untyped-def]
    """The query that counts the row if its own cell is 0; -1 for none."""
    query = tables.queries[entry]
    for other in range(tables.others.shape[1]):
        cell = cells[np.uint64(tables.others[entry, other])]
        if cell < 0:
            return -1
        query += tables.query_strides[entry, other] * cell
    return query


@inlined
def count_tables_of(tables, cells, counts):  # type: ignore[no-untyped-def]
    """Add one row to the counts, after ``load_tables``."""
    for feature in range(tables.entry_starts.size - 1):
        cell = cells[feature]
        if cell < 0:
            continue
        for entry in range(tables.entry_starts[feature], tables.entry_starts[feature + 1]):
            if tables.first[entry]:
                query = _query_of(tables, entry, cells)
                if query >= 0:
                    counts[query + tables.query_own[entry] * cell] += 1


@inlined
def _edit(tables, targets, counts, residuals, cells, column, atom, make):  # type: ignore[no-untyped-def]
    """The change of the loss with another atom in a column; the edit is made if ``make`` is true.

    Residuals are computed from integer counts, so that rounding errors do not add up.
    """
    delta = 0.0
    for feature in range(tables.feature_starts[column], tables.feature_starts[column + 1]):
        old = cells[feature]
        new = tables.atom_cells[tables.atom_starts[feature] + atom]
        if old == new:
            continue
        for entry in range(tables.entry_starts[feature], tables.entry_starts[feature + 1]):
            query = _query_of(tables, entry, cells)
            if query < 0:
                continue
            weight = tables.weights[entry]
            left = joined = np.uint64(0)
            left_residual = joined_residual = 0.0
            change = 0.0
            if old >= 0:
                left = np.uint64(query + tables.query_own[entry] * old)
                left_residual = targets[left] - counts[left] + 1
                change += 2 * left_residual - 1
            if new >= 0:
                joined = np.uint64(query + tables.query_own[entry] * new)
                joined_residual = targets[joined] - counts[joined] - 1
                change -= 2 * joined_residual + 1
            delta += weight * change
            if not make:
                continue
            if old >= 0:
                counts[left] -= 1
            if new >= 0:
                counts[joined] += 1
            left_clipped = _clipped(weight * left_residual)
            joined_clipped = _clipped(weight * joined_residual)
            for order in range(tables.orders[entry]):
                place = np.uint64(tables.order_bases[entry, order])
                for other in range(tables.others.shape[1]):
                    cell = np.uint64(cells[np.uint64(tables.others[entry, other])])
                    place += np.uint64(tables.order_strides[entry, order, other]) * cell
                own = np.uint64(tables.order_own[entry, order])
                if old >= 0:
                    residuals[place + own * np.uint64(old)] = left_clipped
                if new >= 0:
                    residuals[place + own * np.uint64(new)] = joined_clipped
        if make:
            cells[feature] = new
    return delta


@inlined
def delta_tables(tables, targets, counts, residuals, cells, column, atom):  # type: ignore[no-untyped-def]
    """The change of the loss if the row gets another atom in a column."""
    return _edit(tables, targets, counts, residuals, cells, column, atom, False)


@inlined
def apply_tables(tables, targets, counts, residuals, cells, column, atom):  # type: ignore[no-untyped-def]
    """Give the row another atom in a column; returns the change of the loss."""
    return _edit(tables, targets, counts, residuals, cells, column, atom, True)
