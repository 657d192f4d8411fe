"""Precompilation: the kernels of a run are compiled or loaded before anything is paid for.

The kernels of a family are the same for all of its queries. So one group of each family is taken,
with made-up answers. Neither the data nor its size is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.system.operating_system import cores
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.workloads import Workload


def precompile(
    mechanism: Mechanism,
    workload: Workload,
    prepare: Callable[[Measurements], object],
    beside: Workload | None = None,
) -> None:
    """Prepare all projections of a run, and the counting between them.

    Args:
        mechanism: The mechanism.
        workload: The candidate queries.
        prepare: Prepares a projection of measurements of these families.
        beside: The queries of knowledge beside the measurements.
    """
    few = one_of_each_family(workload)
    known = None if beside is None else one_of_each_family(beside)
    for fitted in mechanism.family_combinations(few):
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
    # A projected table is counted in column order, an initial table in row order.
    columns = columns_of(few.schema, [np.empty(0)] * len(few.schema))
    table = random_table(columns, 2 * cores(), 0)
    for matrix in (table, np.asfortranarray(table)):
        count(few, matrix)


def one_of_each_family(workload: Workload) -> Workload:
    """The first group of each family."""
    first_groups = starts_of([len(family.group_sizes) for family in workload.families])[:-1]
    return workload.select(first_groups)
