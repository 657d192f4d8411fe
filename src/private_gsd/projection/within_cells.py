"""Within cells: what histograms of single columns say that a projector does not look at.

A projector fits marginals of coarse cells. Histograms are summed to these cells before it, and the
values of its table are drawn again within their cells after it, as the histograms say: single
values that many rows share, empty stretches, tails. No row changes its cell, so that all marginals
stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.column_distributions import column_distributions, without_histograms
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.constraints import broken_rows
from private_gsd.projection.likely_values import LikelyValues, patterns_by_column
from private_gsd.sql.rules import check_rules
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.histograms import histogram_feature
from private_gsd.workloads.kernel_arrays import cuts_of
from private_gsd.workloads.layout import QueryLayout, marginal_tables
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads import Family

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]

# The largest number of cells of a column that no marginal cuts.
MOST_CELLS = 64
# How often values are drawn for rows whose new values break a rule of the schema.
TRIES = 5


def summed_histograms(measured: Measurements) -> Measurements:
    """The measurements with histograms summed to marginals of one column each.

    The cells are those of the column in other marginals, or of about the same mass where there are
    none.
    """
    columns = column_distributions(measured)
    if not columns:
        return measured
    rest = without_histograms(measured)
    schema = measured.workload.schema
    breaks: dict[int, set[float]] = {place: set() for place in columns}
    for table in [] if rest is None else marginal_tables(rest.workload):
        for feature in table.features:
            if feature.position in columns:
                breaks[feature.position].update(feature.breaks)
    groups, counts, scales = [], [], []
    for place, column in columns.items():
        starts = column.grid.starts(tuple(sorted(breaks[place])))
        if not breaks[place]:
            starts = column.cut_points(MOST_CELLS)
        groups.append(Marginal(((histogram_feature(schema, place, starts),),)))
        counts.append(column.shares_between(starts))
        if column.nullable:
            counts.append(np.array([column.null_share]))
        scales.append(column.scale_of(starts))
    summed = Measurements(
        Workload(schema, (Marginals(schema, groups),)),
        np.concatenate(counts) * measured.n_records,
        np.array(scales),
        measured.n_records,
        ("",) * len(groups),
        measured.private,
        measured.neighbours,
    )
    return summed if rest is None else rest + summed


def looks_at_numbers(families: Sequence[Family]) -> bool:
    """Whether some queries depend on numbers themselves, not only on their cells."""
    return bool(QueryLayout.of(families).forms & {"halfspaces", "sums", "functions"})


def redrawn(matrix: Matrix, measured: Measurements, fitted: Sequence[Family], seed: int) -> Matrix:
    """A table whose numeric values are drawn again within their cells, as the histograms say.

    Args:
        matrix: The table of a projector.
        measured: The measurements, with histograms.
        fitted: The queries that the projector has fitted.
        seed: The seed of the projection.
    """
    patterns = patterns_by_column(measured)
    columns = {
        place: LikelyValues.of(column, patterns.get(place, []))
        for place, column in column_distributions(measured).items()
    }
    if not columns or not len(matrix):
        return matrix
    schema = measured.workload.schema
    layout = QueryLayout.of(fitted)
    rules = check_rules(schema)
    truths = [truth for _, truth in layout.conditions]
    conditions = [*truths, *rules.truths, *(t for each in layout.sums for t in each.truths)]
    cuts = cuts_of(schema, layout, conditions)
    rng = np.random.default_rng([seed, 2])
    made = matrix.copy(order="F")
    rows = np.arange(len(matrix))
    for _ in range(TRIES if rules.texts else 1):
        for place, likely in columns.items():
            made[rows, place] = _drawn(matrix[rows, place], likely, cuts[place], schema, rng)
        if not rules.texts:
            return made
        rows = rows[broken_rows(schema, np.ascontiguousarray(made[rows]))]
        if not len(rows):
            return made
    made[rows] = matrix[rows]
    return made


def _drawn(
    values: Vector,
    likely: LikelyValues,
    cuts: Vector,
    schema: Schema,
    rng: np.random.Generator,
) -> Vector:
    """New values of one column, each in the cell of the old one.

    Args:
        values: The old values.
        likely: Draws values within cells of the column.
        cuts: The cut points of the cells.
        schema: The public schema.
        rng: The random number generator.
    """
    column = likely.column
    found = values.copy()
    cells = np.searchsorted(cuts, values, side="right")
    cells[np.isnan(values)] = -1
    edges = np.unique(np.concatenate([column.starts, column.grid.starts(tuple(cuts.tolist()))]))
    ends = np.append(edges[1:], column.grid.last + 1)
    shares = column.shares_between(edges)
    owners = np.searchsorted(cuts, edges / column.grid.per_one, side="right")
    order = np.argsort(cells, kind="stable")
    firsts = np.searchsorted(cells[order], np.arange(len(cuts) + 2))
    for cell in range(len(cuts) + 1):
        rows = order[firsts[cell] : firsts[cell + 1]]
        pieces = np.flatnonzero(owners == cell)
        if not len(rows) or not len(pieces):
            continue
        below = np.cumsum(shares[pieces])
        if below[-1] <= 0:
            mass = len(rows) / len(values) * column.n_records
            below = np.cumsum(column.likely_places(edges[pieces], ends[pieces], mass))
        # Evenly spaced levels, so that each piece has its share of the rows but for rounding.
        levels = (np.arange(len(rows)) + rng.random()) / len(rows) * below[-1]
        chosen = pieces[np.minimum(np.searchsorted(below, levels, side="right"), len(below) - 1)]
        steps = likely.draw(edges[chosen], ends[chosen], rng)
        found[rng.permutation(rows)] = steps / column.grid.per_one
    low, high = schema.columns[column.position].bounds
    return np.clip(found, low, high)
