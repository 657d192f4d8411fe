"""Column distributions: how the values of a numeric column are distributed, from its histograms.

A column has histograms of several levels, each finer than the one before where there is mass. Every
level has all cells of the column, so that a cell that was not split is measured again. All levels
are combined to estimates of the counts (see ``level_estimates``).

All of this is computed from measurements, and so it costs no privacy.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import expect_type
from private_gsd.measurements.level_estimates import Level, combined, estimated_counts
from private_gsd.schema import Numeric
from private_gsd.workloads.grids import Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.level_estimates import Prior
    from private_gsd.measurements.measurements import Measurements

    Vector = NDArray[np.float64]
    Steps = NDArray[np.int64]

# How many standard deviations of one level's noise a cell must hold to be worth splitting, by
# level; the last one repeats.
WORTH = (2.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True, eq=False)
class ColumnDistribution:
    """The estimated distribution of a numeric column.

    Attributes:
        position: The position of the column in the schema.
        grid: The grid of the column.
        nullable: Whether the column has nulls.
        levels: The histograms, each finer than the one before.
        n_records: The number of records.
        prior: How likely cells are before they are measured, from their first steps and widths; as
            their widths by default.
    """

    position: int
    grid: Grid
    nullable: bool
    levels: tuple[Level, ...]
    n_records: int
    prior: Prior | None = None

    @cached_property
    def _counts(self) -> Vector:
        """The estimated count of each cell of the finest level, the null's included."""
        first = self.levels[0].starts
        even = self.grid.even_shares(first[:-1] if self.nullable else first)
        ends = self.grid.last + 1 + self.nullable
        centre = 0 if self.grid.magnitudes and self.grid.first <= 0 <= self.grid.last else None
        total = float(self.n_records)
        return estimated_counts(self.levels, even, ends, total, self.prior, centre)

    @property
    def starts(self) -> Steps:
        """The first step of each cell of the finest level."""
        starts = self.levels[-1].starts
        return starts[:-1] if self.nullable else starts

    @property
    def widths(self) -> Steps:
        """The number of steps of each cell."""
        return np.diff(self.starts, append=self.grid.last + 1)

    @property
    def is_single(self) -> NDArray[np.bool_]:
        """Whether each cell holds a single value."""
        return self.grid.is_single(self.starts, self.widths)

    @property
    def shares(self) -> Vector:
        """The estimated share of the records in each cell; nulls are left out."""
        counts = self._counts[:-1] if self.nullable else self._counts
        return np.asarray(counts / self.n_records)

    @property
    def variances(self) -> Vector:
        """The variance of the count of each cell, before it is compared with other cells."""
        found = combined(self.levels)[1][-1]
        return found[:-1] if self.nullable else found

    @property
    def null_share(self) -> float:
        """The estimated share of nulls."""
        return float(self._counts[-1] / self.n_records) if self.nullable else 0.0

    def refined(self, most: int) -> Steps | None:
        """The first steps of the cells of the next level; None if no cell is worth splitting.

        Args:
            most: The largest number of cells; those with the most records are split first.
        """
        number = len(self.levels)
        if number >= self.grid.levels:
            return None
        worth = WORTH[min(number - 1, len(WORTH) - 1)] * self.levels[-1].variance ** 0.5
        split = (self.shares * self.n_records > worth) & ~self.is_single
        if not split.any():
            return None
        starts = self.starts.tolist()
        ends = [*starts[1:], self.grid.last + 1]
        left = most - len(starts)
        parts = {}
        for cell in np.argsort(np.where(split, -self.shares, np.inf), kind="stable")[: split.sum()]:
            parts[cell] = self.grid.split(starts[cell], ends[cell], number - 1)
            left -= len(parts[cell]) - 1
            if left < 0:
                del parts[cell]
                break
        if not parts:
            return None
        found = [parts.get(cell, [start]) for cell, start in enumerate(starts)]
        return np.array(list(itertools.chain.from_iterable(found)), dtype=np.int64)

    def cut_points(self, most: int, least: float = 0.0) -> Steps:
        """The first steps of cells of about the same mass; spikes have cells of their own.

        Args:
            most: The largest number of cells.
            least: The least share of the records that a cell should have.
        """
        if len(self.starts) <= most:
            return self._without_small(self.starts, most, least / 4)
        least = max(least, 1 / most)
        shares = self.shares
        # A single value with half of what a cell should have stands alone.
        alone = self.is_single & (shares >= least / 2)
        found = [int(self.starts[0])]
        held = 0.0
        for place, start in enumerate(self.starts.tolist()):
            before = place > 0 and alone[place - 1]
            if start > found[-1] and (held >= least or before or (alone[place] and held > 0)):
                found.append(start)
                held = 0.0
            held += shares[place]
        return self._without_small(np.array(found, dtype=np.int64), most, least / 4)

    def _without_small(self, starts: Steps, most: int, least: float) -> Steps:
        """Cells without those of little mass, which are joined to the smaller cell beside them.

        Noise puts synthetic rows into every cell. Values far from all others would come of them.

        Args:
            starts: The first step of each cell.
            most: The largest number of cells.
            least: The least share of the records of a cell.
        """
        shares = self.shares_between(starts).tolist()
        found = starts.tolist()
        while len(found) > 1 and (min(shares) < least or len(found) > most):
            small = shares.index(min(shares))
            beside = [place for place in (small - 1, small + 1) if 0 <= place < len(found)]
            other = min(beside, key=shares.__getitem__)
            shares[min(small, other)] += shares.pop(max(small, other))
            del found[max(small, other)]
        return np.array(found, dtype=np.int64)

    def joined(self, starts: Steps, most: int) -> Steps:
        """Cells joined to larger ones of about the same mass; the first steps of these.

        Args:
            starts: The first step of each cell.
            most: The largest number of joined cells.
        """
        if len(starts) <= most:
            return starts
        held = np.cumsum(self.shares_between(starts))
        found = [int(starts[0])]
        before = 0.0
        for start, below in zip(starts[1:].tolist(), held[:-1], strict=True):
            if below - before >= 1 / most and len(found) < most:
                found.append(start)
                before = below
        return np.array(found, dtype=np.int64)

    def halved(self, number: int) -> Steps:
        """The first steps of cells that are halved again and again, each at its median.

        Args:
            number: The largest number of cells, a power of two.
        """
        edges = np.append(self.starts, self.grid.last + 1)
        held = np.concatenate([[0.0], np.cumsum(self.shares)])

        def median(start: int, end: int) -> list[int]:
            half = float(np.interp([start, end], edges, held).mean())
            inner = edges[(edges > start) & (edges < end)].tolist()
            within = round(float(np.interp(half, held, edges)))
            found = [*inner, within] if start < within < end else inner
            distances = np.abs(np.interp(found, edges, held) - half) if found else np.empty(0)
            return [found[int(distances.argmin())]] if found else []

        ends = [int(edges[0]), int(edges[-1])]
        while number > 1:
            cuts = [median(start, end) for start, end in itertools.pairwise(ends)]
            ends = sorted({*ends, *itertools.chain.from_iterable(cuts)})
            number //= 2
        return np.array(ends[:-1], dtype=np.int64)

    def shares_between(self, starts: Steps) -> Vector:
        """The shares of coarser cells; within a cell of the finest level, values are even.

        Args:
            starts: The first step of each coarser cell.
        """
        edges = np.append(self.starts, self.grid.last + 1)
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.diff(np.interp(np.append(starts, self.grid.last + 1), edges, below))

    def likely_places(self, starts: Steps, ends: Steps, mass: float) -> Vector:
        """How likely each cell is to hold a mass of which the estimated shares show nothing.

        Other measurements may know of rows in a stretch that is empty here, since noise explains
        its counts. The mass is taken to be in one of the coarsest cells, by Bayes' rule.

        Args:
            starts: The first step of each cell.
            ends: The step after the last one of each.
            mass: The number of records.
        """
        first = self.levels[0].starts[:-1] if self.nullable else self.levels[0].starts
        means, variances, _ = combined(self.levels)
        widths = np.diff(first, append=self.grid.last + 1)
        odds = (means[0] * mass - mass**2 / 2)[: len(first)] / variances[0][: len(first)]
        odds += np.log(self.grid.even_shares(first)) - np.log(widths)
        found = odds[np.searchsorted(first, starts, side="right") - 1] + np.log(ends - starts)
        return np.asarray(np.exp(found - found.max()))

    def scale_of(self, starts: Steps) -> float:
        """The typical standard deviation of the estimated counts of coarser cells.

        Args:
            starts: The first step of each coarser cell.
        """
        precision = np.zeros(len(starts))
        for level in self.levels:
            # A level whose cells do not end where the coarser cells do says less: left out.
            known = np.isin(starts, level.starts) & np.isin(
                np.append(starts[1:], self.grid.last + 1),
                np.append(level.starts, self.grid.last + 1),
            )
            number = np.histogram(level.starts, np.append(starts, self.grid.last + 1))[0]
            precision += known / (np.maximum(number, 1) * level.variance)
        variances = 1 / np.maximum(precision, 1 / (4 * self.levels[-1].variance))
        return float(np.sqrt(variances.mean()))


def without_histograms(measured: Measurements) -> Measurements | None:
    """The measurements of all groups but histograms and patterns; None if there are none."""
    kept = np.concatenate(
        [np.full(len(family.group_sizes), not family.fine) for family in measured.workload.families]
    )
    return measured.select(np.flatnonzero(kept)) if kept.any() else None


def column_distributions(measured: Measurements) -> Mapping[int, ColumnDistribution]:
    """The distribution of each column of which there are histograms, by its position."""
    schema = measured.workload.schema
    levels: dict[int, list[Level]] = {}
    offsets = iter(zip(measured.workload.offsets.tolist(), measured.scales.tolist(), strict=False))
    for family in measured.workload.families:
        mine = [next(offsets) for _ in family.group_sizes]
        for feature, (offset, scale) in zip(family.histograms, mine, strict=False):
            column = expect_type(Numeric, schema.columns[feature.position])
            grid = Grid.of(column)
            starts = grid.starts(feature.breaks)
            if column.nullable:
                starts = np.append(starts, grid.last + 1)
            counts = measured.counts[offset : offset + feature.size]
            levels.setdefault(feature.position, []).append(Level(starts, counts, scale**2))
    return {
        place: ColumnDistribution(
            place,
            Grid.of(expect_type(Numeric, schema.columns[place])),
            schema.columns[place].nullable,
            tuple(found),
            measured.n_records,
        )
        for place, found in levels.items()
    }
