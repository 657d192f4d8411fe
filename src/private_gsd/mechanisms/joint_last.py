"""Joint last: what neither a pair nor a triple shows, by one table of all columns in few cells.

Most of the budget measures marginals, one-shot or layered. The rest measures the joint table of all
columns: every number is cut into two cells or a few more, and rare categories are joined, so that
the table has not too many cells for the budget. Eight columns of two cells are 256 cells. Noise on
a cell may be as large as its count: what several columns have in common is in many cells at once
(see ``projection.denoising.interactions``).

The joint table is measured only where its cells hold enough, by the number of records: the public
one, or the measured one where that number is private. Otherwise the marginals get all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.measurements.level_estimates import on_simplex
from private_gsd.mechanisms.base import JointCells, Mechanism, Plan, noise_scales
from private_gsd.mechanisms.cut_marginals import coarser_number
from private_gsd.mechanisms.one_shot import OneShot
from private_gsd.mechanisms.steps import measure, project
from private_gsd.mechanisms.strongest_pairs import columns_of
from private_gsd.projection.denoising.lower_orders import (
    complete_tables,
    marginals_alone,
    summed_to,
)
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.checks import fraction, whole
from private_gsd.workloads.features import joined_feature
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps
    from private_gsd.projection import Projector
    from private_gsd.schema import Schema
    from private_gsd.workloads.features import Feature

# The fraction of the budget that the joint table gets.
FRACTION = 0.1
# An interaction is a difference of the halves of all cells, and its noise that of a cell times the
# root of their number. The joint table is measured with two cells for each column where that is at
# most this fraction of the records. It has more where each holds this multiple of its noise.
MOST_NOISE = 0.1
CELL_NOISE = 1.5
# The largest number of cells, and of columns, of a joint table.
MOST_CELLS = 2**16
MOST_COLUMNS = 12
# The least mass of a category.
TINY = 1e-9


@dataclass(frozen=True, kw_only=True)
class JointLast(Mechanism):
    """Measures marginals, and then the joint table of all columns in few cells.

    Attributes:
        first: The mechanism that measures the marginals: one-shot or layered.
        cells: The largest number of cells of the joint table, if two for each column are not more.
        fraction: The fraction of the budget that the joint table gets.
    """

    first: Mechanism = field(default_factory=OneShot)
    cells: int = 256
    fraction: float = FRACTION

    name: ClassVar[str] = "joint-last"

    def __post_init__(self) -> None:
        if not isinstance(self.first, OneShot):
            raise BudgetError(f"first must be OneShot() or Layered(), not {self.first!r:.80}")
        object.__setattr__(self, "cells", whole("cells", self.cells, 1, MOST_CELLS, BudgetError))
        share = fraction("fraction", self.fraction, BudgetError)
        object.__setattr__(self, "fraction", share)

    @property
    def gaussian_noise_only(self) -> bool:
        """All noise is Gaussian."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, for JSON."""
        settings = {"cells": self.cells, "fraction": self.fraction}
        return {"name": self.name, "first": self.first.to_dict(), **settings}

    def candidates(self, target: Workload) -> Workload:
        """What the first mechanism may measure, and the joint table, which is the last group."""
        found = self.first.candidates(target)
        columns = columns_of(target) if all(each.marginals for each in target.families) else {}
        if not 2 < len(columns) <= MOST_COLUMNS:
            raise WorkloadError(
                f"the mechanism {self.name!r} measures a table of 3 to {MOST_COLUMNS} columns, and "
                f"the workload has marginals of {len(columns)}; use 'one-shot' or 'layered'"
            )
        finest = [features[-1] for features in columns.values()]
        table = joint_table(target.schema, finest, self.cells)
        return found + _workload_of(target.schema, table)

    def check(self, projector: Projector, workload: Workload, external: Workload | None) -> None:
        """Refuse a projector that would fit the noise of the joint table."""
        if not projector.finds_interactions:
            raise WorkloadError(
                f"the mechanism {self.name!r} goes with the projector 'gsd' that denoises: others "
                "fit the noise of a table of many columns; use 'one-shot' or 'layered'"
            )
        super().check(projector, workload, external)

    def counted_first(self, workload: Workload) -> Workload:
        """All but the joint table, whose cells are found after these."""
        return _without_joint(workload)

    def always_measured(self, workload: Workload) -> Workload:
        """All but the joint table."""
        return _without_joint(workload)

    def steps(self, task: Task) -> Steps:
        """Measure marginals, find the cells of the joint table, measure it, and project."""
        units, table = self._allocated(task)
        measured = yield from measure("measure", range(len(units) - 1), units[:-1], stream=0)
        if table:
            found = _workload_of(task.workload.schema, _balanced(table, measured))
            yield from measure("joint: measure", [0], units[-1:], stream=1, workload=found)
        yield from project(0)

    def plan(self, task: Task) -> Plan:
        """What every marginal gets, and the joint table, where it is worth it."""
        units, table = self._allocated(task)
        joint = None
        if table:
            (noise,) = self._noise(task, units[-1])
            joint = JointCells(len(table), _size(table), noise)
        return Plan(sum(units), units, 1, 0.0, len(units), joint=joint)

    def affordable(self, task: Task, n_records: int) -> tuple[int, int]:
        """The largest number of cells of a joint table: two for each column, and with more.

        Args:
            task: What the mechanism is to do.
            n_records: The number of records.
        """
        (noise,) = self._noise(task, self._units(task))
        two, more = (MOST_NOISE * n_records / noise) ** 2, n_records / (CELL_NOISE * noise)
        return int(min(two, MOST_CELLS)), int(min(two, more, MOST_CELLS))

    def _units(self, task: Task) -> int:
        """What the joint table gets."""
        return task.budget.split([self.fraction, 1 - self.fraction])[0]

    def _noise(self, task: Task, units: int) -> list[float]:
        """The noise on a count of the joint table."""
        joint = task.workload.select([task.workload.num_groups - 1])
        return [float(noise) for noise in noise_scales(replace(task, workload=joint), [units])]

    def _allocated(self, task: Task) -> tuple[list[int], tuple[Feature, ...]]:
        """What each group gets, and the joint table; it gets nothing where it is not worth it."""
        joint, marginals = self._units(task), _without_joint(task.workload)
        table = _joint_of(task.workload)
        if task.n_records is not None:
            two, more = self.affordable(task, task.n_records)
            table = joint_table(task.workload.schema, table, more)
            if _size(table) > two:
                joint, table = 0, ()
        left = replace(task.budget, units=task.budget.units - joint)
        first = self.first.plan(replace(task, workload=marginals, budget=left))
        return [*first.units, joint], table


def joint_table(schema: Schema, finest: Sequence[Feature], most: int) -> tuple[Feature, ...]:
    """The features of a joint table of at most so many cells, if two for each column are not more.

    The column of the fewest cells gets twice as many, as long as the table is not too large. Cut
    points of numbers and joined categories are even; they are measured later.

    Args:
        schema: The schema.
        finest: The finest feature of each column.
        most: The largest number of cells.
    """
    numbers = [min(2, feature.size - feature.nullable) for feature in finest]
    found = [_coarser(schema, *each) for each in zip(finest, numbers, strict=True)]
    size = math.prod(feature.size for feature in found)
    growing = set(range(len(finest)))
    while growing:
        place = min(growing, key=lambda place: (numbers[place], place))
        numbers[place] *= 2
        finer = _coarser(schema, finest[place], numbers[place])
        grown = size // found[place].size * finer.size
        if finer.size == found[place].size or grown > most:
            growing.remove(place)
        else:
            found[place], size = finer, grown
    return tuple(found)


def _coarser(schema: Schema, feature: Feature, number: int) -> Feature:
    """A feature with at most so many cells beside null: even ones, or categories in turn."""
    if number >= feature.size - feature.nullable:
        return feature
    if feature.breaks:
        return coarser_number(schema, feature, number)
    return joined_feature(feature, [cell % number for cell in feature.segments])


def _size(table: Sequence[Feature]) -> int:
    return math.prod(feature.size for feature in table)


def _workload_of(schema: Schema, table: tuple[Feature, ...]) -> Workload:
    return Workload(schema, (Marginals(schema, [Marginal((table,))]),))


def _without_joint(workload: Workload) -> Workload:
    return workload.select(range(workload.num_groups - 1))


def _joint_of(workload: Workload) -> tuple[Feature, ...]:
    """The joint table among the candidate queries."""
    joint = workload.select([workload.num_groups - 1])
    return joint.families[0].marginals[0].tables[0]


def _balanced(table: tuple[Feature, ...], measured: Measurements) -> tuple[Feature, ...]:
    """The joint table, with categories joined to cells of about the same mass, as measured."""
    if not any(feature.joins_categories for feature in table):
        return table
    shares = _column_shares(measured)
    return tuple(
        balanced(feature, shares[feature.position]) if feature.joins_categories else feature
        for feature in table
    )


def balanced(feature: Feature, shares: NDArray[np.float64]) -> Feature:
    """The feature with as many cells of joined categories, of about the same mass.

    Args:
        feature: The feature of a discrete column, with joined categories.
        shares: The share of each category.
    """
    number = feature.size - feature.nullable
    cells, masses = np.zeros(len(feature.segments), dtype=np.int64), np.zeros(number)
    for category in np.argsort(-shares[: len(cells)], kind="stable"):
        cells[category] = cell = int(masses.argmin())
        masses[cell] += max(shares[category], TINY)  # a cell without a category is the lightest
    return joined_feature(replace(feature, segments=tuple(range(len(cells)))), cells.tolist())


def _column_shares(measured: Measurements) -> dict[int, NDArray[np.float64]]:
    """The shares of the categories of each discrete column, from all marginals."""
    alone = marginals_alone(measured)
    columns = summed_to(alone, complete_tables(alone.workload), 1, alone.shares)
    found: dict[int, NDArray[np.float64]] = {}
    for table in complete_tables(columns.workload):
        (feature,) = table.features
        if not feature.breaks and not feature.joins_categories:
            found[feature.position] = on_simplex(table.of(columns.shares))
    return found
