"""Allocation: how a budget is split over query groups, and the noise scale of each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.privacy.budget import RhoBudget, units_to_rho
from private_gsd.privacy.noise import gaussian_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.workloads import Neighbours, Workload


@dataclass(frozen=True)
class GroupAllocation:
    """The part of a budget that one query group gets.

    Attributes:
        group: The number of the group in the workload.
        name: The group in words.
        queries: The number of its queries.
        units: The part of the budget that the group gets, in units of 2^-52 of ρ.
        scale: The standard deviation of the noise on each of its counts, in records.
    """

    group: int
    name: str
    queries: int
    units: int
    scale: float


@dataclass(frozen=True)
class Allocation:
    """A budget, split over all groups of a workload.

    >>> from private_gsd import datasets, workloads
    >>> workload = workloads.categorical_marginals(datasets.census_schema(), k=1)
    >>> print(allocate(workload, RhoBudget.from_epsilon(1, delta=1e-9)).describe(limit=2))
    rho = 0.01497 (epsilon = 1 at delta = 1e-09), replace-one neighbours, 14 groups
       rho     noise  queries  group
      0.00107  30.58       12  region
      0.00107  30.58        2  sex
      ... and 12 more

    Attributes:
        budget: The budget that is split.
        neighbours: The neighbouring relation.
        groups: The part of each group, in the order of the workload.
    """

    budget: RhoBudget
    neighbours: Neighbours
    groups: tuple[GroupAllocation, ...]

    @property
    def units(self) -> list[int]:
        """The part of each group, in the order of the workload."""
        return [group.units for group in self.groups]

    def describe(self, limit: int = 20) -> str:
        """The allocation as text, with the groups of the most noise first."""
        lines = [
            f"rho = {self.budget.rho:.4g} (epsilon = {self.budget.epsilon:.4g} at delta = "
            f"{self.budget.delta:.4g}), {self.neighbours} neighbours, {len(self.groups):,} groups",
            "   rho     noise  queries  group",
        ]
        ordered = sorted(self.groups, key=lambda group: -group.scale)
        for group in ordered[:limit]:
            rho = units_to_rho(group.units)
            lines.append(f"  {rho:<8.3g} {group.scale:5.4g} {group.queries:8,}  {group.name}")
        if len(ordered) > limit:
            lines.append(f"  ... and {len(ordered) - limit:,} more")
        return "\n".join(lines)


def allocate(
    workload: Workload, budget: RhoBudget, *, neighbours: Neighbours = "replace-one"
) -> Allocation:
    """Split a budget over all groups of a workload, so that all counts get the same noise.

    Args:
        workload: The queries to be measured.
        budget: The budget that is split.
        neighbours: The neighbouring relation.
    """
    groups = tuple(
        GroupAllocation(
            group,
            workload.describe(group),
            int(queries),
            units,
            gaussian_scale(square, units, budget.conversion),
        )
        for group, (queries, units, square) in enumerate(
            zip(
                workload.group_sizes,
                group_units(workload, budget, neighbours),
                _squares(workload, neighbours).tolist(),
                strict=True,
            )
        )
    )
    return Allocation(budget, neighbours, groups)


def group_units(
    workload: Workload,
    budget: RhoBudget,
    neighbours: Neighbours,
    layers: tuple[NDArray[np.bool_], float] | None = None,
    favoured: NDArray[np.bool_] | None = None,
) -> list[int]:
    """The part of a budget that each group of a workload gets, for the same noise on all counts.

    Each part is in proportion to the group's squared sensitivity, as if the workload were measured
    as one vector. The noise of a sum is the same relative to the largest contribution of one row.

    Args:
        workload: The queries to be measured.
        budget: The budget that is split.
        neighbours: The neighbouring relation.
        layers: A mask of the groups of the first layer, and the fraction of the budget that this
            layer gets. Noise is then the same within each of the two layers. If all groups are
            in one layer, that layer gets the whole budget.
        favoured: A mask of the groups that get half of what all others of their layer would get, in
            addition to their own.
    """
    weights = _squares(workload, neighbours) / workload.max_contributions**2
    parts = [np.ones(len(weights), dtype=np.bool_)]
    if layers is not None:
        some, fraction = layers
        parts = [some, ~some]
        if some.any() and not some.all():
            for mine, part in ((some, fraction), (~some, 1 - fraction)):
                weights[mine] *= part / weights[mine].sum()
    if favoured is not None:
        for layer in parts:
            mine, others = layer & favoured, layer & ~favoured
            if mine.any():
                weights[others] /= 2
                weights[mine] *= 1 + weights[others].sum() / weights[mine].sum()
    return budget.split(weights.tolist())


def _squares(workload: Workload, neighbours: Neighbours) -> NDArray[np.float64]:
    """Squared sensitivities; 0 is treated as if it were 1, as ``measuring`` does."""
    squares = workload.squared_sensitivities(neighbours)
    return np.where(squares > 0, squares, 1.0)
