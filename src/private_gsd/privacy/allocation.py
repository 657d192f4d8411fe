"""Plan: who gets what of a budget, and how much noise that means, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import RhoBudget, units_to_rho
from private_gsd.privacy.noise import gaussian_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.workloads import Neighbours, Workload

Allocation = Literal["equal-noise", "equal-budget"]


@dataclass(frozen=True)
class Share:
    """What one group gets.

    Attributes:
        group: The number of the group in the workload.
        name: The group in words.
        queries: How many queries it has.
        units: Its part of the budget.
        scale: The standard deviation of the noise on each of its counts, in rows.
    """

    group: int
    name: str
    queries: int
    units: int
    scale: float


@dataclass(frozen=True)
class Plan:
    """A one-shot measurement of a whole workload.

    >>> from private_gsd import datasets, workloads
    >>> workload = workloads.categorical_marginals(datasets.census_schema(), k=1)
    >>> print(plan_one_shot(workload, RhoBudget.from_epsilon(1, delta=1e-9)).describe(limit=2))
    rho = 0.01497 (epsilon = 1 at delta = 1e-09), replace-one neighbours, 14 groups
       rho     noise  queries  group
      0.00107  30.58       12  region
      0.00107  30.58        2  sex
      ... and 12 more

    Attributes:
        budget: What there is to spend.
        neighbours: Which tables count as neighbours.
        shares: What each group gets.
    """

    budget: RhoBudget
    neighbours: Neighbours
    shares: tuple[Share, ...]

    @property
    def units(self) -> list[int]:
        """The parts, in the order of the groups."""
        return [share.units for share in self.shares]

    def describe(self, limit: int = 20) -> str:
        """The plan as text; the groups with the least noise come last."""
        lines = [
            f"rho = {self.budget.rho:.4g} (epsilon = {self.budget.epsilon:.4g} at delta = "
            f"{self.budget.delta:.4g}), {self.neighbours} neighbours, {len(self.shares):,} groups",
            "   rho     noise  queries  group",
        ]
        ordered = sorted(self.shares, key=lambda share: -share.scale)
        for share in ordered[:limit]:
            rho = units_to_rho(share.units)
            lines.append(f"  {rho:<8.3g} {share.scale:5.4g} {share.queries:8,}  {share.name}")
        if len(ordered) > limit:
            lines.append(f"  ... and {len(ordered) - limit:,} more")
        return "\n".join(lines)


def plan_one_shot(
    workload: Workload,
    budget: RhoBudget,
    *,
    neighbours: Neighbours = "replace-one",
    allocation: Allocation = "equal-noise",
    layers: tuple[NDArray[np.bool_], float] | None = None,
) -> Plan:
    """Split a budget over all groups of a workload.

    Args:
        workload: What is to be measured.
        budget: What there is to spend.
        neighbours: Which tables count as neighbours.
        allocation: "equal-noise" gives each group a part in proportion to its squared sensitivity,
            so that all counts get the same noise, as if the workload were measured as one vector
            (sums get the same in units of what one row can move them);
            "equal-budget" gives each the same part.
        layers: Some of the groups, and how much of the budget they get together, where there are
            others.
    """
    if allocation not in get_args(Allocation):
        raise BudgetError(f"allocation must be 'equal-noise' or 'equal-budget', not {allocation!r}")
    squares = workload.squared_sensitivities(neighbours)
    # What no neighbour can change is treated as if one could, here as when it is measured.
    squares = np.where(squares > 0, squares, 1.0)
    weights = squares / workload.units**2 if allocation == "equal-noise" else np.ones_like(squares)
    if layers is not None:
        some, share = layers
        if some.any() and not some.all():
            for mine, part in ((some, share), (~some, 1 - share)):
                weights[mine] *= part / weights[mine].sum()
    shares = tuple(
        Share(
            group,
            workload.describe(group),
            int(queries),
            units,
            gaussian_scale(square, units, budget.conversion),
        )
        for group, (queries, units, square) in enumerate(
            zip(workload.group_sizes, budget.split(weights.tolist()), squares.tolist(), strict=True)
        )
    )
    return Plan(budget, neighbours, shares)
