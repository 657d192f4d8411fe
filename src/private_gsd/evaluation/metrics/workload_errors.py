"""Workload errors: the synthetic table's answers against the exact answers and the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import TableSample
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.workloads import Workload

DRAWN = 5
CELLS = 8


class QueryComparison(NamedTuple):
    """One query, and the share of rows that satisfy it in each table."""

    query: str
    real: float
    synthetic: float


class GroupError(NamedTuple):
    """The errors of one query group.

    Attributes:
        name: A description of the group.
        queries: The number of its queries.
        mean: The mean error of an answer, as a share of the rows.
        rms: The root of the mean squared error.
        largest: The largest error.
        noise: The standard deviation of the noise on an answer, as a share of the rows; None for a
            group that was not measured.
    """

    name: str
    queries: int
    mean: float
    rms: float
    largest: float
    noise: float | None

    @property
    def against_noise(self) -> float | None:
        """The error as a multiple of the noise: below 1 where the projection removed noise."""
        return None if self.noise is None else self.rms / self.noise


@dataclass(frozen=True, eq=False)
class WorkloadErrors:
    """The errors of a workload.

    Attributes:
        queries: The number of queries.
        mean: The mean error of an answer.
        rms: The root of the mean squared error.
        largest: The largest error.
        noise: The root of the mean variance of the noise over the measured queries; None if no
            query was measured.
        measured_rms: The root of the mean squared error over the measured queries.
        groups: All query groups, the largest error first.
        worst: The groups with the largest errors, and their queries with the largest errors.
    """

    queries: int
    mean: float
    rms: float
    largest: float
    noise: float | None
    measured_rms: float | None
    groups: tuple[GroupError, ...]
    worst: tuple[tuple[GroupError, tuple[QueryComparison, ...]], ...]


def workload_errors(
    workload: Workload,
    real: TableSample,
    synthetic: TableSample,
    measurements: Measurements | None = None,
) -> WorkloadErrors:
    """Compare two tables on all queries of a workload."""
    # Sums count as shares of the largest possible sum.
    contributions = np.repeat(workload.max_contributions, workload.group_sizes)
    shares = (
        real.counts / real.total / contributions,
        synthetic.counts / synthetic.total / contributions,
    )
    error = np.abs(shares[1] - shares[0])
    starts, sizes = workload.offsets[:-1], workload.group_sizes
    mean = np.add.reduceat(error, starts) / sizes
    rms = np.sqrt(np.add.reduceat(error**2, starts) / sizes)
    largest = np.maximum.reduceat(error, starts)
    scales = noise_of(workload, measurements)
    order = np.argsort(-rms, kind="stable").tolist()
    groups = [
        GroupError(
            workload.describe(group),
            int(sizes[group]),
            float(mean[group]),
            float(rms[group]),
            float(largest[group]),
            None if np.isnan(scales[group]) else float(scales[group]),
        )
        for group in order
    ]
    worst = []
    for place, group in enumerate(order[:DRAWN]):
        start, end = int(workload.offsets[group]), int(workload.offsets[group + 1])
        furthest = start + np.argsort(-error[start:end], kind="stable")[:CELLS]
        compared = [
            QueryComparison(workload.query(index), float(shares[0][index]), float(shares[1][index]))
            for index in furthest.tolist()
        ]
        worst.append((groups[place], tuple(compared)))
    each = np.repeat(scales, sizes)
    measured = ~np.isnan(each)
    any_measured = bool(measured.any())
    return WorkloadErrors(
        queries=len(error),
        mean=float(error.mean()),
        rms=_rms(error),
        largest=float(error.max()),
        noise=_rms(each[measured]) if any_measured else None,
        measured_rms=_rms(error[measured]) if any_measured else None,
        groups=tuple(groups),
        worst=tuple(worst),
    )


def noise_of(workload: Workload, measurements: Measurements | None) -> NDArray[np.float64]:
    """The standard deviation of each group's noise, as a share of the rows; NaN if not measured."""
    found = np.full(workload.num_groups, np.nan)
    if measurements is None:
        return found
    measured = measurements.workload
    known: dict[tuple[str, int], float] = {}
    # An adaptive run may have measured a group more than once: the smallest noise counts.
    for group, scale in enumerate(
        (measurements.scales / measurements.n_records / measured.max_contributions).tolist()
    ):
        name = measured.describe(group), int(measured.group_sizes[group])
        known[name] = min(scale, known.get(name, np.inf))
    for group in range(workload.num_groups):
        name = workload.describe(group), int(workload.group_sizes[group])
        found[group] = known.get(name, np.nan)
    return found


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
