"""One-shot: every group is measured once, with the same noise, and a table is made of all.

Layered is one-shot with more to measure: pairs of columns get most of the budget, and marginals of
three columns or more get the rest. Noise hides what three columns have in common long before it
hides pairs, and a triple that is measured alone says less of its pairs than the pairs themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from private_gsd.mechanisms.base import Mechanism, Plan
from private_gsd.mechanisms.candidates import with_pairs
from private_gsd.mechanisms.steps import measure, project
from private_gsd.privacy.allocation import group_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps
    from private_gsd.workloads import Workload

# The share of the budget that marginals of three columns or more get, where pairs are measured too.
UPPER = 0.2


@dataclass(frozen=True)
class OneShot(Mechanism):
    """Measures every query group once, with the same noise on all."""

    name: ClassVar[str] = "one-shot"

    @property
    def gaussian_noise_only(self) -> bool:
        """All noise is Gaussian."""
        return True

    def steps(self, task: Task) -> Steps:
        """Measure all groups, and project."""
        units = self.units(task)
        yield from measure("measure", range(task.workload.num_groups), units, stream=0)
        yield from project(0)

    def plan(self, task: Task) -> Plan:
        """Every group gets its part."""
        units = self.units(task)
        return Plan(sum(units), units, 1, 0.0, task.workload.num_groups)

    def units(self, task: Task) -> list[int]:
        """The part of the budget that each group gets."""
        return group_units(task.workload, task.budget, task.neighbours)


@dataclass(frozen=True)
class Layered(OneShot):
    """Measures pairs of columns with most of the budget, and marginals of more with the rest."""

    name: ClassVar[str] = "layered"

    def candidates(self, target: Workload) -> Workload:
        """The target workload, and the pairs in its marginals of three columns or more."""
        return with_pairs(target)

    def units(self, task: Task) -> list[int]:
        """The part of the budget that each group gets: the same noise on all of a layer."""
        layers = (_upper(task.workload), UPPER)
        return group_units(task.workload, task.budget, task.neighbours, layers)


def _upper(workload: Workload) -> NDArray[np.bool_]:
    """For each group, whether it is a marginal of three columns or more."""
    return np.concatenate(
        [
            [len(marginal.positions) > 2 for marginal in family.marginals]
            if family.marginals
            else np.zeros(len(family.group_sizes), dtype=np.bool_)
            for family in workload.families
        ]
    )
