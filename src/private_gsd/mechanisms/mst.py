"""MST: all columns, and the pairs of a maximum spanning tree that is selected privately.

After McKenna, Miklau and Sheldon, "Winning the NIST Contest" (2021). A third of the budget measures
every column of the target workload, with the same noise; a third selects pairs, one by one, by the
exponential mechanism; a third measures these pairs. The score of a pair is the L1 distance, in
rows, between its true marginal and the marginal that it would have if its columns were independent,
with the shares that were measured. Pairs that would close a cycle are left out, so that d - 1 pairs
make a tree. One table is made of all measurements. With the projector "pgm" this is MST.

Rare values of a column are not merged, as the winner of the contest did: the domain stays the
schema's. Pairs that the projector could not take beside what was selected are left out too. If
pairs run out, the tree is smaller, and measuring gets what selecting did not spend.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from private_gsd.errors import MeasurementError, WorkloadError
from private_gsd.measurements.level_estimates import on_simplex
from private_gsd.mechanisms.base import Plan
from private_gsd.mechanisms.candidates import all_pairs, largest_tree, scopes_of, single_columns
from private_gsd.mechanisms.columns_first import COLUMNS, ColumnsFirst, equal_noise
from private_gsd.mechanisms.steps import Candidates, measure, project, select
from private_gsd.privacy.noise import selection_scale
from private_gsd.projection.denoising.chow_liu import SpanningTrees
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps
    from private_gsd.projection import Projector
    from private_gsd.workloads import Workload
    from private_gsd.workloads.features import Feature


@dataclass(frozen=True)
class MST(ColumnsFirst):
    """Measures all columns, and the pairs of a spanning tree that it selects."""

    name: ClassVar[str] = "mst"

    @property
    def selection_summary(self) -> str:
        """How pairs are selected."""
        return (
            "all columns are measured, and a tree of pairs that is selected by their distance from "
            "independent columns, with noise of {noise:,.3g} rows on their distance"
        )

    def candidates(self, target: Workload) -> Workload:
        """Every column of the target workload, and every pair of them that is not too large."""
        return all_pairs(self.name, target)

    def steps(self, task: Task) -> Steps:
        """Measure columns, select a tree, measure its pairs, project."""
        columns, selecting = self.allocate(task)
        singles = list(range(single_columns(task.workload)))
        units = equal_noise(task, columns, singles)
        measured = yield from measure(COLUMNS, singles, units, stream=0)
        tree: list[int] = []
        while True:
            number = len(tree) + 1
            edges = _edges(task, measured, tree)
            groups = yield from select(
                f"pair {number}: select", edges, units=selecting, stream=number
            )
            if not groups:
                break
            tree = [*tree, *groups]
        if not tree:
            raise MeasurementError("no pair of columns can be added to the columns")
        rest = task.budget.units - columns - len(tree) * selecting
        last = task.workload.num_groups
        yield from measure("pairs: measure", tree, equal_noise(task, rest, tree), stream=last)
        yield from project(0)

    def plan(self, task: Task) -> Plan:
        """What columns get, and each pair if it is selected."""
        number = single_columns(task.workload)
        columns, selecting = self.allocate(task)
        edges = tree_size(task.workload)
        rest = (task.budget.units - columns - edges * selecting) // edges
        changes = task.workload.absolute_sensitivities(task.neighbours)
        return Plan(
            task.budget.units,
            equal_noise(task, columns, list(range(number)))
            + [rest] * (task.workload.num_groups - number),
            1,
            selection_scale(selecting, 1, int(max(changes[number:].max(), 1))),
            2 * number,
        )

    def allocate(self, task: Task) -> tuple[int, int]:
        """What all columns get together, and what each selection gets."""
        edges = tree_size(task.workload)
        columns = task.budget.units // 3
        replace(task.budget, units=columns).split(
            [1.0] * edges
        )  # a budget that is too small is refused
        return columns, columns // edges

    def check(self, projector: Projector, workload: Workload, external: Workload | None) -> None:
        """Refuse where not even all columns fit, or no pair beside them."""
        super().check(projector, workload, external)
        if not self.needs_feasibility_checks(projector, workload):
            return
        columns = range(single_columns(workload))
        reason = None
        for pair in range(len(columns), workload.num_groups):
            some = workload.select([*columns, pair])
            reason = projector.why_infeasible(some if external is None else some + external)
            if reason is None:
                return
        if reason is not None:
            raise WorkloadError(f"{reason}. Ask less, or use another projector")

    def needs_feasibility_checks(
        self, projector: Projector, workload: Workload, external: Workload | None = None
    ) -> bool:
        """Not where the largest tree fits: one look spares thousands."""
        if not projector.has_size_limit or external is not None:
            return super().needs_feasibility_checks(projector, workload, external)
        # A graphical model of a tree has the cells of its pairs: if the tree with the most cells
        # fits, every tree does.
        largest = largest_tree(workload)
        columns = range(single_columns(workload))
        return projector.why_infeasible(workload.select([*columns, *largest])) is not None


def _edges(task: Task, measured: Measurements, tree: list[int]) -> Callable[[], Candidates]:
    """The pairs that close no cycle, to be selected by their distance from independence."""
    scopes = scopes_of(task.workload)
    number = single_columns(task.workload)
    trees = SpanningTrees()
    for group in tree:
        if group < number or not trees.add(scopes[group]):
            raise MeasurementError("the pairs that were selected are no tree")

    def edges() -> Candidates:
        groups = [g for g in range(number, task.workload.num_groups) if trees.joins(scopes[g])]
        if task.why_infeasible is not None:
            known = [*range(number), *tree]
            groups = [
                g for g in groups if task.why_infeasible(task.workload.select([*known, g])) is None
            ]
        return Candidates(
            groups, lambda: independent_shares(task.workload, measured), distance=True
        )

    return edges


def tree_size(workload: Workload) -> int:
    """The number of pairs in a spanning tree, or forest where they do not join all columns."""
    trees = SpanningTrees()
    return sum(trees.add(scope) for scope in scopes_of(workload) if len(scope) == 2)


def independent_shares(workload: Workload, measured: Measurements) -> NDArray[np.float64]:
    """What all queries would be if columns were independent, with the shares that were measured."""
    of_columns = column_shares(measured)
    found = []
    for group in workload.families[0].marginals:
        for table in group.tables:
            product = np.ones(1)
            for feature in table:
                if feature not in of_columns:  # cut points that this run has found anew, resumed
                    raise MeasurementError(
                        "the columns of this run were measured with other cut points than are "
                        "found now; resume it with the version of private-gsd that began it"
                    )
                product = np.multiply.outer(product, of_columns[feature])
            found.append(product.ravel())
    return np.minimum(np.concatenate(found), 1.0)


def column_shares(measured: Measurements) -> dict[Feature, NDArray[np.float64]]:
    """The probabilities of each single column that was measured, by its features."""
    measured_marginals = measured.workload.families[0].marginals
    found = {}
    for group, begin in zip(measured_marginals, measured.workload.offsets.tolist(), strict=False):
        starts = starts_of([table[0].size for table in group.tables]) + begin
        for (feature,), (first, last) in zip(group.tables, pairwise(starts.tolist()), strict=True):
            shares = measured.shares[first:last]
            found[feature] = nearest_probabilities(shares, exhaustive=not feature.has_gap)
    return found


def nearest_probabilities(shares: NDArray[np.float64], *, exhaustive: bool) -> NDArray[np.float64]:
    """The probabilities nearest to noisy shares.

    Args:
        shares: The noisy shares.
        exhaustive: Whether the probabilities add up to 1; otherwise they add up to 1 at most.
    """
    clipped = np.maximum(shares, 0.0)
    if not exhaustive and clipped.sum() <= 1:
        return clipped
    return on_simplex(shares)
