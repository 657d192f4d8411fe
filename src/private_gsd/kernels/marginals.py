"""Marginals: count rows in tables over several columns' atoms, and score edits of a row.

For scoring, the weighted residuals of a table are kept in as many orders as it has features, with
each feature innermost once: what every value of a cell would give is then a sum of short pieces of
contiguous memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel

# Rows of all columns in a block stay in the second-level cache while every table is counted.
BLOCK_ROWS = 4096


@kernel
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


# Sums run over so many cells at once, in registers.
LANES = 8


class Tables(NamedTuple):
    """Tables over features, as edits need them.

    An entry is a feature within a table. The others of an entry are the table's other features; a
    table with fewer than the most is filled up with one whose cell is always 0.
    """

    feature_starts: Any
    """Where each column's features begin; one more than columns."""
    atom_cells: Any
    """For each feature and atom, the cell, or -1."""
    atom_starts: Any
    """Where each feature begins in ``atom_cells``."""
    slots: Any
    """Where each feature's sums stand, with room for whole lanes; one more than features."""
    entry_starts: Any
    """Where each feature's entries begin; one more than features."""
    weights: Any
    """For each entry, the weight of its table."""
    totals: Any
    """For each feature, the weights of its entries together."""
    others: Any
    """For each entry, the other features."""
    bases: Any
    """For each entry, where its order of the table begins in the residuals."""
    strides: Any
    """For each entry and other, how far its cells are apart in that order."""
    first: Any
    """For each entry, whether it is the first of its table."""
    queries: Any
    """For each entry, the first query of its table."""
    query_own: Any
    """For each entry, how far its own cells are apart in the queries."""
    query_strides: Any
    """For each entry and other, how far its cells are apart in the queries."""
    orders: Any
    """For each entry, how many orders its table has, itself among them."""
    order_bases: Any
    """For each entry and order, where it begins in the residuals."""
    order_own: Any
    """For each entry and order, how far the entry's own cells are apart."""
    order_strides: Any
    """For each entry, order and other, how far its cells are apart."""
    sources: Any
    """For each place in the residuals, the query."""


@kernel
def fill_residuals(sources, weights, targets, counts, residuals):  # type: ignore[no-untyped-def]
    """All residuals from the counts; they are kept within what sums of float32 can hold."""
    for place in range(sources.size):
        query = sources[place]
        residuals[place] = _kept(weights[query] * (targets[query] - counts[query]))


@inlined
def _kept(residual):  # type: ignore[no-untyped-def]
    return np.float32(min(max(residual, -1e30), 1e30))


@inlined
def load_tables(tables, atoms, cells):  # type: ignore[no-untyped-def]
    """A row's cell in each feature, and the 0 that stands for none."""
    for column in range(atoms.size):
        _load_column(tables, column, atoms[column], cells)
    cells[cells.size - 1] = 0


@inlined
def _load_column(tables, column, atom, cells):  # type: ignore[no-untyped-def]
    for feature in range(tables.feature_starts[column], tables.feature_starts[column + 1]):
        cells[feature] = tables.atom_cells[tables.atom_starts[feature] + atom]


@inlined
def score_tables(tables, residuals, cells, column, sums, scores):  # type: ignore[no-untyped-def]
    """Add to each atom of a column what the row would gain there, were it taken out first.

    Indices are unsigned: Numba would otherwise test each for being negative, and the sums would
    not vectorise. That and the first other outside of the loop gave 64 ns a cell, not 150 (all
    pairs of 17 columns).

    Args:
        tables: The tables.
        residuals: Weighted target less weighted count, in all orders.
        cells: The row, from ``load_tables``.
        column: Which column.
        sums: Room for sums.
        scores: For each atom; added to.
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
            weight = tables.totals[feature]
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
    """The query that the row would answer if its own cell were 0; -1 for none."""
    query = tables.queries[entry]
    for other in range(tables.others.shape[1]):
        cell = cells[np.uint64(tables.others[entry, other])]
        if cell < 0:
            return -1
        query += tables.query_strides[entry, other] * cell
    return query


@inlined
def count_tables_of(tables, cells, counts):  # type: ignore[no-untyped-def]
    """Count one row, from ``load_tables``."""
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
    """By how much the loss changes with another atom in a column; all is kept up, if it is made.

    Residuals are made anew of the counts, which are whole, so that no rounding adds up.
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
            left_kept = _kept(weight * left_residual)
            joined_kept = _kept(weight * joined_residual)
            for order in range(tables.orders[entry]):
                place = np.uint64(tables.order_bases[entry, order])
                for other in range(tables.others.shape[1]):
                    cell = np.uint64(cells[np.uint64(tables.others[entry, other])])
                    place += np.uint64(tables.order_strides[entry, order, other]) * cell
                own = np.uint64(tables.order_own[entry, order])
                if old >= 0:
                    residuals[place + own * np.uint64(old)] = left_kept
                if new >= 0:
                    residuals[place + own * np.uint64(new)] = joined_kept
        if make:
            cells[feature] = new
    return delta


@inlined
def delta_tables(tables, targets, counts, residuals, cells, column, atom):  # type: ignore[no-untyped-def]
    """By how much the loss changes if the row's atom in a column becomes another."""
    return _edit(tables, targets, counts, residuals, cells, column, atom, False)


@inlined
def apply_tables(tables, targets, counts, residuals, cells, column, atom):  # type: ignore[no-untyped-def]
    """Give the row another atom in a column; returns by how much the loss changes."""
    return _edit(tables, targets, counts, residuals, cells, column, atom, True)
