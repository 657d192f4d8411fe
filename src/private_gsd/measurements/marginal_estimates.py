"""Estimates of marginal counts from noisy answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.schema import Discrete, Real
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import TRUE, ColumnTest, ConstantTruth, columns_of_truth, leaves
from private_gsd.workloads.layout import marginal_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.schema import Column, Schema
    from private_gsd.sql.expressions import Truth
    from private_gsd.workloads.features import Feature

    Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnEstimate:
    """The estimated number of rows in each segment of a column.

    Attributes:
        edges: The start of each segment, and the end of the last one.
        step: The distance between two numbers of the column; 0 for real numbers.
        counts: The estimated number of rows in each segment.
        covariance: The covariance of the counts.
        noise: The least standard deviation of the answers that were used.
        summed: The measured sum of the column's steps and the scale of its noise; None if the sum
            was not measured.
    """

    edges: Vector
    step: float
    counts: Vector
    covariance: NDArray[np.float64]
    noise: float
    summed: tuple[float, float] | None

    @property
    def middles(self) -> Vector:
        """The middle number of each segment."""
        return (self.edges[1:] + self.edges[:-1] - self.step) / 2

    @property
    def widths(self) -> Vector:
        """The width of each segment."""
        return np.diff(self.edges)

    def deviation(self, weights: Vector) -> float:
        """The standard deviation of a weighted sum of the counts."""
        return max(math.sqrt(max(float(weights @ self.covariance @ weights), 0.0)), self.noise)

    def quantile(self, level: float) -> tuple[float, Vector]:
        """The quantile of a level, and the share of each segment that lies below it."""
        sums = np.maximum.accumulate(np.cumsum(self.counts))
        place = int(np.searchsorted(sums, level * self.counts.sum()))
        place = min(place, len(self.counts) - 1)
        before = sums[place - 1] if place else 0.0
        inside = max(sums[place] - before, 1e-12)
        share = min(max((level * self.counts.sum() - before) / inside, 0.0), 1.0)
        at = float(self.edges[place] + share * self.widths[place])
        if self.step:
            at = min(math.ceil(at), self.edges[place + 1])
        width = self.widths[place]  # 0 where all values of a segment are the upper bound
        share = (at - self.edges[place]) / width if width else 0.0
        weights = np.where(np.arange(len(self.counts)) < place, 1.0, 0.0)
        weights[place] = share
        return at, weights


def column_estimate(
    column: Any,
    found: list[tuple[tuple[float, ...], Vector, Vector]],
    summed: Any,
    public: int = 0,
) -> ColumnEstimate:
    """Estimate a column from all of its tables by weighted least squares.

    Args:
        column: The column.
        found: For each table its breaks, its cells and their variances.
        summed: The measured sum and the scale of its noise, if the sum was measured.
        public: The number of answers at the end that are public, and have no noise.
    """
    low, high = column.bounds
    step = 0.0 if isinstance(column, Real) else 1.0
    breaks = sorted({each for cuts, _, _ in found for each in cuts})
    edges = np.array([low, *breaks, high + step])
    # A segment of a column of whole numbers begins at its first whole number.
    starts = np.ceil(edges) if step else edges
    rows, answers, weights = [], [], []
    for cuts, cells, variances in found:
        owner = np.searchsorted(cuts, edges[:-1], side="right")
        for cell in range(len(cells)):
            if variances[cell] > 0:
                rows.append((owner == cell).astype(float))
                answers.append(cells[cell])
                weights.append(1 / math.sqrt(variances[cell]))
    weight = np.array(weights)
    matrix = np.array(rows) * weight[:, None]
    normal = matrix.T @ matrix
    right = matrix.T @ (np.array(answers) * weight)
    # Counts are not negative: segments with a negative estimate are set to 0, and the others are
    # estimated again.
    held = np.arange(len(right))
    while True:
        inverse = np.linalg.pinv(normal[np.ix_(held, held)])
        solved = inverse @ right[held]
        if (solved >= 0).all():
            break
        held = held[solved >= 0]
    counts, covariance = np.zeros(len(right)), np.zeros_like(normal)
    counts[held], covariance[np.ix_(held, held)] = solved, inverse
    noise = 1 / max(weights[: len(weights) - public])
    return ColumnEstimate(starts, step, counts, covariance, noise, summed)


def tables_of(
    measured: Measurements,
) -> Iterator[tuple[tuple[Feature, ...], NDArray[np.float64], float]]:
    """All measured tables: features, counts in the shape of the table, and noise scale."""
    for table in marginal_tables(measured.workload):
        if not any(feature.has_gap for feature in table.features):
            scale = float(measured.scales[table.group])
            yield table.features, table.of(measured.counts), scale


def mask_of(
    schema: Schema, features: tuple[Feature, ...], truth: Truth, also: int | None = None
) -> NDArray[np.bool_] | None:
    """A mask of the cells that meet a condition; None if the cells do not determine it."""
    positions = [feature.position for feature in features]
    needed = columns_of_truth(truth) | (set() if also is None else {also})
    if not needed <= set(positions):
        return None
    for leaf in leaves(truth):
        if isinstance(leaf, ConstantTruth):
            continue
        if not isinstance(leaf, ColumnTest):
            return None
        feature = features[positions.index(leaf.position)]
        column = schema.columns[leaf.position]
        if not _starts(column, leaf.breaks) <= _starts(column, feature.breaks):
            return None
    values = [_representatives(schema, feature) for feature in features]
    looked = [place for place, position in enumerate(positions) if position in needed]
    mask = np.ones([feature.size for feature in features], dtype=np.bool_)
    row = [0.0] * len(schema)
    for cell in np.ndindex(*(features[place].size for place in looked)):
        for place, each in zip(looked, cell, strict=True):
            row[positions[place]] = values[place][each]
        if truth_of(truth, row) != TRUE:
            index: list[Any] = [slice(None)] * len(features)
            for place, each in zip(looked, cell, strict=True):
                index[place] = each
            mask[tuple(index)] = False
    return mask


def _starts(column: Column, breaks: tuple[float, ...]) -> set[float]:
    """The first number after each break; for whole numbers, 4.5 and 5 are the same break."""
    return set(breaks) if isinstance(column, Real) else {float(math.ceil(each)) for each in breaks}


def _representatives(schema: Schema, feature: Feature) -> list[float]:
    """One value of each cell."""
    column = schema.columns[feature.position]
    if isinstance(column, Discrete):
        found = [float(code) for code in range(len(column.values))]
    else:
        whole = not isinstance(column, Real)
        found = [column.bounds[0], *(math.ceil(b) if whole else b for b in feature.breaks)]
    return found + [math.nan] * feature.nullable
