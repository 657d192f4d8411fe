"""Query errors: differences between the exact counts of two tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.counting.exact import ExactCounts, exact_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.workloads import Workload


@dataclass(frozen=True)
class QueryErrors:
    """Differences between the counts of two tables, as shares of their rows.

    Attributes:
        max: The largest difference.
        mean: The mean difference.
        rms: The root of the mean squared difference.
    """

    max: float
    mean: float
    rms: float


def query_errors(workload: Workload, one: Any, other: Any, **options: Any) -> QueryErrors:
    """Compare two tables on a workload. Without noise: the result is as sensitive as the tables.

    Args:
        workload: The queries.
        one: A table, or its ``ExactCounts`` of this workload.
        other: Another table, or its ``ExactCounts``.
        options: Further arguments of ``exact_counts``.
    """
    shares = []
    for table in (one, other):
        exact = (
            table if isinstance(table, ExactCounts) else exact_counts(workload, table, **options)
        )
        if exact.workload is not workload:
            raise ValueError("these exact counts belong to another workload")
        shares.append(shares_of(exact))
    return share_errors(*shares)


def errors_of(exact: ExactCounts, shares: NDArray[np.float64]) -> QueryErrors:
    """The errors of shares against exact counts; the result is as sensitive as the counts."""
    return share_errors(shares_of(exact), shares)


def shares_of(exact: ExactCounts) -> NDArray[np.float64]:
    """For every query, the share of the records that meet it; as sensitive as the counts."""
    found: NDArray[np.float64] = exact.counts / (exact.n_records * exact.weight)
    return found


def share_errors(one: NDArray[np.float64], other: NDArray[np.float64]) -> QueryErrors:
    """The errors between two vectors of shares."""
    difference = np.abs(one - other)
    return QueryErrors(
        max=float(difference.max()),
        mean=float(difference.mean()),
        rms=float(np.sqrt(np.mean(difference**2))),
    )
