"""Attacks: simple attempts to learn from the synthetic table who was in the real one.

They are smoke detectors. One that finds something shows a leak; one that finds nothing shows only
that this attack, on these rows, did not. The guarantee of a release is its budget, not this.

Rows are compared column by column: a number by the difference of its rank among the real ones, a
category by whether it is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.evaluation.rows import take
from private_gsd.kernels.nearest import nearest_distances
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.rows import Matrix
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]

ROWS = 5_000
FEWEST = 20
# Of a standard normal variable, between minus and plus this in 95 of 100 cases.
NORMAL = 1.96


class Estimate(NamedTuple):
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Attacks:
    """What the attacks found.

    Attributes:
        rows: How many synthetic, training and held-out rows were looked at.
        matches: The share of synthetic rows that are equal to a training row.
        held_matches: The share that are equal to a held-out row, of as many; None without them.
        distances: How far synthetic rows are from the closest training row, at the 5th percentile
            and the median.
        held_distances: The same to the closest of as many held-out rows.
        closer: The share of synthetic rows that are closer to a training row than to any held-out
            one, ties half: 0.5 where training rows have no more to do with it than others.
        membership: The area under the curve of telling training rows from held-out ones, by how
            much closer the synthetic table comes to a row than other real rows do.
        caught: The share of training rows that this attack names when it wrongly names one in a
            hundred of the others.
    """

    rows: tuple[int, int, int]
    matches: Estimate
    distances: tuple[float, float]
    held_matches: Estimate | None = None
    held_distances: tuple[float, float] | None = None
    closer: Estimate | None = None
    membership: Estimate | None = None
    caught: Estimate | None = None

    @property
    def findings(self) -> list[str]:
        """Each attack that did better than chance explains, in words."""
        found = []
        if self.held_matches is not None and self.matches.low > self.held_matches.high:
            found.append("synthetic rows repeat training rows more often than held-out ones")
        if self.closer is not None and self.closer.low > 0.5:
            found.append("synthetic rows lie closer to training rows than to held-out ones")
        if self.membership is not None and self.membership.low > 0.5:
            found.append("nearest distances tell training rows from held-out ones")
        return found


def attack(
    schema: Schema, synthetic: Matrix, train: Matrix, held: Matrix | None, *, seed: int = 0
) -> Attacks | None:
    """Attack a synthetic table; None where there are too few rows to try.

    Args:
        schema: The public schema.
        synthetic: Encoded synthetic rows.
        train: Encoded rows that it was made from.
        held: Encoded rows of the same kind that it was not made from, if there are any.
        seed: Of sampling.
    """
    if held is not None and len(held) < FEWEST:
        held = None
    made = take(synthetic, ROWS, seed)
    number = min(ROWS, len(train), len(train) if held is None else len(held))
    if min(number, len(made)) < 2:
        return None
    rng = np.random.default_rng(seed)
    members = train[rng.permutation(len(train))[:number]]
    ruler = Ruler(schema, train)
    to_train = ruler.nearest(made, members)
    matches = share(occurs(made, members))
    near = _percentiles(to_train)
    if held is None:
        return Attacks((len(made), number, 0), matches, near)
    others = held[rng.permutation(len(held))[:number]]
    to_held = ruler.nearest(made, others)
    closer = np.where(to_train == to_held, 0.5, to_train < to_held)
    # Half of the held-out rows stand for the population; the attack is tried on the other half.
    half = number // 2
    known, unknown = others[:half], others[half:]
    targets = [members[: len(unknown)], unknown]
    # All synthetic rows, for an attacker has them all.
    everything = take(synthetic, 4 * ROWS, seed)
    scores = [ruler.nearest(each, known) - ruler.nearest(each, everything) for each in targets]
    threshold = np.quantile(scores[1], 0.99, method="higher")
    return Attacks(
        (len(made), number, number),
        matches,
        near,
        share(occurs(made, others)),
        _percentiles(to_held),
        share(closer),
        area_under_curve(*scores),
        share(scores[0] > threshold),
    )


class Ruler:
    """The distance between rows: numbers by their rank among the real ones, from 0 to 1."""

    def __init__(self, schema: Schema, reference: Matrix) -> None:
        self._discrete = np.array([isinstance(column, Discrete) for column in schema])
        self._sorted = [
            None if discrete else np.sort(values[~np.isnan(values)])
            for discrete, values in zip(self._discrete, reference.T, strict=True)
        ]

    def nearest(self, rows: Matrix, others: Matrix) -> Values:
        """How far each row is from the closest of the others, from 0 to 1."""
        found = np.empty(len(rows))
        nearest_distances(self._ranked(rows), self._ranked(others), self._discrete, found)
        return found

    def _ranked(self, matrix: Matrix) -> Matrix:
        """Numbers as ranks, the middle one where several are equal."""
        ranked = np.array(matrix, dtype=np.float64, order="C")
        for place, known in enumerate(self._sorted):
            if known is None or not len(known):
                continue
            values = matrix[:, place]
            below = np.searchsorted(known, values, side="left")
            upto = np.searchsorted(known, values, side="right")
            ranked[:, place] = np.where(np.isnan(values), np.nan, (below + upto) / (2 * len(known)))
        return ranked


def occurs(rows: Matrix, others: Matrix) -> NDArray[np.bool_]:
    """Which rows are equal to one of the others; nulls are equal."""

    def whole(matrix: Matrix) -> NDArray[np.void]:
        # Adding zero makes one zero of two, and a copy makes one NaN of many.
        plain = np.ascontiguousarray(np.where(np.isnan(matrix), np.nan, matrix + 0.0))
        return plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()

    known = set(whole(others).tolist())
    return np.array([each in known for each in whole(rows).tolist()])


def share(hits: NDArray[np.float64] | NDArray[np.bool_]) -> Estimate:
    """A share with Wilson's interval."""
    number = len(hits)
    value = float(np.mean(hits))
    squared = NORMAL**2 / number
    middle = (value + squared / 2) / (1 + squared)
    half = NORMAL * math.sqrt(value * (1 - value) / number + squared / (4 * number)) / (1 + squared)
    return Estimate(value, max(0.0, middle - half), min(1.0, middle + half))


def area_under_curve(ones: Values, zeros: Values) -> Estimate:
    """How often a one scores above a zero, ties half; with Hanley and McNeil's interval."""
    ordered = np.sort(zeros)
    below = np.searchsorted(ordered, ones, side="left")
    upto = np.searchsorted(ordered, ones, side="right")
    area = float(np.mean((below + upto) / (2 * len(zeros))))
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (
        area * (1 - area)
        + (len(ones) - 1) * (first - area**2)
        + (len(zeros) - 1) * (second - area**2)
    ) / (len(ones) * len(zeros))
    half = NORMAL * math.sqrt(max(0.0, variance))
    return Estimate(area, max(0.0, area - half), min(1.0, area + half))


def _percentiles(distances: Values) -> tuple[float, float]:
    return float(np.quantile(distances, 0.05)), float(np.median(distances))
