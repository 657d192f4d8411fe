"""Attacks: simple attempts to learn from the synthetic table who was in the real one.

They are smoke detectors. One that finds something shows a leak; one that finds nothing shows only
that this attack, on these rows, did not. The guarantee of a release is its budget, not this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.evaluation.metrics.intervals import Estimate, area_under_curve, excess, share
from private_gsd.evaluation.metrics.nearness import Ruler, occurs, once
from private_gsd.evaluation.rows import take
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.rows import Matrix
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]

ROWS = 5_000
FEWEST = 20
# More than this share of synthetic rows equal to rows that stand once is no chance.
MOST = 0.5
# Naming one in so many others takes at least so many.
ONE_IN = 100


class Inference(NamedTuple):
    """Guessing one column from all others, by the synthetic row that is closest in them.

    Attributes:
        column: The column.
        members: The share of training rows for which the guess is right.
        others: The share of held-out rows for which it is.
        risk: The difference, as a part of what is wrong for the held-out rows: 0 where being in the
            data made nobody easier to guess.
    """

    column: str
    members: Estimate
    others: Estimate
    risk: Estimate


@dataclass(frozen=True)
class Attacks:
    """What the attacks found.

    Attributes:
        rows: How many synthetic, training and held-out rows were looked at.
        matches: The share of synthetic rows that are equal to a training row.
        like_held: The share that are equal to one of as many training rows as there are held-out
            ones.
        copies: The share that are equal to a training row that stands there once.
        looked_at: How many training rows that were.
        held_matches: The share that are equal to a held-out row; None without them.
        distances: How far synthetic rows are from the closest training row, at the 5th percentile
            and the median.
        held_distances: The same to the closest of as many held-out rows.
        closer: The share of synthetic rows that are closer to a training row than to any held-out
            one, ties half: 0.5 where training rows have no more to do with it than others.
        membership: The area under the curve of telling training rows from held-out ones, by how
            much closer the synthetic table comes to a row than other real rows do.
        caught: The share of training rows that this attack names when it wrongly names one in a
            hundred of the others.
        inference: What could be guessed of training rows that could not be of others.
        overlap: Whether most held-out rows are training rows, and so were not looked at.
    """

    rows: tuple[int, int, int]
    matches: Estimate
    like_held: Estimate
    copies: Estimate
    looked_at: int
    distances: tuple[float, float]
    held_matches: Estimate | None = None
    held_distances: tuple[float, float] | None = None
    closer: Estimate | None = None
    membership: Estimate | None = None
    caught: Estimate | None = None
    inference: tuple[Inference, ...] = ()
    overlap: bool = False

    @property
    def findings(self) -> list[str]:
        """Each attack that did better than chance explains, in words."""
        found = []
        if self.held_matches is not None and self.like_held.low > self.held_matches.high:
            found.append("synthetic rows repeat training rows more often than held-out ones")
        if self.overlap:
            found.append("most held-out rows are training rows, and cannot tell anything")
        if self.copies.low > MOST:
            found.append("most synthetic rows repeat a row that the training rows have once")
        if self.closer is not None and self.closer.low > 0.5:
            found.append("synthetic rows lie closer to training rows than to held-out ones")
        if self.membership is not None and self.membership.low > 0.5:
            found.append("nearest distances tell training rows from held-out ones")
        found += [
            f"{each.column} of training rows can be guessed more often than of held-out ones"
            for each in self.inference
            if each.risk.low > 0
        ]
        return found


def attack(
    schema: Schema,
    synthetic: Matrix,
    train: Matrix,
    held: Matrix | None,
    *,
    secrets: Sequence[str] = (),
    seed: int = 0,
) -> Attacks | None:
    """Attack a synthetic table; None where there are too few rows to try.

    Args:
        schema: The public schema.
        synthetic: Encoded synthetic rows.
        train: Encoded rows that it was made from.
        held: Encoded rows of the same kind that it was not made from, if there are any.
        secrets: The columns to guess; only discrete ones are.
        seed: Of sampling.
    """
    if held is not None and len(held) < FEWEST:
        held = None  # too few to know what is usual
    made = take(synthetic, ROWS, seed)
    number = min(ROWS, len(train), len(train) if held is None else len(held))
    if min(number, len(made)) < 2:
        return None
    rng = np.random.default_rng(seed)
    members = train[rng.permutation(len(train))[:number]]
    # Rows that were not held out tell nothing.
    overlap = held is not None and bool(occurs(held, once(train)).mean() > MOST)
    if overlap:
        held = None
    others = None if held is None else held[rng.permutation(len(held))[:number]]
    # Ranks are among both alike: no row lies between two ranks because of where it comes from.
    ruler = Ruler(schema, members if others is None else np.concatenate([members, others]))
    to_train = ruler.nearest(made, members)
    # All training rows, for a copy; as many as there are held-out ones, to compare with these.
    whole = share(occurs(made, train))
    alone = share(occurs(made, once(train)))
    alike = share(occurs(made, members), number)
    near = _percentiles(to_train)
    if others is None:
        return Attacks(
            (len(made), number, 0), whole, alike, alone, len(train), near, overlap=overlap
        )
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
        whole,
        alike,
        alone,
        len(train),
        near,
        share(occurs(made, others), number),
        _percentiles(to_held),
        # Rows that have one neighbour in common do not speak for themselves.
        share(closer, number),
        area_under_curve(*scores),
        share(scores[0] > threshold) if len(unknown) >= ONE_IN else None,
        tuple(
            _infer(schema, ruler, schema.names.index(secret), everything, members, others)
            for secret in secrets
            if isinstance(schema[secret], Discrete) and len(schema) > 1
        ),
    )


def _infer(
    schema: Schema, ruler: Ruler, place: int, made: Matrix, members: Matrix, others: Matrix
) -> Inference:
    """Guess a column of training rows and of others."""
    right = []
    for rows in (members, others):
        guess = made[ruler.closest(rows, made, without=place), place]
        truth = rows[:, place]
        right.append((guess == truth) | (np.isnan(guess) & np.isnan(truth)))
    return Inference(schema.names[place], share(right[0]), share(right[1]), excess(*right))


def _percentiles(distances: Values) -> tuple[float, float]:
    return float(np.quantile(distances, 0.05)), float(np.median(distances))
