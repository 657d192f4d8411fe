"""AIM: all columns, and then in rounds whatever promises most beyond the noise that it would have.

After McKenna, Mullins, Sheldon and Miklau, "AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data" (2022). Candidates are the marginals of the target workload
and all their parts. A round selects one by the exponential mechanism, measures it with Gaussian
noise, and projects all measurements anew. The score of candidate r is

    w_r · (‖M_r(D) - M_r(D')‖₁ - √(2/π) · σ_r · n_r)

with D' the table so far, σ_r the noise that r would get, n_r its cells, and w_r = Σ |r ∩ s| over
the marginals s of the target workload. A candidate may be measured again.

There are at most T = 16 d rounds for d columns. A round has a T-th of the budget, and a tenth of it
selects. Where the table's answers to what was measured moved by no more than noise would move them,
the next round has four times as much (σ is halved, ε doubled). A round that would leave less than
another one gets all that is left: the whole budget is spent, to the last unit. A candidate with
which a model would take more than its share of the largest allowed model is left out; the share is
the share of the budget that is spent. A single column is never left out.

The papers' M_r(D') are a graphical model's own answers. Here they are those of the table that the
projector made, so that any projector will do; a table of few rows adds its own coarseness.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError
from private_gsd.mechanisms.base import Plan
from private_gsd.mechanisms.candidates import all_parts, scopes_of, single_columns
from private_gsd.mechanisms.columns_first import COLUMNS, ColumnsFirst, equal_noise
from private_gsd.mechanisms.steps import Candidates, Table, measure, project, select
from private_gsd.privacy.noise import gaussian_scale, selection_scale
from private_gsd.privacy.selection import LARGEST_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps
    from private_gsd.workloads import Workload

ROUNDS = 16
# One part of a round's budget in so many selects.
SELECTING = 10


@dataclass(frozen=True)
class AIM(ColumnsFirst):
    """Measures all columns, and in rounds the marginals that are worth their noise."""

    name: ClassVar[str] = "aim"

    @property
    def warm_start(self) -> bool:
        """Each round starts from the table of the one before."""
        return True

    @property
    def selection_summary(self) -> str:
        """How groups are selected."""
        return (
            "all columns are measured, and in rounds what is farthest from the table so far, "
            "beyond the noise of the first round, with noise of {noise:,.3g} rows on their distance"
        )

    def candidates(self, target: Workload) -> Workload:
        """The target workload, and all parts of its marginals."""
        return all_parts(self.name, target)

    def steps(self, task: Task) -> Steps:
        """Measure columns and project; in each round select, measure and project."""
        spent, selecting, measuring = self.first_round(task)
        singles = list(range(single_columns(task.workload)))
        units = equal_noise(task, spent, singles)
        measured = yield from measure(COLUMNS, singles, units, stream=0)
        tables = [(yield from project(0))]
        chosen: list[int] = []
        while spent < task.budget.units:
            number = len(chosen) + 1
            step = f"round {number}"
            selecting, measuring = _paid(task, step) or next_round(
                task.budget.units - spent,
                selecting,
                measuring,
                still=bool(chosen) and _moved_little(task, measured, chosen[-1], tables),
            )
            spent += selecting + measuring
            worth = _worth_its_noise(task, tables[-1], chosen, spent, measuring)
            groups = yield from select(f"{step}: select", worth, units=selecting, stream=2 * number)
            measured = yield from measure(
                f"{step}: measure", groups, [measuring], stream=2 * number + 1
            )
            tables = [tables[-1], (yield from project(number, tables[-1]))]
            chosen += groups

    def plan(self, task: Task) -> Plan:
        """What columns get, and each candidate if the first round selects it."""
        number = single_columns(task.workload)
        columns, selecting, measuring = self.first_round(task)
        weights = weights_of(task.workload, task.target)
        changes = np.maximum(task.workload.absolute_sensitivities(task.neighbours), 1)
        bounds = [weight * int(change) for weight, change in zip(weights, changes, strict=True)]
        projections = 1 + (task.budget.units - columns) // (selecting + measuring)
        return Plan(
            task.budget.units,
            equal_noise(task, columns, list(range(number)))
            + [measuring] * (task.workload.num_groups - number),
            projections,
            selection_scale(selecting, 1, max(bounds)) / max(weights),
            number + projections / 2,
        )

    def first_round(self, task: Task) -> tuple[int, int, int]:
        """What all columns get together, and what the first round selects and measures with."""
        number = single_columns(task.workload)
        each = task.budget.units // (ROUNDS * number)
        selecting = each // SELECTING
        if selecting < 1:
            raise BudgetError(f"the budget is too small for {ROUNDS * number:,} rounds")
        return number * (each - selecting), selecting, each - selecting


def next_round(left: int, selecting: int, measuring: int, *, still: bool) -> tuple[int, int]:
    """What a round selects and measures with.

    Args:
        left: What is left of the budget.
        selecting: What the round before selected with.
        measuring: What the round before measured with.
        still: Whether the round before hardly moved the table.
    """
    if still:
        selecting, measuring = 4 * selecting, 4 * measuring
    if left < 2 * (selecting + measuring):
        selecting = max(left // SELECTING, 1)
        measuring = left - selecting
    return selecting, measuring


def _paid(task: Task, step: str) -> tuple[int, int] | None:
    """What a round that is done has paid for its selection and its measurement."""
    selecting, measuring = task.paid(f"{step}: select"), task.paid(f"{step}: measure")
    return None if selecting is None or measuring is None else (selecting, measuring)


def weights_of(workload: Workload, target: Workload) -> list[int]:
    """For each candidate, the number of columns that it shares with the target workload's."""
    times = Counter(scopes_of(target))
    weights = [
        sum(number * len(set(scope) & set(other)) for other, number in times.items())
        for scope in scopes_of(workload)
    ]
    common = math.gcd(*weights)
    largest = max(weights) // common
    # Only with very many questions: weights are then rounded, which does not touch privacy.
    return [max(1, w // common * LARGEST_WEIGHT // max(largest, LARGEST_WEIGHT)) for w in weights]


def _moved_little(task: Task, measured: Measurements, group: int, tables: list[Table]) -> bool:
    """Whether a round moved the answers to what it measured by no more than its noise would."""
    queries = task.workload.select([group])
    then, now = (count(queries, each.matrix) / len(each.matrix) for each in tables)
    moved = float(np.abs(now - then).sum()) * measured.n_records
    return moved <= math.sqrt(2 / math.pi) * float(measured.scales[-1]) * queries.size


def _worth_its_noise(
    task: Task, table: Table, chosen: list[int], spent: int, measuring: int
) -> Callable[[], Candidates]:
    """The candidates, to be selected by their distance beyond the noise that they would have."""
    workload = task.workload

    def answers() -> NDArray[np.float64]:
        shares: NDArray[np.float64] = count(workload, table.matrix) / len(table.matrix)
        return shares

    def worth() -> Candidates:
        groups = feasible(task, chosen, spent / task.budget.units)
        squares = workload.squared_sensitivities(task.neighbours)
        how = task.budget.conversion
        scales = {each: gaussian_scale(float(each) or 1.0, measuring, how) for each in set(squares)}
        noise = [scales[squares[group]] * int(workload.group_sizes[group]) for group in groups]
        weights = weights_of(workload, task.target)
        return Candidates(
            groups,
            answers,
            distance=True,
            weights=[weights[group] for group in groups],
            penalties=[math.sqrt(2 / math.pi) * each for each in noise],
        )

    return worth


def feasible(task: Task, chosen: list[int], share: float) -> list[int]:
    """The candidates with which a model stays small enough for the share of the budget spent."""
    everything = range(task.workload.num_groups)
    if task.why_infeasible is None:
        return list(everything)
    scopes = scopes_of(task.workload)
    known = sorted({*range(single_columns(task.workload)), *chosen})
    # What joins no columns that were not joined makes no model larger: single columns were measured
    # first, as finely as anything cuts them.
    joined = {pair for group in known for pair in combinations(scopes[group], 2)}
    return [
        group
        for group in everything
        if joined.issuperset(combinations(scopes[group], 2))
        or task.why_infeasible(task.workload.select([*known, group]), share) is None
    ]
