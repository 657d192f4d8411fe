"""One-shot: every group is measured once, and a table is made of all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from private_gsd.errors import MeasurementError
from private_gsd.measurement import measure
from private_gsd.mechanism.terms import Outcome
from private_gsd.privacy.plan import plan_one_shot

if TYPE_CHECKING:
    from private_gsd.mechanism.terms import Run
    from private_gsd.privacy.release import NoisyTotal


def run_one_shot(what: Run, total: NoisyTotal | None) -> Outcome:
    """Measure everything with the same noise, and project once."""
    measured = what.checkpoint.measurements()
    if measured is None and what.checkpoint.table(0) is not None:
        raise MeasurementError("the measurements are gone, and a table of them is there")
    if measured is None:
        plan = plan_one_shot(what.workload, what.budget, neighbours=what.neighbours)
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
