"""Columns first: what MST, AIM and strongest pairs share. They measure columns, then select."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.mechanisms.base import Mechanism
from private_gsd.mechanisms.candidates import single_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.mechanisms.base import Task
    from private_gsd.projection import Projector
    from private_gsd.workloads import Workload

# The step that measures the columns.
COLUMNS = "columns: measure"


class ColumnsFirst(Mechanism):
    """A mechanism that measures all single columns, and then marginals that it selects."""

    @property
    def needs_single_columns(self) -> bool:
        """Their marginals are candidates."""
        return True

    def always_measured(self, workload: Workload) -> Workload:
        """Single columns alone."""
        return workload.select(range(single_columns(workload)))

    def check(self, projector: Projector, workload: Workload, external: Workload | None) -> None:
        """Refuse where not even all columns fit."""
        columns = self.always_measured(workload)
        reason = projector.why_infeasible(columns if external is None else columns + external)
        if reason is not None:
            raise WorkloadError(f"{reason}. Ask less, or use another projector")

    def needs_feasibility_checks(
        self, projector: Projector, workload: Workload, external: Workload | None = None
    ) -> bool:
        """Where the projector may not take all candidate queries together."""
        if projector.has_size_limit:
            return True
        everything = workload if external is None else workload + external
        return projector.why_infeasible(everything) is not None


def equal_noise(task: Task, units: int, groups: Sequence[int]) -> list[int]:
    """Split units over groups so that all of their counts get the same noise."""
    squares = task.workload.squared_sensitivities(task.neighbours)[list(groups)]
    parts = replace(task.budget, units=units).split(np.where(squares > 0, squares, 1.0).tolist())
    parts[-1] += units - sum(parts)  # what rounding down has left
    return parts
