"""Within cells: what histograms of single columns say that a projector does not look at.

A projector fits marginals of coarse cells, to which histograms are summed before it
(``measurements.summed_histograms``). The values of its table are then drawn again within their
cells, as the histograms say: single values that many rows share, empty stretches, tails. No row
changes its cell, so that all marginals stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.measurements.column_distributions import column_distributions
from private_gsd.projection.constraints import broken_rows
from private_gsd.projection.likely_values import LikelyValues, patterns_by_column
from private_gsd.sql.expressions import columns_of_truth
from private_gsd.sql.rules import check_rules
from private_gsd.workloads.kernel_arrays import cuts_of
from private_gsd.workloads.layout import QueryLayout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.schema import Schema
    from private_gsd.workloads import Family

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]
    Steps = NDArray[np.int64]

# How often single columns are drawn again of rows whose new values break a rule of the schema.
TRIES = 20


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
    return WithinCells.of(measured, fitted).redrawn(matrix, [seed, 2])


@dataclass(frozen=True, eq=False)
class WithinCells:
    """Draws the numeric values of tables again within their cells.

    Attributes:
        schema: The public schema.
        columns: How to draw each column that has histograms, by its position.
    """

    schema: Schema
    columns: Mapping[int, CellValues]

    @classmethod
    def of(cls, measured: Measurements, fitted: Sequence[Family]) -> WithinCells:
        """What histograms say of the values within the cells of some queries.

        Args:
            measured: The measurements, with histograms.
            fitted: The queries that a projector has fitted.
        """
        schema, columns = measured.workload.schema, column_distributions(measured)
        if not columns:
            return cls(schema, {})
        patterns = patterns_by_column(measured)
        layout = QueryLayout.of(fitted)
        truths = [truth for _, truth in layout.conditions]
        rules = check_rules(schema).truths
        conditions = [*truths, *rules, *(t for each in layout.sums for t in each.truths)]
        cuts = cuts_of(schema, layout, conditions)
        drawn = {
            place: CellValues.of(
                LikelyValues.of(column, patterns.get(place, [])),
                cuts[place],
                schema.columns[place].bounds,
            )
            for place, column in columns.items()
        }
        return cls(schema, drawn)

    def redrawn(self, matrix: Matrix, seed: Sequence[int]) -> Matrix:
        """A table whose values are drawn again; no row changes its cell, or breaks a rule.

        Args:
            matrix: The table.
            seed: The seed of the drawing.
        """
        drawn = self.columns
        if not drawn or not len(matrix):
            return matrix
        rng = np.random.default_rng(seed)
        made = matrix.copy(order="F")
        ruled = set().union(*(columns_of_truth(t) for t in check_rules(self.schema).truths))
        for place in drawn.keys() - ruled:
            made[:, place] = drawn[place].draw(matrix[:, place], rng)
        _draw_under_rules(made, self.schema, {p: drawn[p] for p in drawn if p in ruled}, rng)
        return made


def _draw_under_rules(
    made: Matrix, schema: Schema, drawn: Mapping[int, CellValues], rng: np.random.Generator
) -> None:
    """Draw the values of the columns that rules mention, where the rows then keep the rules.

    All columns of a row are drawn at once first, and then one by one. Columns that are equal in
    all rows, as a rule may ask, are drawn as one.

    Args:
        made: The table, whose rows keep the rules; it is changed.
        schema: The public schema.
        drawn: How to draw each column.
        rng: The random number generator.
    """
    blocks: list[list[int]] = []
    for place in drawn:
        for block in blocks:
            if np.array_equal(made[:, block[0]], made[:, place], equal_nan=True):
                block.append(place)
                break
        else:
            blocks.append([place])
    everything = [place for block in blocks for place in block]
    waiting = np.ones((len(made), len(blocks)), dtype=np.bool_)
    for attempt in range(TRIES + 1 if blocks else 0):
        # The numbers of the blocks that change together, in turn.
        turns = [list(range(len(blocks)))] if not attempt else [[n] for n in range(len(blocks))]
        for turn in turns:
            rows = np.flatnonzero(waiting[:, turn].any(axis=1))
            before = np.ascontiguousarray(made[rows])
            after = before.copy()
            for first, *others in (blocks[number] for number in turn):
                after[:, first] = drawn[first].draw(before[:, first], rng)
                for other in others:
                    after[:, other] = after[:, first]
            kept = ~broken_rows(schema, after)
            for place in everything:
                kept &= drawn[place].same_cells(before[:, place], after[:, place])
            made[rows[kept]] = after[kept]
            for number in turn:
                waiting[rows[kept], number] = False


@dataclass(frozen=True, eq=False)
class CellValues:
    """Draws values of one column within the cells of the queries that were fitted.

    Attributes:
        likely: Draws values within cells of the column's histograms.
        cuts: The cut points of the queries.
        bounds: The bounds of the column.
        starts: The first step of each piece: of cells of the histograms, cut at the cut points.
        ends: The step after the last one of each piece.
        shares: The estimated share of the records in each piece.
        owners: For each piece, the cell of the queries that it is in.
    """

    likely: LikelyValues
    cuts: Vector
    bounds: tuple[float, float]
    starts: Steps
    ends: Steps
    shares: Vector
    owners: Steps

    @classmethod
    def of(cls, likely: LikelyValues, cuts: Vector, bounds: tuple[float, float]) -> CellValues:
        """Draws values of a column within cells with these cut points."""
        column, grid = likely.column, likely.column.grid
        starts = np.unique(np.concatenate([column.starts, grid.starts(tuple(cuts.tolist()))]))
        starts = starts[starts <= grid.last]  # a cut may be above all values
        return cls(
            likely,
            cuts,
            bounds,
            starts,
            np.append(starts[1:], grid.last + 1),
            column.shares_between(starts),
            np.searchsorted(cuts, starts / grid.per_one, side="right"),
        )

    def cells(self, values: Vector) -> Steps:
        """The cell of each value; -1 for null."""
        found = np.searchsorted(self.cuts, values, side="right")
        return np.where(np.isnan(values), -1, found)

    def same_cells(self, before: Vector, after: Vector) -> NDArray[np.bool_]:
        """For each row, whether two values are in the same cell."""
        return np.asarray(self.cells(before) == self.cells(after))

    def draw(self, values: Vector, rng: np.random.Generator) -> Vector:
        """New values, each in the cell of the old one.

        Args:
            values: The old values.
            rng: The random number generator.
        """
        column, found = self.likely.column, values.copy()
        cells = self.cells(values)
        order = np.argsort(cells, kind="stable")
        firsts = np.searchsorted(cells[order], np.arange(len(self.cuts) + 2))
        for cell in range(len(self.cuts) + 1):
            rows = order[firsts[cell] : firsts[cell + 1]]
            pieces = np.flatnonzero(self.owners == cell)
            if not len(rows) or not len(pieces):
                continue
            starts, ends = self.starts[pieces], self.ends[pieces]
            below = np.cumsum(self.shares[pieces])
            if below[-1] <= 0:
                mass = len(rows) / len(values) * column.n_records
                below = np.cumsum(column.likely_places(starts, ends, mass))
            # Evenly spaced levels, so that each piece has its share of the rows but for rounding.
            levels = (np.arange(len(rows)) + rng.random()) / len(rows) * below[-1]
            chosen = np.minimum(np.searchsorted(below, levels, side="right"), len(below) - 1)
            steps = self.likely.draw(starts[chosen], ends[chosen], rng)
            found[rng.permutation(rows)] = steps / column.grid.per_one
        found = np.clip(found, *self.bounds)
        # A step of real numbers may hold a cut point.
        return np.where(self.same_cells(values, found), found, values)
