"""Release: the only functions that open exact answers. Each pays first and adds noise after."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import BudgetError
from private_gsd.privacy.mechanisms import gaussian_scale, selection_scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.answering import ExactAnswers
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.mechanisms import NoiseSource
    from private_gsd.workloads import Neighbours

# How many groups a charge names before it only counts the rest.
NAMED_GROUPS = 1000


class NoisyCounts(NamedTuple):
    """What crosses to the other side: counts with noise, its scale for each group, the charge."""

    counts: NDArray[np.int64]
    scales: NDArray[np.float64]
    charge: str


def release_counts(
    exact: ExactAnswers,
    groups: Sequence[int],
    units: Sequence[int],
    *,
    accountant: Accountant,
    noise: NoiseSource,
    neighbours: Neighbours = "replace-one",
) -> NoisyCounts:
    """Measure groups with the discrete Gaussian mechanism, each with a budget of its own.

    Args:
        exact: The exact answers.
        groups: Which groups, each once.
        units: For each, its share of the budget.
        accountant: Charged with the sum before any noise is drawn.
        noise: Where the noise comes from.
        neighbours: Which tables count as neighbours; sets the sensitivity.
    """
    workload = exact.workload
    if len(groups) != len(units) or len(set(groups)) != len(groups) or not len(groups):
        raise BudgetError("give each group once, and a share of the budget for each")
    squares = workload.squared_sensitivities(neighbours)[list(groups)]
    # Calibrated before the charge: what cannot be calibrated is not paid for. A group that no
    # neighbour can change (a table of one cell) is treated as if one could.
    scales = np.array(
        [
            gaussian_scale(float(square) or 1.0, each)
            for square, each in zip(squares, units, strict=True)
        ]
    )
    charge = accountant.charge(
        sum(units), "discrete gaussian", _named([workload.describe(group) for group in groups])
    )
    parts = [
        exact.counts[workload.offsets[group] : workload.offsets[group + 1]] for group in groups
    ]
    noisy: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(parts)
    # Groups with one scale are drawn in one call, which the threads then share.
    for scale in np.unique(scales):
        mine = np.flatnonzero(scales == scale)
        drawn = noise.gaussian(np.concatenate([parts[each] for each in mine]), float(scale))
        ends = np.cumsum([len(parts[each]) for each in mine])[:-1]
        for each, values in zip(mine, np.split(drawn, ends), strict=True):
            noisy[each] = values
    return NoisyCounts(np.concatenate(noisy), scales, charge)


def release_total(
    exact: ExactAnswers, units: int, *, accountant: Accountant, noise: NoiseSource
) -> tuple[int, float]:
    """Measure the number of rows, which is not public where rows are added and removed."""
    scale = gaussian_scale(1.0, units)
    accountant.charge(units, "discrete gaussian", ["number of rows"])
    total = noise.gaussian(np.array([exact.rows], dtype=np.int64), scale)
    return max(int(total[0]), 1), scale


def select_groups(
    exact: ExactAnswers,
    shares: NDArray[np.float64],
    rows: int,
    candidates: Sequence[int],
    k: int,
    units: int,
    *,
    accountant: Accountant,
    noise: NoiseSource,
) -> list[int]:
    """Select the k groups that a synthetic table answers worst, by noisy top-k.

    The score of a group is its largest error in rows, ``max |count - round(rows · share)|``. One
    person more, less or other moves a count by at most one, and so the score.

    Args:
        exact: The exact answers.
        shares: What the synthetic table answers to all queries, as shares.
        rows: The public number of rows (or the measured one).
        candidates: The groups to select from.
        k: How many.
        units: The budget of the whole selection.
        accountant: Charged before any noise is drawn.
        noise: Where the noise comes from.
    """
    if not 1 <= k <= len(candidates):
        raise BudgetError(f"select from 1 to {len(candidates):,} groups, not {k!r}")
    scale = selection_scale(units, k)
    accountant.charge(units, "noisy top-k", [f"{k} of {len(candidates):,} groups"])
    expected = np.rint(shares * rows).astype(np.int64)
    errors = np.abs(exact.counts - expected)
    scores = np.maximum.reduceat(errors, exact.workload.offsets[:-1])
    chosen = noise.top_k(scores[list(candidates)], k, scale)
    return [int(candidates[place]) for place in chosen]


def _named(groups: list[str]) -> list[str]:
    if len(groups) <= NAMED_GROUPS:
        return groups
    return [*groups[:NAMED_GROUPS], f"and {len(groups) - NAMED_GROUPS:,} more"]
