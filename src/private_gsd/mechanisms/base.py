"""The mechanism: how a budget is spent, as a frozen value that plans and yields its steps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.mechanisms.cut_marginals import CELLS
from private_gsd.privacy.noise import gaussian_scale
from private_gsd.schema.neighbours import records_are_public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.mechanisms.steps import Steps
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.projection import Projector
    from private_gsd.workloads import Neighbours, Workload

# The fraction of the budget that measures the number of records, where that number is not public.
COUNTING_FRACTION = 0.02


class EndedEarlyWarning(UserWarning):
    """An adaptive run ended before its last epoch and cancelled what it had not spent."""


class WhyInfeasible(Protocol):
    """Says why a projector cannot make a table of some groups together; None if it can."""

    def __call__(self, groups: Workload, share: float = 1.0) -> str | None:
        """Look at public facts alone.

        Args:
            groups: The groups.
            share: The share of the largest allowed model that they may take.
        """


@dataclass(frozen=True)
class Task:
    """What a mechanism is to do. All of it is public.

    Attributes:
        workload: The candidate queries: what may be measured (see ``Mechanism.candidates``).
        target: The target workload: what the user asked for.
        budget: What may be spent.
        neighbours: The neighbour relation.
        why_infeasible: Where a projector cannot take all groups together: says why not.
        paid: What a step of this run has paid, by its name; None where it has not paid.
        n_records: The number of records, public or measured, or a guess; None before it is known.
    """

    workload: Workload
    target: Workload
    budget: RhoBudget
    neighbours: Neighbours = "replace-one"
    why_infeasible: WhyInfeasible | None = None
    paid: Callable[[str], int | None] = lambda _: None
    n_records: int | None = None

    @property
    def most(self) -> int:
        """The most that the unit of protection counts: 1, or K where each of K rows counts one."""
        unit = self.workload.schema.unit
        return 1 if unit is None else unit.most

    @property
    def records_are_public(self) -> bool:
        """Whether the number of records is public, and need not be measured."""
        return records_are_public(self.neighbours, self.workload.schema.unit)


class SelectedPairs(NamedTuple):
    """Pairs of columns that are selected, and are not candidates one by one.

    Attributes:
        candidates: The number of pairs to select from.
        left_out: The number of pairs that are not selected from, since they have too many cells.
        size: The number of pairs that are selected.
        noise: The noise on a count of a selected pair, about.
        joined: The names of columns of many categories, of which rare ones are joined in pairs.
    """

    candidates: int
    left_out: int
    size: int
    noise: float
    joined: tuple[str, ...] = ()


class JointCells(NamedTuple):
    """A joint table of all columns that is measured beside marginals.

    Attributes:
        columns: The number of columns.
        cells: The number of cells.
        noise: The noise on a count of a cell.
    """

    columns: int
    cells: int
    noise: float


class Plan(NamedTuple):
    """What a mechanism does with a budget, as far as that is known before.

    Attributes:
        total: What is spent at most, in units.
        units: For each candidate group, what measuring it would get (the first time).
        projections: The largest number of tables that are made.
        selection_noise: The scale of the noise that a selection adds to an error in rows; 0 where
            nothing is selected.
        fitted_groups: The mean number of groups that a table is fitted to.
        pairs: Pairs that are selected beside the candidate queries; None where there are none.
        joint: The joint table of all columns among the candidate queries; None where it is not
            measured.
    """

    total: int
    units: list[int]
    projections: int
    selection_noise: float
    fitted_groups: float
    pairs: SelectedPairs | None = None
    joint: JointCells | None = None


class Mechanism(ABC):
    """How a budget is spent: a frozen dataclass, whose fields are its settings.

    A subclass has a ``name``, plans what it will spend, and yields its steps (see ``steps``). The
    name and the noise stream of every step must be unique within a run: a resumed run finds its
    steps by them. A mechanism draws no random numbers of its own; one that needs some takes a seed
    as a setting, so that a resumed run draws the same.
    """

    name: ClassVar[str]

    @property
    def selection_summary(self) -> str:
        """How groups are selected, with fields for numbers; empty where all are measured."""
        return ""

    @property
    def selection_settings(self) -> dict[str, Any]:
        """The fields of the summary of selections that are settings."""
        return self.to_dict()

    @property
    def emphasis(self) -> str:
        """What gets less noise than the rest, in words; empty where nothing does."""
        return ""

    @property
    def gaussian_noise_only(self) -> bool:
        """Whether all of its noise is Gaussian, so that the conversion "gdp" holds."""
        return False

    @property
    def warm_start(self) -> bool:
        """Whether its projections start from a table."""
        return False

    @property
    def needs_single_columns(self) -> bool:
        """Whether it selects marginals of the single columns in a target workload."""
        return False

    @property
    def column_levels(self) -> Sequence[int]:
        """Which cells of a number its single column has, among those that marginals have."""
        return range(len(CELLS))

    def counted_first(self, workload: Workload) -> Workload:
        """The candidate queries that are counted before the first step: the first groups, or all.

        Args:
            workload: The candidate queries.
        """
        return workload

    def counts_at_once(self, workload: Workload) -> bool:
        """Whether the data is read once, for all candidate queries.

        Args:
            workload: The candidate queries.
        """
        return self.counted_first(workload) is workload

    def projected(self, workload: Workload) -> Workload:
        """The candidate queries that a projector looks at."""
        return workload

    def candidates(self, target: Workload) -> Workload:
        """The candidate queries for a target workload: what may be measured."""
        return target

    def always_measured(self, workload: Workload) -> Workload:
        """The candidate queries that every run measures."""
        return workload

    @abstractmethod
    def plan(self, task: Task) -> Plan:
        """What the run will spend, and on what; refuses a budget that is too small."""

    @abstractmethod
    def steps(self, task: Task) -> Steps:
        """The steps of the run, in order; see ``steps``."""

    def check(self, projector: Projector, workload: Workload, external: Workload | None) -> None:
        """Refuse candidate queries of which the projector could make no table.

        Args:
            projector: The projector.
            workload: The candidate queries.
            external: The queries of external measurements, which are used as well.
        """
        reason = projector.why_infeasible(workload if external is None else workload + external)
        if reason is not None:
            raise WorkloadError(
                f"{reason}. Ask less, use the adaptive mechanism, which selects some of it, or "
                "another projector"
            )

    def needs_feasibility_checks(
        self, projector: Projector, workload: Workload, external: Workload | None = None
    ) -> bool:
        """Whether a selection must ask the projector what it can take. See ``check``."""
        del workload, external
        return projector.has_size_limit

    def family_combinations(self, few: Workload) -> Iterator[Workload]:
        """The combinations of families that one table may be fitted to.

        Args:
            few: One group of each family.
        """
        yield few

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, for JSON."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


def reserved_for_counting(task: Task) -> tuple[int, RhoBudget]:
    """What measuring the number of records gets, where it is not public, and the rest."""
    budget = task.budget
    if task.records_are_public:
        return 0, budget
    counting, _ = budget.split([COUNTING_FRACTION, 1 - COUNTING_FRACTION])
    return counting, replace(budget, units=budget.units - counting)


def noise_scales(task: Task, units: Sequence[int]) -> NDArray[np.float64]:
    """The standard deviation of the noise on a count of each candidate group, in rows.

    Args:
        task: The task.
        units: What each group gets; what gets nothing is all noise.
    """
    squares = task.workload.squared_sensitivities(task.neighbours).tolist()
    pairs = list(zip(squares, units, strict=True))
    how = task.budget.conversion
    # What no neighbour can change (a table of one cell) is treated as if one could.
    known = {
        (square, each): gaussian_scale(square or 1.0, each, how) if each else math.inf
        for square, each in set(pairs)
    }
    return np.array([known[pair] for pair in pairs])


def plan_run(mechanism: Mechanism, task: Task) -> Plan:
    """The plan of a whole run, the measurement of the number of records included."""
    counting, rest = reserved_for_counting(task)
    plan = mechanism.plan(replace(task, budget=rest))
    return plan._replace(total=counting + plan.total)
