"""Selection: the query groups that a synthetic table answers worst, by noisy top-k.

Each function pays first, and draws noise after.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import BudgetError
from private_gsd.privacy.measuring import MAX_RECORDS, noise_name, require_public_schema
from private_gsd.privacy.noise import selection_scale
from private_gsd.schema.neighbours import relation_of
from private_gsd.workloads.checks import group_numbers, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.workloads import Neighbours

# Upper limits of distances and penalties, and of weights; products of both fit into int64.
LARGEST_DISTANCE = 2**40
LARGEST_WEIGHT = 2**20
# The largest sum of the errors of a group, and so of 2^24 errors of the largest distance.
LARGEST_SUM = 2**62


class Selection(NamedTuple):
    """Selected groups, and whether the noise of the selection is private."""

    groups: tuple[int, ...]
    private: bool


def select_groups(
    exact: ExactCounts,
    answers: NDArray[np.float64],
    n_records: int,
    candidates: Sequence[int],
    k: int,
    units: int,
    *,
    accountant: Accountant,
    noise: NoiseSource,
    neighbours: Neighbours = "replace-one",
) -> Selection:
    """Select the k groups that a synthetic table answers worst, by noisy top-k.

    The score of a group is its largest error, ``max |count - round(n_records · answer)|``. One
    record that is added, removed or replaced changes each count by at most one, and so the score.
    A unit of which each row counts changes it by at most K. Where rows count parts of a unit,
    counts are in W-ths of one (see ``ExactCounts``), and change by at most W; the largest error is
    divided by W and rounded down, and so changes by at most one.

    Args:
        exact: The exact counts.
        answers: The answers of the synthetic table to all queries, as fractions of its rows.
        n_records: The number of records, public or measured.
        candidates: The groups to select from.
        k: The number of groups to select.
        units: The budget of the whole selection, in units of 2^-52 of ρ.
        accountant: The accountant, which is charged before any noise is drawn.
        noise: The source of noise.
        neighbours: The neighbouring relation.
    """
    # Validate before charging. Answers must lie in [0, 1] so that n_records times them cannot
    # overflow. The sensitivity of a score is one because answers and n_records depend on the data
    # through earlier measurements alone, and are thus the same for neighbours.
    require_public_schema(exact, noise)
    candidates, k, expected = _selectable(exact, answers, n_records, candidates, k)
    unit = exact.workload.schema.unit
    scale = selection_scale(units, k, 1 if unit is None else unit.most)
    accountant.charge(
        units,
        noise_name("noisy top-k", noise),
        [f"{k} of {len(candidates):,} groups"],
        relation_of(neighbours, exact.workload.schema.unit_column),
    )
    errors = np.abs(exact.counts - expected)
    scores = np.maximum.reduceat(errors, exact.workload.offsets[:-1]) // exact.weight
    chosen = noise.top_k(scores[list(candidates)], k, scale)
    return Selection(tuple(int(candidates[place]) for place in chosen), noise.private)


def select_by_distance(
    exact: ExactCounts,
    answers: NDArray[np.float64],
    n_records: int,
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

    The score of group r is ``w_r · (d_r - p_r)``. The L1 distance over the queries of the group is
    ``d_r = Σ |count - round(n_records · answer)|``; ``w_r`` is a public weight and ``p_r`` a public
    penalty, such as the distance that noise alone would leave. Weights are whole and penalties are
    rounded, so that scores are whole numbers, and exact.

    Sensitivity of the score: weights, penalties, answers and ``n_records`` are the same for
    neighbouring datasets. By the triangle inequality d_r moves by no more than
    ``Σ |change of a count|``. Changes of counts by a row are whole numbers z, for which |z| <= z²:
    that sum is at most the *squared* L2 sensitivity of the group's counts to a row, s_r, which the
    workload knows exactly. (One table of a marginal with more than one cell: replacing one record
    takes one from a cell and adds one to another, 2; adding or removing one record, 1. A group of
    several tables, the levels of a tree, has the sum over them.) Limiting d_r to a public maximum
    does not increase its sensitivity. So the score of group r changes by at most w_r · s_r, and the
    largest of these over all candidates is the L∞ sensitivity of the scores, to which the noise is
    calibrated. Some scores may increase while others decrease; OpenDP's bound in
    ``selection_scale`` allows for it.

    To a unit of protection s_r is the same, or K times as large where each row counts one (see
    ``Workload.absolute_sensitivities``). Where rows count parts of a unit, d_r is summed in W-ths
    of one, where it moves by at most W · s_r, and is divided by W and rounded down; as s_r is
    whole, it then moves by at most s_r.

    Args:
        exact: The exact counts.
        answers: The answers of the synthetic table to all queries, as fractions of its rows.
        n_records: The number of records, public or measured.
        candidates: The groups to select from.
        k: The number of groups to select.
        units: The budget of the whole selection, in units of 2^-52 of ρ.
        weights: For each candidate, a public weight, a whole number of at least 1; 1 by default.
        penalties: For each candidate, a public distance of at least 0; 0 by default.
        accountant: The accountant, which is charged before any noise is drawn.
        noise: The source of noise.
        neighbours: The neighbouring relation, which sets the sensitivity.
    """
    # Validate before charging, as in ``select_groups``.
    require_public_schema(exact, noise)
    candidates, k, expected = _selectable(exact, answers, n_records, candidates, k)
    weighed, taken = _public(len(candidates), weights, penalties)
    changes = exact.workload.absolute_sensitivities(neighbours)[candidates]
    # A group of sensitivity 0 (a table of one cell) is treated as if its sensitivity were 1.
    bounds = [
        weight * max(1, math.ceil(change))
        for weight, change in zip(weighed.tolist(), changes.tolist(), strict=True)
    ]
    scale = selection_scale(units, k, max(bounds))
    accountant.charge(
        units,
        noise_name("noisy top-k by distance", noise),
        [f"{k} of {len(candidates):,} groups"],
        relation_of(neighbours, exact.workload.schema.unit_column),
    )
    errors = np.minimum(np.abs(exact.counts - expected), _largest_error(exact))
    distances = np.add.reduceat(errors, exact.workload.offsets[:-1])[candidates] // exact.weight
    beyond: NDArray[np.int64] = np.minimum(distances, LARGEST_DISTANCE) - taken
    chosen = noise.top_k(weighed * beyond, k, scale)
    return Selection(tuple(int(candidates[place]) for place in chosen), noise.private)


def select_farthest(
    parts: Iterable[tuple[ExactCounts, NDArray[np.float64], NDArray[np.float64]]],
    n_records: int | None,
    k: int,
    units: int,
    *,
    accountant: Accountant,
    noise: NoiseSource,
    neighbours: Neighbours = "replace-one",
) -> Selection:
    """Select the k groups of several workloads that are farthest from expected, by noisy top-k.

    The score of group r is ``d_r = Σ max(|count - round(n_records · answer)| - floor, 0)`` over the
    queries of the group. Floors are public distances that do not count, such as what sampling
    and noise leave; they are rounded, so that scores are whole numbers, and exact.

    Sensitivity of the score: answers, floors and ``n_records`` are the same for neighbouring
    datasets. As functions of a count, the absolute value, the floor that is taken off and the
    limit at 0 change by no more than the count does. So d_r changes by at most
    ``Σ |change of a count|``, which is at most s_r (see ``select_by_distance``, for units of
    protection, too). The noise is calibrated to the largest s_r of all groups of all parts.
    One top-k is drawn from the scores of all parts.

    Args:
        parts: For each part the exact counts, the expected answers as shares, and the floor of
            each query in rows. Asked for one after the other, before the accountant is charged.
        n_records: The number of records, where it was measured; None where it is public.
        k: The number of groups to select.
        units: The budget of the whole selection, in units of 2^-52 of ρ.
        accountant: The accountant, which is charged before any noise is drawn.
        noise: The source of noise.
        neighbours: The neighbouring relation, which sets the sensitivity.

    Returns:
        The selected groups, numbered through all parts.
    """
    scores: list[NDArray[np.int64]] = []
    sensitivity, relation = 1, str(neighbours)
    for exact, answers, floors in parts:
        require_public_schema(exact, noise)
        everything = range(exact.workload.num_groups)
        records = exact.n_records if n_records is None else n_records
        _, _, expected = _selectable(exact, answers, records, everything, 1)
        taken = _whole_distances(floors, exact.workload.size, "floors")
        changes = exact.workload.absolute_sensitivities(neighbours)
        sensitivity = max(sensitivity, math.ceil(changes.max()))
        largest = _largest_error(exact)
        errors = np.minimum(np.abs(exact.counts - expected), largest)
        taken = np.minimum(taken, largest // exact.weight + 1) * exact.weight
        beyond = np.maximum(errors - taken, 0)
        distances = np.add.reduceat(beyond, exact.workload.offsets[:-1]) // exact.weight
        relation = relation_of(neighbours, exact.workload.schema.unit_column)
        scores.append(np.minimum(distances, LARGEST_DISTANCE))
    together = np.concatenate(scores)
    k = whole("k", k, 1, len(together))
    scale = selection_scale(units, k, sensitivity)
    accountant.charge(
        units,
        noise_name("noisy top-k by distance", noise),
        [f"{k:,} of {len(together):,} groups"],
        relation,
    )
    return Selection(tuple(noise.top_k(together, k, scale)), noise.private)


def _whole_distances(
    given: Sequence[float] | NDArray[np.float64], number: int, name: str
) -> NDArray[np.int64]:
    """Public distances of at least 0 as whole numbers that cannot overflow."""
    found = np.asarray(given, dtype=np.float64)
    if found.shape != (number,):
        raise BudgetError(f"{number:,} distances need as many {name}")
    if not (found >= 0).all():  # refuses NaN, too
        raise BudgetError(f"{name} must be numbers of at least 0")
    return np.rint(np.minimum(found, LARGEST_DISTANCE)).astype(np.int64)


def _selectable(
    exact: ExactCounts,
    answers: NDArray[np.float64],
    n_records: int,
    candidates: Sequence[int],
    k: int,
) -> tuple[list[int], int, NDArray[np.int64]]:
    """The checked candidates, the number to select, and the answers as counts in W-ths."""
    numbers: list[int] = group_numbers(candidates, exact.workload.num_groups).tolist()
    if (exact.workload.max_contributions != 1).any():
        raise BudgetError(
            "the adaptive mechanism selects by errors of counts, and cannot select sums; measure "
            "them one-shot"
        )
    k = whole("k", k, 1, len(numbers))
    n_records = whole("n_records", n_records, 1, MAX_RECORDS // exact.weight) * exact.weight
    answers = np.asarray(answers, dtype=np.float64)
    if answers.shape != exact.counts.shape or not ((answers >= 0) & (answers <= 1)).all():
        raise BudgetError("answers must be one number from 0 to 1 for every query")
    return numbers, k, np.rint(answers * n_records).astype(np.int64)


def _largest_error(exact: ExactCounts) -> int:
    """The limit of an error, so that no sum of errors overflows."""
    most = LARGEST_SUM // int(exact.workload.group_sizes.max())
    return min(LARGEST_DISTANCE // 4 * exact.weight, most)


def _public(
    number: int, weights: Sequence[int] | None, penalties: Sequence[float] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The weights and penalties of all candidates, as whole numbers that cannot overflow."""
    weighed = [1] * number if weights is None else list(weights)
    taken = np.zeros(number) if penalties is None else np.asarray(penalties, dtype=np.float64)
    if len(weighed) != number or taken.shape != (number,):
        raise BudgetError(f"{number:,} candidates need as many weights and penalties")
    checked = [whole("a weight", weight, 1, LARGEST_WEIGHT) for weight in weighed]
    if not (taken >= 0).all():  # refuses NaN, too
        raise BudgetError("penalties must be numbers of at least 0")
    cut = np.rint(np.minimum(taken, LARGEST_DISTANCE)).astype(np.int64)
    return np.array(checked, dtype=np.int64), cut
