"""Numbers first: fine histograms of the numeric columns, and then another mechanism.

A part of the budget measures every numeric column by itself, level by level: cells that hold enough
are split at the next level, down to single values (see ``measurements.column_distributions``). The
marginals of the target workload are then cut where the data is: numeric columns have cells of about
the same mass, and values that many rows share have cells of their own. The rest of the budget goes
to another mechanism, which measures these marginals. Within a cell, the values of the synthetic
table have the distribution that the histograms show (see ``projection.within_cells``).

Each level is one partition of the column, so that its cost is that of one histogram. What the
levels do not need goes to the other mechanism, or to the finest cells where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import BudgetError, expect_type
from private_gsd.measurements.column_distributions import column_distributions, without_histograms
from private_gsd.measurements.measurements import Measurements
from private_gsd.mechanisms.base import Mechanism, Plan, noise_scales
from private_gsd.mechanisms.candidates import of_fewest_columns, scopes_of
from private_gsd.mechanisms.cut_marginals import (
    CELL_NOISE,
    CELLS,
    JOINT_CELLS,
    cut,
    even_cells,
    most_atoms,
    without_single_numbers,
)
from private_gsd.mechanisms.one_shot import OneShot
from private_gsd.mechanisms.steps import Measure, Select, measure, project
from private_gsd.schema import Numeric
from private_gsd.workloads import CELL_LIMIT, Family, Marginals, Workload
from private_gsd.workloads.checks import fraction
from private_gsd.workloads.features import Feature
from private_gsd.workloads.grids import MOST_LEVELS, Grid
from private_gsd.workloads.histograms import (
    Histograms,
    first_histograms,
    histogram_feature,
    numeric_positions,
)
from private_gsd.workloads.marginals import Marginal
from private_gsd.workloads.patterns import Patterns, patterns_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Step, Steps
    from private_gsd.projection import Projector
    from private_gsd.schema import Schema

# The fraction of the budget that histograms get, where marginals of several columns follow.
FRACTION = 0.2
# The largest number of cells of a level of one column, and of a level of all columns.
MOST_CELLS_OF_LEVEL = 2**15
MOST_CELLS = 2**18
# The first stream of seeded noise of the histograms; the other mechanism has those below.
STREAMS = 2**30


@dataclass(frozen=True)
class NumbersFirst(Mechanism):
    """Measures numeric columns finely, and cuts the marginals that another mechanism measures.

    Attributes:
        then: The mechanism that measures the marginals.
        fraction: The fraction of the budget that the histograms of single columns get.
    """

    then: Mechanism = field(default_factory=OneShot)
    fraction: float = FRACTION

    name: ClassVar[str] = "numbers-first"

    def __post_init__(self) -> None:
        if not isinstance(self.then, Mechanism) or isinstance(self.then, NumbersFirst):
            raise BudgetError(f"then must be another mechanism, not {self.then!r:.80}")
        share = fraction("fraction", self.fraction, BudgetError)
        object.__setattr__(self, "fraction", share)

    @property
    def selection_summary(self) -> str:
        """How the other mechanism selects groups."""
        return self.then.selection_summary

    @property
    def selection_settings(self) -> dict[str, Any]:
        """The settings of the other mechanism."""
        return self.then.selection_settings

    @property
    def emphasis(self) -> str:
        """What the other mechanism measures with less noise."""
        return self.then.emphasis

    @property
    def gaussian_noise_only(self) -> bool:
        """Histograms have Gaussian noise; the rest is the other mechanism's."""
        return self.then.gaussian_noise_only

    @property
    def warm_start(self) -> bool:
        """Whether projections of the other mechanism start from a table."""
        return self.then.warm_start

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, for JSON."""
        return {"name": self.name, "then": self.then.to_dict(), "fraction": self.fraction}

    def candidates(self, target: Workload) -> Workload:
        """The first histograms, and what the other mechanism may measure."""
        schema = target.schema
        places = numeric_positions(schema)
        if not places:
            return self.then.candidates(target)
        histograms = Workload(schema, _first_families(schema))
        several = len({place for scope in scopes_of(target) for place in scope}) > 1
        paired = several and self.then.needs_single_columns
        rest = without_single_numbers(target, drop=not paired)
        if rest is None:
            return histograms
        even = {place: even_cells(schema, place) for place in places}
        # Cut again, so that marginals of the other mechanism have the levels that they will have.
        found = self.then.candidates(cut(rest, even))
        return histograms + cut(found, even, self.then.column_levels)

    def projected(self, workload: Workload) -> Workload:
        """All but patterns, which say how values are drawn within cells."""
        number = sum(len(family.patterns) for family in workload.families)
        if not number:
            return workload
        groups = [
            np.full(len(family.group_sizes), not family.patterns) for family in workload.families
        ]
        return workload.select(np.flatnonzero(np.concatenate(groups)))

    def counted_first(self, workload: Workload) -> Workload:
        """The first histograms; the rest is cut first."""
        number = num_fine(workload)
        return workload.select(range(number)) if number else workload

    def counts_at_once(self, workload: Workload) -> bool:
        """Where there are no numbers, and the other mechanism reads the data once."""
        return not num_fine(workload) and self.then.counts_at_once(workload)

    def always_measured(self, workload: Workload) -> Workload:
        """The first histograms, and what the other mechanism always measures."""
        histograms, rest = _parts(workload)
        if rest is None or histograms is None:
            return workload if rest is None else self.then.always_measured(rest)
        return histograms + self.then.always_measured(rest)

    def steps(self, task: Task) -> Steps:
        """Measure columns level by level, cut the marginals, and let the other mechanism go on."""
        histograms, rest = _parts(task.workload)
        if histograms is None:
            yield from self.then.steps(task)
            return
        measured, left = yield from self._measure_columns(task, histograms.num_groups)
        if rest is None:
            yield from self._measure_again(task, measured, left)
            yield from project(0)
            return
        inner = replace(task, workload=rest, budget=replace(task.budget, units=left))
        features = self._cells(inner, measured)
        workload = cut(rest, features, self.then.column_levels)
        then = replace(inner, workload=workload, target=cut(task.target, features))
        yield from _delegated(self.then.steps(then), workload)

    def plan(self, task: Task) -> Plan:
        """What one level of each histogram gets, and the plan of the other mechanism."""
        histograms, rest = _parts(task.workload)
        if histograms is None:
            return self.then.plan(task)
        each = self._units(task)
        mine = [each] * histograms.num_groups
        if rest is None:
            return Plan(task.budget.units, mine, 1, 0.0, histograms.num_groups)
        left = task.budget.units - each * num_levels(task.workload.schema)
        inner = replace(task, workload=rest, budget=replace(task.budget, units=left))
        plan = self.then.plan(inner)
        return plan._replace(
            # What the levels do not need is spent all the same.
            total=task.budget.units,
            units=mine + plan.units,
            fitted_groups=plan.fitted_groups + histograms.num_groups,
        )

    def check(self, projector: Projector, workload: Workload, external: Workload | None) -> None:
        """Refuse what the other mechanism refuses."""
        _, rest = _parts(workload)
        if rest is not None:
            self.then.check(projector, most_atoms(rest, external), external)

    def needs_feasibility_checks(
        self, projector: Projector, workload: Workload, external: Workload | None = None
    ) -> bool:
        """Where the other mechanism needs them."""
        _, rest = _parts(workload)
        if rest is None:
            return False
        rest = most_atoms(rest, external)
        return self.then.needs_feasibility_checks(projector, rest, external)

    def family_combinations(self, few: Workload) -> Iterator[Workload]:
        """The combinations of the other mechanism; histograms are summed to marginals."""
        histograms, rest = _parts(few)
        if histograms is None:
            yield from self.then.family_combinations(few)
            return
        families = histograms.families
        columns = Marginals(few.schema, [Marginal(((each,),)) for each in families[0].histograms])
        single = Workload(few.schema, (columns,)).select([0])
        yield single
        if rest is not None:
            yield from (single + fitted for fitted in self.then.family_combinations(rest))

    def _units(self, task: Task) -> int:
        """What one level of one histogram gets."""
        _, rest = _parts(task.workload)
        levels = num_levels(task.workload.schema)
        if rest is None:
            return task.budget.split([1.0] * levels)[0]
        return task.budget.split([self.fraction / levels, 1 - self.fraction / levels])[0]

    def _measure_columns(
        self, task: Task, columns: int
    ) -> Generator[Step, Any, tuple[Measurements, int]]:
        """Measure level by level; returns the measurements, and what is left of the budget."""
        schema, each = task.workload.schema, self._units(task)
        left = task.budget.units - each * columns
        most = _most_cells(task.workload)
        measured = yield from measure(
            "numbers: level 1", range(columns), [each] * columns, stream=STREAMS
        )
        for level in range(2, MOST_LEVELS + 1):
            found = column_distributions(measured)
            finer = {place: column.refined(most) for place, column in found.items()}
            features = [
                histogram_feature(schema, place, starts)
                for place, starts in finer.items()
                if starts is not None
            ]
            if not features:
                break
            measured = yield from measure(
                f"numbers: level {level}",
                range(len(features)),
                [each] * len(features),
                stream=STREAMS + level,
                workload=Workload(schema, (Histograms(schema, features),)),
            )
            left -= each * len(features)
        return measured, left

    def _measure_again(
        self, task: Task, measured: Measurements, left: int
    ) -> Generator[Step, Any, None]:
        """Spend what the levels did not need on the finest cells, where no mechanism follows."""
        schema, found = task.workload.schema, column_distributions(measured)
        features = [
            histogram_feature(schema, each.position, each.starts) for each in found.values()
        ]
        each = left // len(features)
        if each > 0:
            yield from measure(
                "numbers: finest cells",
                range(len(features)),
                [each] * len(features),
                stream=STREAMS + MOST_LEVELS + 1,
                workload=Workload(schema, (Histograms(schema, features),)),
            )

    def _cells(self, inner: Task, measured: Measurements) -> dict[int, tuple[Feature, ...]]:
        """The cells of each numeric column in marginals: as many as noise lets tell apart."""
        scales = noise_scales(inner, self.then.plan(inner).units)
        noise = float(scales[of_fewest_columns(inner.workload)].min())
        least = CELL_NOISE * noise / measured.n_records
        schema = inner.workload.schema
        found = {}
        for place, column in column_distributions(measured).items():
            levels = [column.cut_points(CELLS[-1], least)]
            for number in CELLS[-2::-1]:  # the cells of each are those of the next, joined
                levels.insert(0, column.joined(levels[0], number))
            levels += [column.halved(number) for number in JOINT_CELLS]
            found[place] = tuple(histogram_feature(schema, place, each) for each in levels)
        return found


def num_levels(schema: Schema) -> int:
    """The largest number of histograms and patterns of all numeric columns together."""
    columns = [expect_type(Numeric, schema.columns[place]) for place in numeric_positions(schema)]
    return sum(Grid.of(column).levels for column in columns) + len(patterns_of(schema))


def _most_cells(workload: Workload) -> int:
    """The largest number of cells of a level of one column; public, so that no run ends halfway.

    All levels together fit into a workload beside the candidate queries.

    Args:
        workload: The candidate queries.
    """
    columns = len(numeric_positions(workload.schema))
    # All levels, and the finest cells once more; each histogram may have a cell of null.
    histograms = num_levels(workload.schema) + columns
    room = (CELL_LIMIT - workload.size) // histograms - 1
    return min(MOST_CELLS_OF_LEVEL, MOST_CELLS // columns, room)


def _first_families(schema: Schema) -> tuple[Family, ...]:
    """What is measured before all else: the first histograms, and patterns."""
    patterns = patterns_of(schema)
    more = (Patterns(schema, patterns),) if patterns else ()
    return (first_histograms(schema), *more)


def num_fine(workload: Workload) -> int:
    """How many of the groups, the first ones, are histograms or patterns."""
    return sum(len(family.group_sizes) for family in workload.families if family.fine)


def _parts(workload: Workload) -> tuple[Workload | None, Workload | None]:
    """The histograms of a workload, and all else."""
    number, groups = num_fine(workload), workload.num_groups
    return (
        workload.select(range(number)) if number else None,
        workload.select(range(number, groups)) if number < groups else None,
    )


def _delegated(steps: Steps, workload: Workload) -> Steps:
    """The steps of another mechanism, whose groups are of a workload that the run has found."""
    result: Any = None
    try:
        while True:
            step = steps.send(result)
            if isinstance(step, Measure | Select) and step.workload is None:
                step = replace(step, workload=workload)
            result = yield step
            if isinstance(result, Measurements):
                result = without_histograms(result)
    except StopIteration:
        return
