"""Adaptive: select the groups that the table so far answers worst, measure them, project; again.

Algorithm 2 of the paper. Where a projector cannot take every group (a graphical model grows), a
selection is made among the groups that it can take beside those that were measured. If none is left
the run ends there, with the table it has, and what the other epochs would have spent is not spent.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, ProjectionError, WorkloadError
from private_gsd.mechanisms.base import EndedEarlyWarning, Mechanism, Plan
from private_gsd.mechanisms.steps import Candidates, initial_table, measure, project, select
from private_gsd.privacy.noise import selection_scale
from private_gsd.workloads.checks import fraction, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps, Table
    from private_gsd.projection import Projector
    from private_gsd.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class Adaptive(Mechanism):
    """Measures, in each epoch, the query groups that the table so far answers worst.

    >>> Adaptive(epochs=25, queries_per_epoch=2).selection_fraction
    0.5

    Attributes:
        epochs: The number of epochs, T in the paper.
        queries_per_epoch: The number of query groups selected in an epoch, S in the paper.
        selection_fraction: The fraction of the budget that selects; the rest measures. With 0.5, as
            in the paper, each selection and each measurement gets ρ/(2TS).
    """

    epochs: int = 25
    queries_per_epoch: int = 1
    selection_fraction: float = 0.5

    name: ClassVar[str] = "adaptive"

    @property
    def warm_start(self) -> bool:
        """Each epoch starts from the table of the one before."""
        return True

    @property
    def selection_summary(self) -> str:
        """How groups are selected."""
        return (
            "{projections} epochs of {queries_per_epoch}, selected by their error with noise of "
            "{noise:,.3g} rows"
        )

    def __post_init__(self) -> None:
        for name in ("epochs", "queries_per_epoch"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, 2**20, BudgetError))
        share = fraction("selection_fraction", self.selection_fraction, BudgetError)
        object.__setattr__(self, "selection_fraction", share)

    def steps(self, task: Task) -> Steps:
        """In each epoch: select, measure, project."""
        selecting, measuring = self.allocate(task)
        table = yield from initial_table()
        known: list[int] = []
        for epoch, units in enumerate(measuring):
            groups = yield from select(
                f"epoch {epoch + 1}: select",
                _worst_answered(task, table, known, epoch),
                size=len(units),
                units=selecting[epoch],
                stream=2 * epoch,
            )
            if not groups:
                return
            yield from measure(f"epoch {epoch + 1}: measure", groups, units, stream=2 * epoch + 1)
            table = yield from project(epoch, table)
            known = [*known, *groups]

    def plan(self, task: Task) -> Plan:
        """What a group gets if it is selected in the first epoch."""
        selecting, measuring = self.allocate(task)
        return Plan(
            sum(selecting) + sum(map(sum, measuring)),
            [measuring[0][0]] * task.workload.num_groups,
            len(selecting),
            selection_scale(selecting[0], len(measuring[0]), task.most),
            (len(selecting) + 1) / 2 * self.queries_per_epoch,
        )

    def allocate(self, task: Task) -> tuple[list[int], list[list[int]]]:
        """What the selection of each epoch gets, and each of its measurements.

        There are no more epochs than it takes to measure everything.
        """
        if (task.workload.max_contributions != 1).any():
            raise BudgetError(
                "the adaptive mechanism selects by errors of counts, and cannot select sums; "
                "measure them one-shot"
            )
        sizes: list[int] = []
        left = task.workload.num_groups
        while left and len(sizes) < self.epochs:
            sizes.append(min(self.queries_per_epoch, left))
            left -= sizes[-1]
        measuring = (1 - self.selection_fraction) / self.selection_fraction
        weights = [*map(float, sizes), *([measuring] * sum(sizes))]
        units = iter(task.budget.split(weights))
        selecting = [next(units) for _ in sizes]
        return selecting, [[next(units) for _ in range(size)] for size in sizes]

    def check(self, projector: Projector, workload: Workload, external: Workload | None) -> None:
        """Refuse where what may be selected cannot be fitted."""
        everything = workload if external is None else workload + external
        if not projector.has_size_limit:
            # The largest groups that may be selected: whatever is selected is no larger.
            most = min(self.epochs * self.queries_per_epoch, everything.num_groups)
            largest = np.sort(np.argsort(-everything.group_sizes, kind="stable")[:most])
            reason = projector.why_infeasible(everything.select(largest))
            if reason is not None:
                raise WorkloadError(f"{reason}. Ask less, take fewer epochs, or another projector")
            return
        if self.queries_per_epoch > 1:
            # A part of what fits need not fit: groups are tried one by one.
            raise WorkloadError(
                f"the projector {projector.name!r} takes one query group an epoch; say "
                "queries_per_epoch=1"
            )
        if projector.why_infeasible(everything) is None:
            return
        each = [workload.select([group]) for group in range(workload.num_groups)]
        reasons = [
            projector.why_infeasible(one if external is None else one + external) for one in each
        ]
        if all(reasons):
            raise WorkloadError(f"no marginal alone is small enough: {reasons[0]}")

    def family_combinations(self, few: Workload) -> Iterator[Workload]:
        """All families, or any one of them."""
        yield few
        if few.num_groups > 1:
            for group in range(few.num_groups):
                yield few.select([group])


def _worst_answered(
    task: Task, table: Table, known: list[int], epoch: int
) -> Callable[[], Candidates]:
    """The groups not measured yet, to be selected by the largest error of a table's answers."""

    def answers() -> NDArray[np.float64]:
        shares: NDArray[np.float64] = count(task.workload, table.matrix) / len(table.matrix)
        return shares

    return lambda: Candidates(_feasible(task, known, epoch), answers)


def _feasible(task: Task, known: list[int], epoch: int) -> list[int]:
    """The groups not measured yet, of which a table can be made beside those that were."""
    left = [group for group in range(task.workload.num_groups) if group not in set(known)]
    if task.why_infeasible is None:
        return left
    reasons = {
        group: task.why_infeasible(task.workload.select([*sorted(known), group])) for group in left
    }
    feasible = [group for group in left if reasons[group] is None]
    if not feasible:
        words = (
            f"none of the {len(left):,} groups that are left can be added to the "
            f"{len(known):,} that were measured: {reasons[left[0]]}"
        )
        if not known:
            raise ProjectionError(words)
        warnings.warn(
            f"the run ended after {epoch} epochs and cancelled what it had not spent; {words}. "
            "Take fewer epochs",
            EndedEarlyWarning,
            stacklevel=2,
        )
    return feasible
