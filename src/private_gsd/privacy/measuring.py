"""Release: the only functions that open exact answers. Each pays first and adds noise after."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import BudgetError, SchemaError
from private_gsd.privacy.budget import GAUSSIAN, INSECURE
from private_gsd.privacy.noise import gaussian_scale, selection_scale
from private_gsd.workloads.checks import group_numbers, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.workloads import Neighbours

# Distances and penalties of selection end here, and weights: their product is exact in 64 bits.
LARGEST_DISTANCE = 2**40
LARGEST_WEIGHT = 2**20
# How many groups a charge names before it only counts the rest.
NAMED_GROUPS = 1000
MAX_ROWS = 2**53


class NoisyCounts(NamedTuple):
    """What crosses to the other side: counts with noise, its scale for each group, the charge."""

    counts: NDArray[np.int64]
    scales: NDArray[np.float64]
    charge: str


class NoisyTotal(NamedTuple):
    """A measured number of records, the scale of its noise, and whether that may be called private."""

    n_records: int
    scale: float
    private: bool


class Selection(NamedTuple):
    """Selected groups, and whether the noise of the selection may be called private."""

    groups: tuple[int, ...]
    private: bool


def release_counts(
    exact: ExactCounts,
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
    _require_public(exact, noise)
    groups = group_numbers(groups, workload.num_groups).tolist()
    if len(groups) != len(units):
        raise BudgetError(f"{len(groups):,} groups need as many shares, not {len(units):,}")
    squares = workload.squared_sensitivities(neighbours)[list(groups)]
    conversion = accountant.conversion
    # Calibrated before the charge: what cannot be calibrated is not paid for. A group that no
    # neighbour can change (a table of one cell) is treated as if one could.
    scales = np.array(
        [
            gaussian_scale(float(square) or 1.0, each, conversion)
            for square, each in zip(squares, units, strict=True)
        ]
    )
    charge = accountant.charge(
        sum(units),
        _told(GAUSSIAN, noise),
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
    exact: ExactCounts, units: int, *, accountant: Accountant, noise: NoiseSource
) -> NoisyTotal:
    """Measure the number of rows, which is not public where rows are added and removed."""
    _require_public(exact, noise)
    scale = gaussian_scale(1.0, units, accountant.conversion)
    mechanism = _told(GAUSSIAN, noise)
    accountant.charge(units, mechanism, ["number of rows"], "add-remove")
    total = noise.gaussian(np.array([exact.n_records], dtype=np.int64), scale)
    return NoisyTotal(max(int(total[0]), 1), scale, noise.private)


def select_groups(
    exact: ExactCounts,
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
    _require_public(exact, noise)
    candidates, k, expected = _selectable(exact, shares, rows, candidates, k)
    scale = selection_scale(units, k)
    accountant.charge(
        units, _told("noisy top-k", noise), [f"{k} of {len(candidates):,} groups"], neighbours
    )
    errors = np.abs(exact.counts - expected)
    scores = np.maximum.reduceat(errors, exact.workload.offsets[:-1])
    chosen = noise.top_k(scores[list(candidates)], k, scale)
    return Selection(tuple(int(candidates[place]) for place in chosen), noise.private)


def select_by_distance(
    exact: ExactCounts,
    shares: NDArray[np.float64],
    rows: int,
    candidates: Sequence[int],
    k: int,
    units: int,
    *,
    weights: Sequence[int] | None = None,
    penalties: Sequence[float] | None = None,
    accountant: Accountant,
    noise: NoiseSource,
    neighbours: Neighbours = "replace-one",
) -> Selection:
    """Select the k groups whose answers are farthest from a synthetic table's, by noisy top-k.

    The score of group r is ``w_r · (d_r - p_r)``, where ``d_r = Σ |count - round(rows · share)|``
    is the L1 distance in rows over the queries of the group, ``w_r`` is a public weight and ``p_r``
    a public penalty, such as the distance that noise alone would leave. Weights are whole and
    penalties are rounded, so that scores are whole numbers, and exact.

    Its sensitivity. Weights, penalties, shares and ``rows`` are the same for neighbouring tables,
    and what is rounded are these alone. By the triangle inequality d_r moves by no more than
    ``Σ |change of a count|``. Changes of counts are whole numbers z, for which |z| <= z²: that sum
    is at most the *squared* L2 sensitivity of the group's counts, s_r, which the workload knows
    exactly. (One table of a marginal with more than one cell: one row for another takes one from a
    cell and adds one to another, 2; one row more or less, 1. A group of several tables, the levels
    of a tree, has the sum over them.) To cut d_r off at a public number moves nothing further
    apart. So a score moves by at most w_r · s_r, and no score of any candidate by more than the
    largest of these, which is the sensitivity (in the largest norm) that the noise is for. It may
    move up for one group and down for another; OpenDP's bound, ``selection_scale``, allows for it.

    Args:
        exact: The exact answers.
        shares: What the synthetic table answers to all queries, as shares.
        rows: The public number of rows (or the measured one).
        candidates: The groups to select from.
        k: How many.
        units: The budget of the whole selection.
        weights: For each candidate, a public weight, a whole number of at least 1; 1 by default.
        penalties: For each candidate, a public number of rows of at least 0; 0 by default.
        accountant: Charged before any noise is drawn.
        noise: Where the noise comes from.
        neighbours: Which tables count as neighbours; sets the sensitivity.
    """
    # All of this before the charge, as above.
    _require_public(exact, noise)
    candidates, k, expected = _selectable(exact, shares, rows, candidates, k)
    weighed, taken = _public(len(candidates), weights, penalties)
    squares = exact.workload.squared_sensitivities(neighbours)[candidates]
    # What no neighbour can change (a table of one cell) is treated as if one could.
    bounds = [
        weight * max(1, math.ceil(square))
        for weight, square in zip(weighed.tolist(), squares.tolist(), strict=True)
    ]
    scale = selection_scale(units, k, max(bounds))
    accountant.charge(
        units,
        _told("noisy top-k by distance", noise),
        [f"{k} of {len(candidates):,} groups"],
        neighbours,
    )
    # No cell is farther apart than the cut, so that no sum of them overflows.
    errors = np.minimum(np.abs(exact.counts - expected), LARGEST_DISTANCE // 4)
    distances = np.add.reduceat(errors, exact.workload.offsets[:-1])[candidates]
    beyond: NDArray[np.int64] = np.minimum(distances, LARGEST_DISTANCE) - taken
    chosen = noise.top_k(weighed * beyond, k, scale)
    return Selection(tuple(int(candidates[place]) for place in chosen), noise.private)


def _selectable(
    exact: ExactCounts,
    shares: NDArray[np.float64],
    rows: int,
    candidates: Sequence[int],
    k: int,
) -> tuple[list[int], int, NDArray[np.int64]]:
    """The candidates, how many of them, and the counts that shares come to; if all make sense."""
    numbers: list[int] = group_numbers(candidates, exact.workload.num_groups).tolist()
    if (exact.workload.units != 1).any():
        raise BudgetError(
            "the adaptive mechanism selects by errors of counts, and cannot select sums; measure "
            "them one-shot"
        )
    k = whole("k", k, 1, len(numbers))
    rows = whole("rows", rows, 1, MAX_ROWS)
    shares = np.asarray(shares, dtype=np.float64)
    if shares.shape != exact.counts.shape or not ((shares >= 0) & (shares <= 1)).all():
        raise BudgetError("shares must be one number from 0 to 1 for every query")
    return numbers, k, np.rint(shares * rows).astype(np.int64)


def _public(
    number: int, weights: Sequence[int] | None, penalties: Sequence[float] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Weights and penalties of so many candidates, in whole numbers that cannot overflow."""
    weighed = [1] * number if weights is None else list(weights)
    taken = np.zeros(number) if penalties is None else np.asarray(penalties, dtype=np.float64)
    if len(weighed) != number or taken.shape != (number,):
        raise BudgetError(f"{number:,} candidates need as many weights and penalties")
    checked = [whole("a weight", weight, 1, LARGEST_WEIGHT) for weight in weighed]
    if not (taken >= 0).all():  # also not a number
        raise BudgetError("penalties must be numbers of at least 0")
    cut = np.rint(np.minimum(taken, LARGEST_DISTANCE)).astype(np.int64)
    return np.array(checked, dtype=np.int64), cut


def _require_public(exact: ExactCounts, noise: NoiseSource) -> None:
    """Refuse a drafted schema, which noise does not hide, unless nothing is called private."""
    if noise.private and exact.workload.schema.drafted:
        raise SchemaError(
            "the schema is a draft: its values and bounds were learned from the data, and whatever "
            "is measured by it would disclose them; replace them by public knowledge, and delete "
            "the line 'drafted = true'"
        )


def _told(mechanism: str, noise: NoiseSource) -> str:
    """The mechanism as the ledger is told of it: noise that a seed gives protects nobody."""
    return mechanism if noise.private else f"{mechanism} ({INSECURE})"


def _named(groups: list[str]) -> list[str]:
    if len(groups) <= NAMED_GROUPS:
        return groups
    return [*groups[:NAMED_GROUPS], f"and {len(groups) - NAMED_GROUPS:,} more"]
