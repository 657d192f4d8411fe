"""One-shot: every group is measured once, and a table is made of all.

Layered is the same with more to measure (``candidates``): pairs of columns get most of the budget,
and marginals of more the rest. Noise drowns what three columns have in common long before it drowns
pairs, and triples that are measured alone tell less of their pairs than these do themselves.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import MeasurementError
from private_gsd.measurements.measurements import measure
from private_gsd.mechanisms.base import Outcome
from private_gsd.privacy.allocation import plan_one_shot
from private_gsd.workloads import Marginals

if TYPE_CHECKING:
    from private_gsd.mechanisms.base import Mechanism, Run
    from private_gsd.privacy.allocation import Plan
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.privacy.measuring import NoisyTotal
    from private_gsd.workloads import Neighbours, Workload

# What marginals of three columns or more get of the budget, where others are measured, too.
UPPER = 0.2


def plan_of(
    mechanism: Mechanism,
    workload: Workload,
    budget: RhoBudget,
    neighbours: Neighbours = "replace-one",
) -> Plan:
    """What each group gets of the budget: the same noise on all, or on all of a layer.

    Args:
        mechanism: "one-shot" or "layered".
        workload: What is measured (see ``measurable``).
        budget: What there is to spend.
        neighbours: Which tables count as neighbours.
    """
    if mechanism.name == "one-shot":
        return plan_one_shot(workload, budget, neighbours=neighbours)
    upper = np.concatenate(
        [
            [len(group.positions) > 2 for group in family.groups]
            if isinstance(family, Marginals)
            else np.zeros(len(family.group_sizes), dtype=np.bool_)
            for family in workload.families
        ]
    )
    return plan_one_shot(workload, budget, neighbours=neighbours, layers=(upper, UPPER))


def run_one_shot(mechanism: Mechanism, what: Run, total: NoisyTotal | None) -> Outcome:
    """Measure everything, and project once."""
    measured = what.checkpoint.measurements()
    if measured is None and what.checkpoint.table(0) is not None:
        raise MeasurementError("the measurements are gone, and a table of them is there")
    if measured is None:
        plan = plan_of(mechanism, what.workload, what.budget, what.neighbours)
        measured = measure(
            what.exact(),
            range(what.workload.num_groups),
            plan.units,
            accountant=what.pay("measure"),
            noise=what.noise(0),
            neighbours=what.neighbours,
            rows=total,
        )
        what.checkpoint.keep_measurements(measured, partial(what.keep, "measure"))
    else:
        what.check(["measure"], "measurements")
    table = what.checkpoint.table(0)
    if table is None:
        table = what.project(measured, None, 0)
        what.checkpoint.keep_table(0, table)
    return Outcome(measured, table)
