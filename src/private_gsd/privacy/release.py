"""Release: the only functions that open exact answers. Each pays first and adds noise after."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import INSECURE
from private_gsd.privacy.mechanisms import gaussian_scale, selection_scale
from private_gsd.workloads.checks import group_numbers, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.answering import ExactAnswers
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.mechanisms import NoiseSource
    from private_gsd.workloads import Neighbours

# How many groups a charge names before it only counts the rest.
NAMED_GROUPS = 1000
MAX_ROWS = 2**53


class NoisyCounts(NamedTuple):
    """What crosses to the other side: counts with noise, its scale for each group, the charge."""

    counts: NDArray[np.int64]
    scales: NDArray[np.float64]
    charge: str


class NoisyTotal(NamedTuple):
    """A measured number of rows, the scale of its noise, and whether that may be called private."""

    rows: int
    scale: float
    private: bool


class Selection(NamedTuple):
    """Selected groups, and whether the noise of the selection may be called private."""

    groups: tuple[int, ...]
    private: bool


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
    groups = group_numbers(groups, workload.num_groups).tolist()
    if len(groups) != len(units):
        raise BudgetError(f"{len(groups):,} groups need as many shares, not {len(units):,}")
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
        sum(units),
        _told("discrete gaussian", noise),
        _named([workload.describe(group) for group in groups]),
        neighbours,
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
) -> NoisyTotal:
    """Measure the number of rows, which is not public where rows are added and removed."""
    scale = gaussian_scale(1.0, units)
    mechanism = _told("discrete gaussian", noise)
    accountant.charge(units, mechanism, ["number of rows"], "add-remove")
    total = noise.gaussian(np.array([exact.rows], dtype=np.int64), scale)
    return NoisyTotal(max(int(total[0]), 1), scale, noise.private)


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
    neighbours: Neighbours = "replace-one",
) -> Selection:
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
        neighbours: Which tables count as neighbours.
    """
    # All of this before the charge, and the shares most of all: the sensitivity of a score is one
    # because they are shares, and rounding rows times them cannot overflow.
    candidates = group_numbers(candidates, exact.workload.num_groups).tolist()
    if (exact.workload.units != 1).any():
        raise BudgetError(
            "the adaptive mechanism selects by errors of counts, and cannot select sums; measure "
            "them one-shot"
        )
    k = whole("k", k, 1, len(candidates))
    rows = whole("rows", rows, 1, MAX_ROWS)
    shares = np.asarray(shares, dtype=np.float64)
    if shares.shape != exact.counts.shape or not ((shares >= 0) & (shares <= 1)).all():
        raise BudgetError("shares must be one number from 0 to 1 for every query")
    scale = selection_scale(units, k)
    accountant.charge(
        units, _told("noisy top-k", noise), [f"{k} of {len(candidates):,} groups"], neighbours
    )
    expected = np.rint(shares * rows).astype(np.int64)
    errors = np.abs(exact.counts - expected)
    scores = np.maximum.reduceat(errors, exact.workload.offsets[:-1])
    chosen = noise.top_k(scores[list(candidates)], k, scale)
    return Selection(tuple(int(candidates[place]) for place in chosen), noise.private)


def _told(mechanism: str, noise: NoiseSource) -> str:
    """The mechanism as the ledger is told of it: noise that a seed gives protects nobody."""
    return mechanism if noise.private else f"{mechanism} ({INSECURE})"


def _named(groups: list[str]) -> list[str]:
    if len(groups) <= NAMED_GROUPS:
        return groups
    return [*groups[:NAMED_GROUPS], f"and {len(groups) - NAMED_GROUPS:,} more"]
