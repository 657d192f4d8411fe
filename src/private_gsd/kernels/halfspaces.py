"""Halfspaces: count rows whose product with a direction is at most a threshold, and score edits.

Queries come in blocks, with the coefficients of each dimension contiguous: the dot products of one
row with a whole block are sums of a few short vectors that stay in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel, optional, reordered


@kernel
def count_halfspaces(  # type: ignore[no-untyped-def]
    categories, dimensions, units, coefficients, thresholds, counts
):
    """Add to each query the rows in its halfspace.

    Sums are float32 and run over the columns in the given order, discrete ones first, so that all
    engines agree to the bit. Four columns are added in one pass, which saves most of the loads and
    stores of the sums.

    Args:
        categories: For each row and discrete column, the dimension of the one-hot encoding.
        dimensions: For each row and numeric column, the dimension of its number or of its null.
        units: For each row and numeric column, the number scaled to [0, 1], or 1 for a null.
        coefficients: For each dimension, the coefficient of each query of the block.
        thresholds: For each query of the block.
        counts: For each query of the block; added to.
    """
    rows, discrete = categories.shape
    numeric = dimensions.shape[1]
    queries = thresholds.size
    sums = np.empty(queries, dtype=np.float32)
    hits = np.zeros(queries, dtype=np.int32)  # as wide as the sums, so that comparing vectorises
    for row in range(rows):
        sums[:] = 0
        column = 0
        while column + 4 <= discrete:
            first = coefficients[categories[row, column]]
            second = coefficients[categories[row, column + 1]]
            third = coefficients[categories[row, column + 2]]
            fourth = coefficients[categories[row, column + 3]]
            for query in range(queries):
                sums[query] = (
                    ((sums[query] + first[query]) + second[query]) + third[query]
                ) + fourth[query]
            column += 4
        while column < discrete:
            first = coefficients[categories[row, column]]
            for query in range(queries):
                sums[query] += first[query]
            column += 1
        for column in range(numeric):
            first = coefficients[dimensions[row, column]]
            unit = units[row, column]
            for query in range(queries):
                sums[query] += first[query] * unit
        for query in range(queries):
            hits[query] += sums[query] <= thresholds[query]
    counts += hits


class Directions(NamedTuple):
    """Halfspaces as edits use them."""

    queries: Any
    """For each halfspace, the query."""
    coefficients: Any
    """For each dimension of the one-hot encoding, the coefficient of each halfspace."""
    thresholds: Any
    """For each halfspace, the threshold."""
    weights: Any
    """For each halfspace, the weight."""
    order: Any
    """The columns in the order in which they are summed: discrete ones first."""
    begins: Any
    """For each column, its first dimension; the null of a numeric column has the next dimension."""
    lows: Any
    """For each column, its lower bound."""
    spans: Any
    """For each column, its upper bound minus its lower bound."""


@inlined
def _term(directions, discrete, column, value, atom):  # type: ignore[no-untyped-def]
    """The dimension of a value in the one-hot encoding, and its coordinate there."""
    begin = directions.begins[column]
    if discrete:
        return begin + atom, np.float32(1)
    if value != value:
        return begin + 1, np.float32(1)
    return begin, np.float32((value - directions.lows[column]) / directions.spans[column])


@inlined
def _products(directions, discrete, values, atoms, column, value, atom, products):  # type: ignore[no-untyped-def]
    """A row's products with all directions, with one value replaced; summed as in counting."""
    queries = np.uint64(products.size)
    for query in range(queries):
        products[query] = 0
    for place in range(directions.order.size):
        each = directions.order[place]
        if each == column:
            dimension, unit = _term(directions, discrete[each], each, value, atom)
        else:
            dimension, unit = _term(directions, discrete[each], each, values[each], atoms[each])
        coefficients = directions.coefficients[dimension]
        if discrete[each]:
            for query in range(queries):
                products[query] += coefficients[query]
        else:
            for query in range(queries):
                products[query] += coefficients[query] * unit


@optional(False)
def has_halfspaces(directions):  # type: ignore[no-untyped-def]
    """Whether there are any halfspaces."""
    return directions.queries.size > 0


@optional(None)
def load_halfspaces(directions, discrete, values, atoms, products):  # type: ignore[no-untyped-def]
    """A row's products with all directions."""
    if directions.queries.size > 0:
        _products(directions, discrete, values, atoms, -1, 0.0, 0, products)


@optional(None)
def count_halfspaces_of(directions, products, counts):  # type: ignore[no-untyped-def]
    """Add one row to the counts, after ``load_halfspaces``."""
    for place in range(np.uint64(products.size)):
        if products[place] <= directions.thresholds[place]:
            counts[directions.queries[place]] += 1


@optional(None)
def prepare_halfspaces(  # type: ignore[no-untyped-def]
    directions, discrete, halfspace_gains, values, atoms, column, products, slacks, gains
):
    """The slack that each halfspace leaves to a column of a row, and the gain of being inside.

    Args:
        directions: The halfspaces.
        discrete: For each column, whether it holds categories.
        halfspace_gains: For each halfspace, the gain of one more row in it.
        values: The row.
        atoms: The row's atoms.
        column: The column.
        products: The row's products.
        slacks: For each halfspace, the largest product of the column that keeps the row inside;
            written.
        gains: For each halfspace, the gain of a row in it, after taking this row out; written.
    """
    dimension, unit = _term(directions, discrete[column], column, values[column], atoms[column])
    coefficients = directions.coefficients[dimension]
    for place in range(np.uint64(products.size)):
        product, threshold = products[place], directions.thresholds[place]
        slacks[place] = threshold - (product - coefficients[place] * unit)
        here = directions.weights[place] if product <= threshold else np.float32(0)
        gains[place] = halfspace_gains[place] + 2 * here


@reordered
def _sum_of_gains(directions, discrete, column, value, atom, slacks, gains):  # type: ignore[no-untyped-def]
    dimension, unit = _term(directions, discrete[column], column, value, atom)
    coefficients = directions.coefficients[dimension]
    total = np.float32(0)
    for place in range(np.uint64(gains.size)):
        inside = coefficients[place] * unit <= slacks[place]
        total += gains[place] if inside else np.float32(0)
    return np.float64(total)


@optional(0.0)
def score_halfspaces(directions, discrete, column, value, atom, slacks, gains):  # type: ignore[no-untyped-def]
    """The gain of a value, after ``prepare_halfspaces``, up to rounding."""
    return _sum_of_gains(directions, discrete, column, value, atom, slacks, gains)


@optional(0.0)
def delta_halfspaces(  # type: ignore[no-untyped-def]
    directions, discrete, weights, targets, counts, values, atoms, column, value, atom, old, new
):
    """The change of the loss if a value of the row is replaced, exactly as counted.

    Args:
        directions: The halfspaces.
        discrete: For each column, whether it holds categories.
        weights: The weight of each query.
        targets: The target of each query.
        counts: The count of each query.
        values: The row.
        atoms: The row's atoms.
        column: The column.
        value: The new value.
        atom: The atom of the new value.
        old: The row's products, from ``load_halfspaces``.
        new: The products after the edit; written.
    """
    if directions.queries.size == 0:
        return 0.0
    _products(directions, discrete, values, atoms, column, value, atom, new)
    delta = 0.0
    for place in range(np.uint64(old.size)):
        threshold = directions.thresholds[place]
        change = np.int64(new[place] <= threshold) - np.int64(old[place] <= threshold)
        if change != 0:
            query = np.uint64(directions.queries[place])
            delta += weights[query] * (1 - 2 * change * (targets[query] - counts[query]))
    return delta


@inlined
def _gain_of_one_more(weight, target, count):  # type: ignore[no-untyped-def]
    """The gain of one more row, clipped to a range that sums of float32 can hold."""
    return np.float32(min(max(weight * (2 * (target - count) - 1), -1e30), 1e30))


@kernel
def fill_halfspace_gains(queries, weights, targets, counts, halfspace_gains):  # type: ignore[no-untyped-def]
    """Compute the gain of one more row in each halfspace, from the counts."""
    for place in range(queries.size):
        query = queries[place]
        halfspace_gains[place] = _gain_of_one_more(weights[query], targets[query], counts[query])


@optional(None)
def apply_halfspaces(directions, weights, targets, counts, halfspace_gains, old, new):  # type: ignore[no-untyped-def]
    """Update the counts to the products that ``delta_halfspaces`` wrote to ``new``."""
    for place in range(np.uint64(old.size)):
        threshold = directions.thresholds[place]
        change = np.int64(new[place] <= threshold) - np.int64(old[place] <= threshold)
        if change != 0:
            query = np.uint64(directions.queries[place])
            counts[query] += change
            halfspace_gains[place] = _gain_of_one_more(
                weights[query], targets[query], counts[query]
            )
        old[place] = new[place]
