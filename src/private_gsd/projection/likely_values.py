"""Likely values: which values of a cell are likely, by how round they are and by their days.

A pattern has measured how many rows have values of each class. The weight of a class is that number
divided by the number that even values within cells would give. Classes whose numbers noise explains
have the weight 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.column_distributions import ColumnDistribution
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads.patterns import Pattern

    Vector = NDArray[np.float64]
    Steps = NDArray[np.int64]

# How many standard deviations of noise a class must differ from even values.
CLEAR = 3.0
# The number of values that are drawn for a row, of which days choose one.
CANDIDATES = 12
# The number of even values from which the shares of weekdays and months are estimated.
SAMPLE = 50_000
# The least share of records that even values give to a class, to divide by: no number has more
# than 10^18 steps.
LEAST_SHARE = 1e-18
# The largest number of steps of iterative proportional fitting, and the factors at which it ends.
ROUNDS = 50
CLOSE = 1e-3
# The least count to divide by, and the largest factor of a step.
LEAST_COUNT = 1e-9
LARGEST_RATIO = 100.0
# How often a value is drawn again that is rounder than its class.
RETRIES = 8


@dataclass(frozen=True, eq=False)
class MeasuredPattern:
    """A pattern with its noisy counts.

    Attributes:
        pattern: The pattern.
        counts: The noisy count of each class; nulls are left out.
        scale: The standard deviation of the noise.
    """

    pattern: Pattern
    counts: Vector
    scale: float


@dataclass(frozen=True, eq=False)
class LikelyValues:
    """Draws values within cells of one column.

    Attributes:
        column: The distribution of the column.
        measured: The patterns of the column.
    """

    column: ColumnDistribution
    measured: Sequence[MeasuredPattern]

    @cached_property
    def _round(self) -> tuple[Pattern, Vector] | None:
        """The roundness of values and the weights of its classes, if some differ."""
        for each in self.measured:
            if each.pattern.kind == "round":
                starts, widths = self.column.starts, self.column.widths
                # All rows of a cell of a single value have its class.
                held = np.where(self.column.is_single, 1, widths)
                shares = multiples(each.pattern, starts, held) / held[:, None]
                weights = self._weights(each, shares)
                return None if (weights == 1).all() else (each.pattern, weights)
        return None

    @cached_property
    def _days(self) -> list[tuple[Pattern, Vector]]:
        """The weekdays and months, and the weights of their classes, if some differ."""
        found = []
        rng = np.random.default_rng(0)
        for each in self.measured:
            if each.pattern.kind == "round":
                continue
            size = each.pattern.num_classes
            often = max(SAMPLE // len(self.column.starts), 20)
            shares = np.empty((len(self.column.starts), size))
            for cell, (start, width) in enumerate(
                zip(self.column.starts, self.column.widths, strict=True)
            ):
                steps = start + np.floor(rng.random(often) * width).astype(np.int64)
                shares[cell] = np.bincount(each.pattern.classes(steps), minlength=size) / often
            weights = self._weights(each, shares)
            if (weights != 1).any():
                found.append((each.pattern, weights))
        return found

    def _weights(self, measured: MeasuredPattern, shares: Vector) -> Vector:
        """The weight of each class.

        Args:
            measured: The pattern.
            shares: For each cell of the column and each class, the share of even values.
        """
        counts = self.column.shares * self.column.n_records
        several = ~self.column.is_single
        found = measured.counts - counts[~several] @ shares[~several]
        counts, shares, variances = counts[several], shares[several], self.column.variances[several]
        if not counts.sum() > 0:
            return np.ones(len(found))
        # The sum of all classes is known.
        found = found + (counts.sum() - found.sum()) / len(found)

        def is_clear(excess: Vector | float, parts: Vector, classes: float = 1.0) -> Any:
            noise = np.sqrt(classes * measured.scale**2 + variances @ parts**2)
            return np.abs(excess) > CLEAR * noise

        if measured.pattern.kind != "round":
            clear = is_clear(found - counts @ shares, shares)
            # Classes that are as likely as even values are one group.
            return fitted_weights(counts, shares, found, np.where(clear, np.cumsum(clear), 0))
        number = len(found)
        groups, weights = np.zeros(number, dtype=np.int64), np.ones(number)
        for place in range(1, number):
            # Rounder numbers are as likely as those of this class, unless the counts differ.
            excess = found - expected(counts, shares, weights)
            rounder = slice(place, None)
            if is_clear(float(excess[place]), shares[:, place]) or is_clear(
                excess[rounder].sum(), shares[:, rounder].sum(axis=1), place * (1 - place / number)
            ):
                groups[rounder] += 1
                weights = fitted_weights(counts, shares, found, groups)
        return weights

    @classmethod
    def of(cls, column: ColumnDistribution, measured: Sequence[MeasuredPattern]) -> LikelyValues:
        """Draws values of a column whose cells are as likely as their values are."""
        return cls(replace(column, prior=cls(column, measured).mass), measured)

    def mass(self, starts: Steps, widths: Steps) -> Vector:
        """How likely cells are, by the values in them.

        Args:
            starts: The first step of each cell.
            widths: The number of steps of each cell.
        """
        found = widths.astype(np.float64)
        if self._round is not None:
            pattern, weights = self._round
            found = multiples(pattern, starts, widths) @ weights
        rng = np.random.default_rng(0)
        for pattern, weights in self._days:
            share = rng.random((CANDIDATES, 1)) * widths
            classes = pattern.classes((starts + np.floor(share)).astype(np.int64).ravel())
            found *= weights[classes].reshape(share.shape).mean(axis=0)
        return np.asarray(found)

    def draw(self, starts: Steps, ends: Steps, rng: np.random.Generator) -> Vector:
        """Random steps between two steps each, the second excluded.

        Args:
            starts: The first step of the cell of each row.
            ends: The step after the last.
            rng: The random number generator.
        """
        found = self._one(starts, ends, rng)
        if not self._days:
            return found
        rows = np.flatnonzero(~self.column.grid.is_single(starts, ends - starts))
        candidates = np.column_stack(
            [self._one(starts[rows], ends[rows], rng) for _ in range(CANDIDATES)]
        )
        weights = np.ones(candidates.shape)
        for pattern, likely in self._days:
            classes = pattern.classes(candidates.ravel().astype(np.int64))
            weights *= likely[classes].reshape(weights.shape)
        below = np.cumsum(weights, axis=1)
        levels = rng.random(len(rows)) * below[:, -1]
        chosen = np.minimum((below <= levels[:, None]).sum(axis=1), CANDIDATES - 1)
        found[rows] = candidates[np.arange(len(rows)), chosen]
        return found

    def _one(self, starts: Steps, ends: Steps, rng: np.random.Generator) -> Vector:
        """One random step for each row, as round as was measured."""
        widths = ends - starts
        inside = rng.random(len(starts)) * widths
        if self.column.grid.exact:
            inside = np.floor(inside)
        else:
            inside[self.column.grid.is_single(starts, widths)] = 0.0
        found = starts + inside
        if self._round is None or not len(starts):
            return np.asarray(found)
        pattern, weights = self._round
        cells, owners = np.unique(np.column_stack([starts, ends]), axis=0, return_inverse=True)
        numbers = multiples(pattern, cells[:, 0], cells[:, 1] - cells[:, 0])
        below = np.cumsum(numbers * weights, axis=1)[owners.ravel()]
        levels = rng.random(len(starts)) * below[:, -1]
        classes = np.minimum((below <= levels[:, None]).sum(axis=1), pattern.num_classes - 1)
        divisors = np.array(pattern.divisors)
        several = ~self.column.grid.is_single(starts, widths)
        for number in range(1 if not self.column.grid.exact else 0, pattern.num_classes):
            rows = np.flatnonzero((classes == number) & several & (below[:, -1] > 0))
            if len(rows):
                step = int(divisors[number])
                over = int(divisors[number + 1]) if number + 1 < len(divisors) else 0
                found[rows] = _multiples_between(starts[rows], ends[rows], step, over, rng)
        return np.asarray(found)


def multiples(pattern: Pattern, starts: Steps, widths: Steps) -> Vector:
    """For each cell and each class of roundness, the number of steps.

    Args:
        pattern: The roundness of a column.
        starts: The first step of each cell.
        widths: The number of steps of each cell.
    """
    divisors = np.array(pattern.divisors)
    last = (starts + widths - 1)[:, None] // divisors
    before = (starts - 1)[:, None] // divisors
    found = (last - before).astype(np.float64)
    found[:, :-1] -= found[:, 1:]
    return np.asarray(found)


def expected(counts: Vector, shares: Vector, weights: Vector) -> Vector:
    """The expected count of each class.

    Args:
        counts: The count of each cell.
        shares: For each cell and each class, the share of even values.
        weights: The weight of each class.
    """
    likely = shares * weights
    return np.asarray((counts / np.maximum(likely.sum(axis=1), LEAST_SHARE)) @ likely)


def fitted_weights(
    counts: Vector, shares: Vector, found: Vector, groups: NDArray[np.int64]
) -> Vector:
    """The weights with which groups of classes have the counts that were measured.

    Iterative proportional fitting; even values have weights of 1 in the mean.

    Args:
        counts: The count of each cell.
        shares: For each cell and each class, the share of even values.
        found: The measured count of each class.
        groups: The group of each class, from 0.
    """
    number = int(groups.max()) + 1
    together = shares @ np.equal(groups[:, None], np.arange(number)).astype(np.float64)
    weights = np.ones(number)
    # Where no value in a cell with rows is of a group, noise made its count.
    possible = counts @ together > LEAST_SHARE * counts.sum()
    targets = np.where(possible, np.maximum(np.bincount(groups, found), 0.0), 0.0)
    if number == 1 or not targets.any():
        return np.ones(len(groups))
    for _ in range(ROUNDS):
        ratios = targets / np.maximum(expected(counts, together, weights), LEAST_COUNT)
        weights *= np.minimum(ratios, LARGEST_RATIO)
        weights /= counts @ (together @ weights) / counts.sum()
        if (np.abs(ratios - 1)[targets > 0] < CLOSE).all():
            break
    return np.asarray(weights[groups])


def patterns_by_column(measured: Measurements) -> Mapping[int, list[MeasuredPattern]]:
    """The patterns among measurements, by the positions of their columns."""
    found: dict[int, list[MeasuredPattern]] = {}
    groups = iter(zip(measured.workload.offsets.tolist(), measured.scales.tolist(), strict=False))
    for family in measured.workload.families:
        mine = [next(groups) for _ in family.group_sizes]
        for pattern, (offset, scale) in zip(family.patterns, mine, strict=False):
            counts = measured.counts[offset : offset + pattern.num_classes]
            found.setdefault(pattern.position, []).append(MeasuredPattern(pattern, counts, scale))
    return found


def _multiples_between(
    starts: Steps, ends: Steps, step: int, over: int, rng: np.random.Generator
) -> Vector:
    """Random multiples of a step between two steps each, no multiples of another step if possible.

    Args:
        starts: The first step of each cell.
        ends: The step after the last; there is a multiple between them.
        step: What must divide the numbers.
        over: What should not divide them, a multiple of ``step``; 0 for nothing.
        rng: The random number generator.
    """
    first = -(-starts // step)
    number = (ends - 1) // step - first + 1
    found = first + np.floor(rng.random(len(starts)) * number).astype(np.int64)
    for _ in range(RETRIES if over else 0):
        again = np.flatnonzero(found % (over // step) == 0)
        if not len(again):
            break
        found[again] = first[again] + np.floor(rng.random(len(again)) * number[again]).astype(
            np.int64
        )
    return np.asarray(found * step, dtype=np.float64)
