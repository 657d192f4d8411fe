"""Measuring: exact counts become noisy ones. Each function pays first, and draws noise after.

Everything that a release learns from exact counts comes from this module and ``selection``.
Evaluations also read exact counts (``counting.comparison``); their results are as sensitive as the
data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.errors import BudgetError, SchemaError
from private_gsd.privacy.budget import GAUSSIAN, INSECURE
from private_gsd.privacy.noise import gaussian_scale
from private_gsd.schema.neighbours import relation_of
from private_gsd.workloads.checks import group_numbers
from private_gsd.workloads.workload import times_rounded_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.workloads import Neighbours, Workload

# A charge names at most this many groups, and states the number of the others.
NAMED_GROUPS = 1000
MAX_RECORDS = 2**53


class NoisyCounts(NamedTuple):
    """Counts with noise, the scale of the noise on each group, and the number of the charge.

    Both are in records; where each unit counts one and its rows less, in units.
    """

    counts: NDArray[np.float64]
    scales: NDArray[np.float64]
    charge: str


class NoisyRecordCount(NamedTuple):
    """A noisy number of records, the scale of its noise, and whether the noise is private."""

    n_records: int
    scale: float
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

    Noise is drawn on whole numbers. Where rows count parts of a unit, counts are in W-ths of one
    (``ExactCounts.weight``): the sensitivity is W times as large, and the noisy counts are divided
    by W after noise was added.

    Args:
        exact: The exact counts.
        groups: The groups to be measured, each once.
        units: For each group, its part of the budget, in units of 2^-52 of ρ.
        accountant: The accountant, which is charged with the sum before any noise is drawn.
        noise: The source of noise.
        neighbours: The neighbouring relation, which sets the sensitivity.
    """
    workload = exact.workload
    require_public_schema(exact, noise)
    groups = group_numbers(groups, workload.num_groups).tolist()
    if len(groups) != len(units):
        raise BudgetError(f"{len(groups):,} groups need as many budgets, not {len(units):,}")
    squares = workload.squared_sensitivities(neighbours)[list(groups)]
    # A group of sensitivity 0 (a table of one cell) is treated as if its sensitivity were 1.
    squares = times_rounded_up(np.where(squares > 0, squares, 1.0), exact.weight**2)
    conversion = accountant.conversion
    # Noise is calibrated before the charge, so that a failure to calibrate costs nothing.
    scales = np.array(
        [
            gaussian_scale(square, each, conversion)
            for square, each in zip(squares.tolist(), units, strict=True)
        ]
    )
    charge = accountant.charge(
        sum(units),
        noise_name(GAUSSIAN, noise),
        _named([workload.describe(group) for group in groups]),
        relation_of(neighbours, workload.schema.unit_column),
    )
    parts = [
        exact.counts[workload.offsets[group] : workload.offsets[group + 1]] for group in groups
    ]
    noisy: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * len(parts)
    # The noise of all groups with the same scale is drawn in one call, on several threads.
    for scale in np.unique(scales):
        mine = np.flatnonzero(scales == scale)
        drawn = noise.gaussian(np.concatenate([parts[each] for each in mine]), float(scale))
        ends = np.cumsum([len(parts[each]) for each in mine])[:-1]
        for each, values in zip(mine, np.split(drawn, ends), strict=True):
            noisy[each] = values
    counts = np.concatenate(noisy).astype(np.float64)
    return NoisyCounts(counts / exact.weight, scales / exact.weight, charge)


def release_n_records(
    exact: ExactCounts,
    units: int,
    *,
    accountant: Accountant,
    noise: NoiseSource,
    neighbours: Neighbours = "add-remove",
) -> NoisyRecordCount:
    """Measure the number of records, where it is private.

    It is private under add-remove neighbours, and where each row of a unit counts one: whichever
    way such units differ, the number of rows that are taken differs by at most K. Where each unit
    counts one, it is the number of units, which differs by at most 1.
    """
    require_public_schema(exact, noise)
    scale = gaussian_scale(records_sensitivity(exact.workload), units, accountant.conversion)
    mechanism = noise_name(GAUSSIAN, noise)
    relation = relation_of(neighbours, exact.workload.schema.unit_column)
    accountant.charge(units, mechanism, ["number of records"], relation)
    noisy = noise.gaussian(np.array([exact.n_records], dtype=np.int64), scale)
    return NoisyRecordCount(max(int(noisy[0]), 1), scale, noise.private)


def records_sensitivity(workload: Workload) -> float:
    """The square of the most by which the number of records differs between neighbours."""
    unit = workload.schema.unit
    return 1.0 if unit is None else float(unit.most**2)


def require_public_schema(exact: ExactCounts, noise: NoiseSource) -> None:
    """Refuse a drafted schema, whose values noise does not hide, unless the noise is seeded."""
    if noise.private and exact.workload.schema.drafted:
        raise SchemaError(
            "the schema is a draft: its values and bounds were learned from the data, and whatever "
            "is measured by it would disclose them; replace them by public knowledge, and delete "
            "the line 'drafted = true'"
        )


def noise_name(mechanism: str, noise: NoiseSource) -> str:
    """The name of a mechanism in a charge; the name of seeded noise says that it is insecure."""
    return mechanism if noise.private else f"{mechanism} ({INSECURE})"


def _named(groups: list[str]) -> list[str]:
    if len(groups) <= NAMED_GROUPS:
        return groups
    return [*groups[:NAMED_GROUPS], f"and {len(groups) - NAMED_GROUPS:,} more"]
