"""Attacks: simple attempts to learn from the synthetic table which records the real table has.

An attack that succeeds shows a leak. An attack that fails shows only that this attack failed on
these rows. The guarantee of a release is its budget.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.evaluation.metrics.intervals import Estimate, area_under_curve, excess, share
from private_gsd.evaluation.metrics.nearness import Ruler, occurs, once
from private_gsd.evaluation.table_sample import take
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import Matrix
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]

ROWS = 5_000
FEWEST = 20
# A share of synthetic rows that equal a unique training row above this is not random.
MOST = 0.5
# A false positive rate of one in this number needs at least as many rows.
ONE_IN = 100


class Inference(NamedTuple):
    """Guessing one column from all others, by the nearest synthetic row.

    Attributes:
        column: The name of the column.
        members: The share of right guesses for training rows.
        others: The share of right guesses for held-out rows.
        risk: The difference of these shares, as a share of the wrong guesses for held-out rows: 0
            if training rows are as hard to guess as held-out rows.
    """

    column: str
    members: Estimate
    others: Estimate
    risk: Estimate


@dataclass(frozen=True)
class Attacks:
    """The results of the attacks.

    Attributes:
        rows: The numbers of synthetic, training and held-out rows.
        matches: The share of synthetic rows that equal a training row.
        sample_matches: The share of synthetic rows that equal one of as many training rows as there
            are held-out rows.
        copies: The share of synthetic rows that equal a training row that occurs once.
        training_rows: The number of training rows that synthetic rows were matched with.
        distances: The distances from synthetic rows to the nearest training row: the 5th percentile
            and the median.
        holdout_matches: The share of synthetic rows that equal a held-out row; None without
            held-out rows.
        holdout_distances: The same percentiles of the distances to the nearest held-out row.
        closer: The share of synthetic rows that are nearer to a training row than to any held-out
            row, with ties counted half: 0.5 if the synthetic table favours neither.
        membership: The area under the curve of telling training rows from held-out rows, by how
            much nearer the synthetic table is to a row than other real rows are.
        true_positives: The share of training rows that this attack recognises at a false positive
            rate of one in a hundred.
        inference: Guesses of single columns.
        overlap: Whether most held-out rows are training rows; the held-out rows were then left out.
    """

    rows: tuple[int, int, int]
    matches: Estimate
    sample_matches: Estimate
    copies: Estimate
    training_rows: int
    distances: tuple[float, float]
    holdout_matches: Estimate | None = None
    holdout_distances: tuple[float, float] | None = None
    closer: Estimate | None = None
    membership: Estimate | None = None
    true_positives: Estimate | None = None
    inference: tuple[Inference, ...] = ()
    overlap: bool = False

    @property
    def findings(self) -> list[str]:
        """A sentence for each attack that did better than random variation explains."""
        found = []
        if self.holdout_matches is not None and self.sample_matches.low > self.holdout_matches.high:
            found.append("synthetic rows repeat training rows more often than held-out rows")
        if self.overlap:
            found.append("most held-out rows are training rows, and say nothing")
        if self.copies.low > MOST:
            found.append("most synthetic rows repeat a training row that occurs once")
        if self.closer is not None and self.closer.low > 0.5:
            found.append("synthetic rows are nearer to training rows than to held-out rows")
        if self.membership is not None and self.membership.low > 0.5:
            found.append("nearest distances tell training rows from held-out rows")
        found += [
            f"{each.column} of training rows can be guessed more often than of held-out rows"
            for each in self.inference
            if each.risk.low > 0
        ]
        return found


def attack(
    schema: Schema,
    synthetic: Matrix,
    train: Matrix,
    holdout: Matrix | None,
    *,
    secrets: Sequence[str] = (),
    seed: int = 0,
) -> Attacks | None:
    """Attack a synthetic table; None if there are too few rows.

    Args:
        schema: The public schema.
        synthetic: Encoded synthetic rows.
        train: Encoded rows that the synthetic table was made from.
        holdout: Encoded rows of the same population that the table was not made from; None without
            such rows.
        secrets: The columns to guess; numeric columns are left out.
        seed: The seed of sampling.
    """
    if holdout is not None and len(holdout) < FEWEST:
        holdout = None  # too few to compare with
    made = take(synthetic, ROWS, seed)
    number = min(ROWS, len(train), len(train) if holdout is None else len(holdout))
    if min(number, len(made)) < 2:
        return None
    rng = np.random.default_rng(seed)
    members = train[rng.permutation(len(train))[:number]]
    # Held-out rows that are training rows as well are no comparison.
    overlap = holdout is not None and bool(occurs(holdout, once(train)).mean() > MOST)
    if overlap:
        holdout = None
    others = None if holdout is None else holdout[rng.permutation(len(holdout))[:number]]
    # Ranks are among both kinds of rows, so that neither kind lies between two ranks.
    ruler = Ruler(schema, members if others is None else np.concatenate([members, others]))
    to_train = ruler.nearest(made, members)
    # Copies are looked for among all training rows; the comparison with held-out rows takes as many
    # training rows as there are held-out rows.
    found = Attacks(
        rows=(len(made), number, 0),
        matches=share(occurs(made, train)),
        sample_matches=share(occurs(made, members), number),
        copies=share(occurs(made, once(train))),
        training_rows=len(train),
        distances=_percentiles(to_train),
        overlap=overlap,
    )
    if others is None:
        return found
    to_holdout = ruler.nearest(made, others)
    closer = np.where(to_train == to_holdout, 0.5, to_train < to_holdout)
    # Half of the held-out rows represent the population; the attack is tried on the other half.
    half = number // 2
    known, unknown = others[:half], others[half:]
    targets = [members[: len(unknown)], unknown]
    # An attacker has all synthetic rows.
    everything = take(synthetic, 4 * ROWS, seed)
    scores = [ruler.nearest(each, known) - ruler.nearest(each, everything) for each in targets]
    threshold = np.quantile(scores[1], 0.99, method="higher")
    return replace(
        found,
        rows=(len(made), number, number),
        holdout_matches=share(occurs(made, others), number),
        holdout_distances=_percentiles(to_holdout),
        # Rows with a common nearest row are not independent.
        closer=share(closer, number),
        membership=area_under_curve(*scores),
        true_positives=share(scores[0] > threshold) if len(unknown) >= ONE_IN else None,
        inference=tuple(
            _infer(schema, ruler, schema.names.index(secret), everything, members, others)
            for secret in secrets
            if isinstance(schema[secret], Discrete) and len(schema) > 1
        ),
    )


def _infer(
    schema: Schema, ruler: Ruler, place: int, made: Matrix, members: Matrix, others: Matrix
) -> Inference:
    """Guess a column of training rows and of held-out rows."""
    right = []
    for rows in (members, others):
        guess = made[ruler.closest(rows, made, without=place), place]
        truth = rows[:, place]
        right.append((guess == truth) | (np.isnan(guess) & np.isnan(truth)))
    return Inference(schema.names[place], share(right[0]), share(right[1]), excess(*right))


def _percentiles(distances: Values) -> tuple[float, float]:
    return float(np.quantile(distances, 0.05)), float(np.median(distances))
