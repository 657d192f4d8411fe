"""One-shot: every group is measured once, with the same noise, and a table is made of all.

Layered is one-shot with more to measure: pairs of columns get most of the budget, and marginals of
three columns or more get the rest. Noise hides what three columns have in common long before it
hides pairs, and a triple that is measured alone says less of its pairs than the pairs themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import BudgetError
from private_gsd.mechanisms.base import Mechanism, Plan
from private_gsd.mechanisms.candidates import with_pairs
from private_gsd.mechanisms.steps import measure, project
from private_gsd.privacy.allocation import group_units

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps
    from private_gsd.workloads import Workload

    Layers = tuple[NDArray[np.bool_], float]

# The share of the budget that marginals of three columns or more get, where pairs are measured too.
UPPER = 0.2


@dataclass(frozen=True)
class OneShot(Mechanism):
    """Measures every query group once, with the same noise on all, or less on some.

    Attributes:
        for_models: The column that models will predict: its marginals with other columns get half
            of the budget of all others. None for the same noise on all.
    """

    for_models: str | None = None

    name: ClassVar[str] = "one-shot"

    def __post_init__(self) -> None:
        if not isinstance(self.for_models, str | None):
            raise BudgetError(f"for_models is the name of a column, not {self.for_models!r:.80}")

    @property
    def gaussian_noise_only(self) -> bool:
        """All noise is Gaussian."""
        return True

    @property
    def emphasis(self) -> str:
        """What the column to be predicted gets."""
        if self.for_models is None:
            return ""
        return (
            f"marginals with {self.for_models} get half of what all others would have, in addition "
            "to their own"
        )

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
        workload, layers = task.workload, self._layers(task.workload)
        favoured = None if self.for_models is None else with_column(workload, self.for_models)
        return group_units(workload, task.budget, task.neighbours, layers, favoured)

    def _layers(self, workload: Workload) -> Layers | None:  # noqa: ARG002
        """Some groups, and the fraction of the budget that they get; None for the same noise."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, for JSON; as before there were any, where none is given."""
        found = super().to_dict()
        return {key: value for key, value in found.items() if value is not None}


@dataclass(frozen=True)
class Layered(OneShot):
    """Measures pairs of columns with most of the budget, and marginals of more with the rest."""

    name: ClassVar[str] = "layered"

    def candidates(self, target: Workload) -> Workload:
        """The target workload, and the pairs in its marginals of three columns or more."""
        return with_pairs(target)

    def _layers(self, workload: Workload) -> Layers:
        """Marginals of three columns or more."""
        return _upper(workload), UPPER


def with_column(workload: Workload, name: str) -> NDArray[np.bool_]:
    """For each group, whether it is a marginal of a column with others.

    Args:
        workload: The workload.
        name: The name of the column.
    """
    place = workload.schema.names.index(name)
    return _marginals_that(workload, lambda positions: len(positions) > 1 and place in positions)


def _upper(workload: Workload) -> NDArray[np.bool_]:
    """For each group, whether it is a marginal of three columns or more."""
    return _marginals_that(workload, lambda positions: len(positions) > 2)


def _marginals_that(
    workload: Workload, wanted: Callable[[tuple[int, ...]], bool]
) -> NDArray[np.bool_]:
    """For each group, whether it is a marginal of such columns."""
    return np.concatenate(
        [
            [wanted(marginal.positions) for marginal in family.marginals]
            if family.marginals
            else np.zeros(len(family.group_sizes), dtype=np.bool_)
            for family in workload.families
        ]
    )
