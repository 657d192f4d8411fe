"""Strongest pairs: all columns, and the pairs of columns that depend on each other most.

For tables of many columns. Noise on all pairs grows with their number, and of hundreds of columns
most pairs say nothing. A part of the budget measures every column of the target workload. A part
selects pairs, all at once, by noisy top-k. What is left measures these pairs, with the same noise,
and one table is made of all measurements.

The score of a pair is how far its marginal is from that of independent columns with the shares that
were measured: the sum over its cells of the distance in rows, as far as it exceeds what sampling
and the noise of a measurement would leave (see ``privacy.selection.select_farthest``). Every pair
is scored by a table of its own. Tables are counted part by part, so that memory does not grow with
the number of pairs.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from private_gsd.errors import BudgetError, MeasurementError, WorkloadError
from private_gsd.mechanisms.base import Plan, SelectedPairs
from private_gsd.mechanisms.candidates import require_marginals
from private_gsd.mechanisms.columns_first import COLUMNS, ColumnsFirst, equal_noise
from private_gsd.mechanisms.cut_marginals import CELL_NOISE
from private_gsd.mechanisms.joined_categories import MOST_CATEGORIES, has_many, joined
from private_gsd.mechanisms.mst import column_shares
from private_gsd.mechanisms.steps import SelectionPart, measure, project, select_farthest
from private_gsd.privacy.noise import gaussian_scale, selection_scale
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.checks import whole
from private_gsd.workloads.marginals import Marginal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Task
    from private_gsd.mechanisms.steps import Steps
    from private_gsd.workloads.features import Feature

    # The features of each column of a target workload, from coarse to fine.
    Columns = dict[int, tuple[Feature, ...]]
    Pair = tuple[int, int]

# The fractions of the budget that measure all columns, select pairs, and measure these.
COLUMNS_FRACTION = 0.3
SELECTING = 0.05
MEASURING = 0.65
# The largest number of cells that are counted at once to score pairs.
PART_CELLS = 2**22
# Pairs of more cells than this are not selected.
MOST_PAIR_CELLS = 2**20
# How much of the noise of a measurement, and of sampling, a cell must exceed to count.
BEYOND_NOISE = 0.5
BEYOND_SAMPLING = 1.0


@dataclass(frozen=True, kw_only=True)
class StrongestPairs(ColumnsFirst):
    """Measures all columns, and the pairs that are farthest from independent.

    Attributes:
        pairs_per_column: The number of selected pairs, as a multiple of the number of columns.
    """

    pairs_per_column: int = 3

    name: ClassVar[str] = "strongest-pairs"

    def __post_init__(self) -> None:
        each = whole("pairs_per_column", self.pairs_per_column, 1, 2**10, BudgetError)
        object.__setattr__(self, "pairs_per_column", each)

    @property
    def selection_summary(self) -> str:
        """How pairs are selected."""
        return (
            "all columns are measured, and {pairs.size:,} of {pairs.candidates:,} pairs, with "
            "noise of {pairs.noise:,.3g} rows; these are selected by their distance from "
            "independent columns, with noise of {noise:,.3g} rows on their distance"
        )

    def candidates(self, target: Workload) -> Workload:
        """Every column of the target workload; pairs are made of these columns."""
        require_marginals(self.name, target)
        columns = columns_of(target)
        if len(columns) < 2 or not pairs_of(columns):
            raise WorkloadError(
                f"the mechanism {self.name!r} needs a pair of columns, of at most "
                f"{MOST_PAIR_CELLS:,} cells"
            )
        groups = [Marginal(((features[len(features) // 2],),)) for features in columns.values()]
        return Workload(target.schema, (Marginals(target.schema, groups),))

    @property
    def column_levels(self) -> Sequence[int]:
        """The middle one, by which pairs are scored; histograms say more of a number."""
        return (1,)

    def counts_at_once(self, workload: Workload) -> bool:  # noqa: ARG002
        """Never: pairs are counted part by part."""
        return False

    def steps(self, task: Task) -> Steps:
        """Measure columns, select pairs, measure them, project."""
        columns, selecting, measuring = self.allocate(task)
        singles = range(task.workload.num_groups)
        known = yield from measure(COLUMNS, singles, equal_noise(task, columns, singles), stream=0)
        features, scored = columns_of(task.target), _scored(task.workload)
        candidates = pairs_of(features)
        size = self._number(features, candidates)
        noise = _pair_noise(task, features, measuring / size)
        shares = column_shares(known)
        for place, feature in scored.items():
            found = joined(feature, shares[feature], CELL_NOISE * noise / known.n_records)
            if found is not feature:
                shares[found] = _summed(shares[feature], found)
                features[place], scored[place] = (found,), found
        chosen = yield from select_farthest(
            "pairs: select",
            partial(_parts, known, shares, scored, candidates, noise),
            candidates=len(candidates),
            size=size,
            units=selecting,
            stream=1,
        )
        schema = task.workload.schema
        groups = [
            pair_marginal(*((features[place], scored[place]) for place in candidates[number]))
            for number in chosen
        ]
        pairs = _feasible(task, Workload(schema, (Marginals(schema, groups),)))
        numbers = range(pairs.num_groups)
        units = equal_noise(replace(task, workload=pairs), measuring, numbers)
        yield from measure("pairs: measure", numbers, units, stream=2, workload=pairs)
        yield from project(0)

    def plan(self, task: Task) -> Plan:
        """What columns get; pairs are not candidates one by one."""
        columns, selecting, measuring = self.allocate(task)
        number = task.workload.num_groups
        features = columns_of(task.target)
        candidates = pairs_of(features)
        size = self._number(features, candidates)
        left_out = math.comb(len(features), 2) - len(candidates)
        noise = _pair_noise(task, features, measuring / size)
        names = task.workload.schema.names
        many = tuple(names[place] for place, each in features.items() if has_many(each[-1]))
        return Plan(
            task.budget.units,
            equal_noise(task, columns, range(number)),
            1,
            selection_scale(selecting, size, _sensitivity(task)),
            number + size,
            SelectedPairs(len(candidates), left_out, size, noise, many),
        )

    def allocate(self, task: Task) -> tuple[int, int, int]:
        """What all columns, the selection and all pairs get."""
        columns, selecting, _ = task.budget.split([COLUMNS_FRACTION, SELECTING, MEASURING])
        return columns, selecting, task.budget.units - columns - selecting

    def _number(self, columns: Columns, pairs: Sequence[Pair]) -> int:
        """The number of pairs that are selected."""
        return min(self.pairs_per_column * len(columns), len(pairs))


def columns_of(target: Workload) -> Columns:
    """The features of each column of a target workload, from coarse to fine."""
    found: dict[int, set[Feature]] = {}
    for family in target.families:
        for feature in {f for group in family.marginals for table in group.tables for f in table}:
            found.setdefault(feature.position, set()).add(feature)
    return {
        place: tuple(sorted(found[place], key=lambda f: (f.size, f.breaks, f.segments)))
        for place in sorted(found)
    }


def pairs_of(columns: Columns) -> list[Pair]:
    """All pairs of columns that have not too many cells."""
    sizes = {place: _largest_size(features[-1]) for place, features in columns.items()}
    return [
        (one, other)
        for one, other in itertools.combinations(columns, 2)
        if sizes[one] * sizes[other] <= MOST_PAIR_CELLS
    ]


def _largest_size(feature: Feature) -> int:
    """The largest number of cells of a column in a pair, before it was measured."""
    return MOST_CATEGORIES + feature.nullable if has_many(feature) else feature.size


def pair_marginal(
    one: tuple[tuple[Feature, ...], Feature], other: tuple[tuple[Feature, ...], Feature]
) -> Marginal:
    """The marginal of a selected pair: a coarse table and a fine one, where a column is a number.

    Args:
        one: The features of a column, from coarse to fine, and the one by which it is scored.
        other: Those of the other column.
    """
    numbers = sum(len(features) > 1 for features, _ in (one, other))
    fine = [middle if numbers > 1 else features[-1] for features, middle in (one, other)]
    return Marginal(tuple(dict.fromkeys([(one[0][0], other[0][0]), (fine[0], fine[1])])))


def _scored(columns: Workload) -> dict[int, Feature]:
    """The feature by which each column is measured alone, and scored."""
    return {group.positions[0]: group.tables[0][0] for group in columns.families[0].marginals}


def _feasible(task: Task, pairs: Workload) -> Workload:
    """The pairs, or those that the projector can take beside the columns and the pairs before."""
    if task.why_infeasible is None:
        return pairs
    feasible: list[int] = []
    for pair in range(pairs.num_groups):
        together = task.workload + pairs.select([*feasible, pair])
        if task.why_infeasible(together) is None:
            feasible.append(pair)
    if not feasible:
        raise MeasurementError("no pair of columns can be added to the columns")
    return pairs.select(feasible)


def _pair_noise(task: Task, columns: Columns, units: float) -> float:
    """The noise on a count of a pair that gets so much, with as many tables as pairs have."""
    single = sum(len(features) == 1 for features in columns.values())
    tables = 2 - math.comb(single, 2) / math.comb(len(columns), 2)
    square = _sensitivity(task) * task.most * tables
    return gaussian_scale(square, int(units), task.budget.conversion)


def _sensitivity(task: Task) -> int:
    """The sensitivity of a score: the L1 sensitivity of one table."""
    return (2 if task.neighbours == "replace-one" else 1) * task.most


def _summed(shares: NDArray[np.float64], feature: Feature) -> NDArray[np.float64]:
    """The shares of joined categories; null stays the last."""
    cells = feature.cells_of_atoms(np.empty(0))
    return np.bincount(cells, weights=shares, minlength=feature.size).astype(np.float64)


def _parts(
    measured: Measurements,
    shares: Mapping[Feature, NDArray[np.float64]],
    scored: Mapping[int, Feature],
    pairs: Sequence[Pair],
    noise: float,
) -> Iterator[SelectionPart]:
    """The tables by which pairs are scored, as many at once as memory has room for.

    Args:
        measured: The measurements of all columns.
        shares: The shares of the cells of each feature.
        scored: The feature of each column.
        pairs: The pairs.
        noise: About the noise on a count of a pair that is measured.
    """
    schema = measured.workload.schema

    def part(some: Sequence[Pair]) -> SelectionPart:
        tables = [(scored[one], scored[other]) for one, other in some]
        pairs = Workload(schema, (Marginals(schema, [Marginal((each,)) for each in tables]),))
        expected = np.concatenate(
            [np.multiply.outer(shares[one], shares[other]).ravel() for one, other in tables]
        )
        sampling = np.sqrt(expected * measured.n_records)
        floors = np.hypot(BEYOND_SAMPLING * sampling, BEYOND_NOISE * noise)
        return SelectionPart(pairs, np.minimum(expected, 1.0), floors)

    some: list[Pair] = []
    cells = 0
    for pair in pairs:
        size = math.prod(scored[place].size for place in pair)
        if some and cells + size > PART_CELLS:
            yield part(some)
            some, cells = [], 0
        some.append(pair)
        cells += size
    yield part(some)
