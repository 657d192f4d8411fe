"""Rehearsal: what a run will need is loaded or compiled before anything is paid for.

Kernels are the same for all queries of a family. So one group of each family is taken, with made-up
answers: neither the data nor its size is looked at.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Callable

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
        mechanism: The mechanism.
        workload: The candidate queries.
        prepare: Prepares a search for such measurements.
        beside: Queries of what is known without being measured.
    """
    few = one_of_each_family(workload)
    known = None if beside is None else one_of_each_family(beside)
    for fitted in mechanism.fitted_together(few):
        everything = fitted if known is None else fitted + known
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


def one_of_each_family(workload: Workload) -> Workload:
    """The first group of each family."""
    first_groups = starts_of([len(family.group_sizes) for family in workload.families])[:-1]
    return workload.select(first_groups)
