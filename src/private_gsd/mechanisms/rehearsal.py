"""Rehearsing: what a run will need is loaded or compiled before anything is paid for.

Kernels are the same for all queries of a kind. So one query of each kind is taken, with made-up
answers: neither the data nor its size is looked at.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.domain import columns_of, random_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.workloads import Workload


def rehearse(
    mechanism: Mechanism,
    workload: Workload,
    prepare: Callable[[Measurements], object],
    beside: Workload | None = None,
) -> None:
    """Prepare all searches of a run, and the counting between them.

    Args:
        mechanism: How the budget is spent.
        workload: What may be measured.
        prepare: Prepares a search for such measurements.
        beside: What is known without being measured.
    """
    few = one_of_each_kind(workload)
    known = None if beside is None else one_of_each_kind(beside)
    for asked in measured_together(mechanism, few):
        everything = asked if known is None else asked + known
        prepare(
            Measurements(
                everything,
                np.zeros(everything.size),
                np.ones(everything.num_groups),
                1000,
                ("",) * everything.num_groups,
                private=False,
            )
        )
    # Tables are counted as they come from a search, column by column, and as they begin.
    columns = columns_of(few.schema, [np.empty(0)] * len(few.schema))
    table = random_table(columns, 2 * len(os.sched_getaffinity(0)), 0)
    for matrix in (table, np.asfortranarray(table)):
        count(few, matrix)


def one_of_each_kind(workload: Workload) -> Workload:
    """The first group of each family."""
    sizes = [len(family.group_sizes) for family in workload.families]
    return workload.select(np.cumsum([0, *sizes[:-1]]))


def measured_together(mechanism: Mechanism, workload: Workload) -> Iterator[Workload]:
    """The kinds of queries that a search may be for: all, or any one where groups are selected."""
    yield workload
    if mechanism.name == "adaptive" and workload.num_groups > 1:
        for group in range(workload.num_groups):
            yield workload.select([group])
