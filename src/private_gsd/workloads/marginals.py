"""Marginals: tables over features. Categorical, range and binary-tree marginals are one thing.

A group is one set of columns with all its tables (a tree has one for each level).
"""

from __future__ import annotations

import itertools
import math
import warnings
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from private_gsd.errors import WorkloadError, did_you_mean
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.features import (
    Feature,
    discrete_feature,
    range_features,
    tree_features,
)
from private_gsd.workloads.tables import Marginal, Plan
from private_gsd.workloads.workload import CELL_LIMIT, Family, Neighbours, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Schema


class SkippedWarning(UserWarning):
    """Some column sets have more cells than ``max_cells`` and are left out of a workload."""


class Marginals(Family):
    """A family of marginals."""

    def __init__(self, schema: Schema, groups: Iterable[Marginal]) -> None:
        self.schema = schema
        self.groups = tuple(groups)

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """The number of cells of each marginal."""
        return np.array([group.size for group in self.groups], dtype=np.int64)

    def squared_sensitivities(self, neighbours: Neighbours) -> NDArray[np.float64]:
        """A row stands in at most one cell of each table."""
        if neighbours == "add-remove":
            each = [float(len(group.tables)) for group in self.groups]
        else:
            each = [float(sum(map(_replaced, group.tables))) for group in self.groups]
        return np.array(each)

    def select(self, groups: NDArray[np.int64]) -> Marginals:
        """Some of the marginals."""
        return Marginals(self.schema, (self.groups[group] for group in groups.tolist()))

    def join(self, other: Family) -> Marginals | None:
        """Two families of marginals are counted in one go."""
        if not isinstance(other, Marginals):
            return None
        return Marginals(self.schema, self.groups + other.groups)

    def describe(self, group: int) -> str:
        """The columns."""
        return " x ".join(self.schema.names[place] for place in self.groups[group].positions)

    def query(self, group: int, cell: int) -> str:
        """One cell of one of the marginal's tables."""
        for table in self.groups[group].tables:
            sizes = [feature.size for feature in table]
            if cell < math.prod(sizes):
                cells = np.unravel_index(cell, sizes)
                words = [
                    feature.condition(self.schema, int(each))
                    for feature, each in zip(table, cells, strict=True)
                ]
                return " AND ".join(words)
            cell -= math.prod(sizes)
        raise IndexError(cell)

    @cached_property
    def _plan(self) -> Plan:
        return Plan(self.schema, self.groups)

    def start(self) -> NDArray[np.int64]:
        """Zeros, one for each cell of the joint tables."""
        return np.zeros(self._plan.size, dtype=np.int64)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows in the joint tables."""
        self._plan.count(matrix, state)

    def finish(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum the joint tables down to the marginals."""
        answers = [self._plan.answers(number, state) for number in range(len(self.groups))]
        return np.concatenate(answers)


def _replaced(table: tuple[Feature, ...]) -> int:
    """By how much one row for another can change a table, squared: out of a cell, into another."""
    cells = math.prod(feature.size for feature in table)
    if cells > 1:
        return 2
    return int(any(feature.has_gap for feature in table))


def categorical_marginals(
    schema: Schema,
    k: int = 2,
    *,
    columns: Sequence[str] | None = None,
    sets: Iterable[Sequence[str]] | None = None,
    max_cells: int | None = None,
) -> Workload:
    """All k-way marginals of the categorical and boolean columns, or of those chosen.

    Args:
        schema: The public schema.
        k: How many columns a marginal has.
        columns: The columns to combine; all discrete ones by default.
        sets: The column sets themselves, of any sizes, instead of ``k`` and ``columns``.
        max_cells: Leave out sets with more cells than this, with a warning that names them.
    """
    if sets is None:
        found = _discrete(schema) if columns is None else [_position(schema, c) for c in columns]
        chosen: Iterable[tuple[int, ...]] = _combinations(found, k, "discrete")
    else:
        chosen = _named(schema, sets)

    def make(places: tuple[int, ...]) -> Marginal:
        return Marginal((tuple(_categorical(schema, place) for place in places),))

    return _workload(schema, chosen, make, max_cells)


def tree_marginals(
    schema: Schema,
    k: int = 2,
    depth: int = 5,
    *,
    categorical: int | None = None,
    sets: Iterable[Sequence[str]] | None = None,
    levels: Literal["same", "all"] = "same",
    max_cells: int | None = None,
) -> Workload:
    """K-way binary-tree marginals: discrete columns by intervals of width 1/2, 1/4, … 1/2^depth.

    Args:
        schema: The public schema.
        k: How many columns a marginal has.
        depth: How many levels the trees have.
        categorical: How many of the k columns are discrete: 1 as in the paper, where k is more than
            1; 0 for numeric columns alone.
        sets: The column sets themselves, instead of ``k`` and ``categorical``.
        levels: With several numeric columns, whether a table takes the "same" level of each, or
            there is one for "all" combinations of levels.
        max_cells: Leave out sets with more cells than this, with a warning that names them.
    """
    if not isinstance(depth, int) or not 1 <= depth <= 20:
        raise WorkloadError(f"depth must be a whole number from 1 to 20, not {depth!r}")
    if levels not in ("same", "all"):
        raise WorkloadError(f"levels must be 'same' or 'all', not {levels!r}")
    if sets is None:
        categorical = min(1, k - 1) if categorical is None else categorical
        if not 0 <= categorical < k:
            raise WorkloadError("a tree marginal has at least one numeric column: categorical < k")
        chosen: Iterable[tuple[int, ...]] = [
            (*discrete, *numeric)
            for discrete in _combinations(_discrete(schema), categorical, "discrete")
            for numeric in _combinations(_numeric(schema), k - categorical, "numeric")
        ]
    else:
        chosen = list(_named(schema, sets))
    trees = {
        place: tree_features(schema, place, depth)
        for place in {place for places in chosen for place in places}
        if isinstance(schema.columns[place], Numeric)
    }

    def make(places: tuple[int, ...]) -> Marginal:
        each = [
            trees[place] if place in trees else (discrete_feature(schema, place),)
            for place in places
        ]
        if not any(place in trees for place in places):
            names = ", ".join(schema.names[place] for place in places)
            raise WorkloadError(f"columns {names}: a tree marginal needs a numeric column")
        if levels == "all":
            return Marginal(tuple(itertools.product(*each)))
        # A column with fewer levels stays at its finest.
        deepest = max(len(features) for features in each)
        return Marginal(
            tuple(
                tuple(features[min(level, len(features) - 1)] for features in each)
                for level in range(deepest)
            )
        )

    return _workload(schema, chosen, make, max_cells)


def range_marginals(
    schema: Schema,
    columns: Mapping[str, Sequence[tuple[Any, Any]] | EllipsisType],
    k: int | None = None,
    *,
    max_cells: int | None = None,
) -> Workload:
    """Marginals of discrete columns by given intervals of numeric ones.

    Args:
        schema: The public schema.
        columns: For each numeric column a list of intervals ``(lower, upper)``, for each discrete
            one ``...``. Intervals of integers and dates include both ends; those of reals are
            half-open, [lower, upper), but for one that ends with the domain. They may overlap.
        k: How many of the columns a marginal has; all of them by default.
        max_cells: Leave out sets with more cells than this, with a warning that names them.
    """
    features: dict[int, tuple[Feature, ...]] = {}
    for name, intervals in columns.items():
        place = _position(schema, name)
        discrete = isinstance(schema.columns[place], Discrete)
        if discrete != isinstance(intervals, EllipsisType):
            wanted = "..." if discrete else "a list of intervals"
            kind = schema.columns[place].kind
            raise WorkloadError(f"column {name!r} is {kind}: give {wanted}, not {intervals!r}")
        if isinstance(intervals, EllipsisType):
            features[place] = (discrete_feature(schema, place),)
        elif not len(intervals):
            raise WorkloadError(f"column {name!r}: the list of intervals is empty")
        else:
            features[place] = range_features(schema, place, intervals)

    def make(places: tuple[int, ...]) -> Marginal:
        return Marginal(tuple(itertools.product(*(features[place] for place in places))))

    chosen = _combinations(list(features), len(features) if k is None else k, "given")
    return _workload(schema, chosen, make, max_cells)


def _workload(
    schema: Schema,
    chosen: Iterable[tuple[int, ...]],
    make: Callable[[tuple[int, ...]], Marginal],
    max_cells: int | None,
) -> Workload:
    """Make the marginals, or refuse them before any cell is allocated."""
    groups, skipped, total = [], [], 0
    for places in chosen:
        group = make(places)
        if max_cells is not None and group.size > max_cells:
            skipped.append(group)
            continue
        total += group.size
        groups.append(group)
    family = Marginals(schema, groups)
    if total > CELL_LIMIT:
        raise WorkloadError(
            f"the marginals have {total:,} cells, more than the {CELL_LIMIT:,} allowed; "
            f"the largest are {_largest(schema, groups)}. Leave columns out, or skip large sets "
            "with max_cells=…"
        )
    if skipped:
        warnings.warn(
            f"left out {len(skipped):,} column sets with more than {max_cells:,} cells: "
            f"{_largest(schema, skipped)}",
            SkippedWarning,
            stacklevel=3,
        )
    if not groups:
        raise WorkloadError("no column set is left" if skipped else "no column set was chosen")
    return Workload(schema, (family,))


def _largest(schema: Schema, groups: list[Marginal], shown: int = 5) -> str:
    family = Marginals(schema, sorted(groups, key=lambda group: -group.size))
    listed = [
        f"{family.describe(number)} ({group.size:,} cells)"
        for number, group in enumerate(family.groups[:shown])
    ]
    return ", ".join(listed) + (f" and {len(groups) - shown:,} more" * (len(groups) > shown))


def _combinations(places: Sequence[int], k: int, what: str) -> Iterable[tuple[int, ...]]:
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= len(places):
        raise WorkloadError(f"k must be from 1 to the {len(places)} {what} columns, not {k!r}")
    number = math.comb(len(places), k)
    if number > CELL_LIMIT:
        raise WorkloadError(
            f"{len(places)} columns have {number:,} {k}-way marginals, more than the "
            f"{CELL_LIMIT:,} cells allowed; choose columns or sets"
        )
    return itertools.combinations(places, k)


def _categorical(schema: Schema, place: int) -> Feature:
    column = schema.columns[place]
    if not isinstance(column, Discrete):
        raise WorkloadError(
            f"column {column.name!r} is {column.kind}, not categorical or boolean; "
            "use tree_marginals or range_marginals"
        )
    return discrete_feature(schema, place)


def _named(schema: Schema, sets: Iterable[Sequence[str]]) -> Iterable[tuple[int, ...]]:
    for names in sets:
        if isinstance(names, str):
            raise WorkloadError(f"a column set is a list of names, not {names!r}")
        places = tuple(_position(schema, name) for name in names)
        if not places or len(set(places)) < len(places):
            raise WorkloadError(f"a column set names each column once, not {list(names)!r}")
        yield places


def _position(schema: Schema, name: str) -> int:
    if name not in schema:
        raise WorkloadError(
            f"no column {name!r} in the schema{did_you_mean(str(name), schema.names)}"
        )
    return schema.names.index(name)


def _discrete(schema: Schema) -> list[int]:
    return [place for place, column in enumerate(schema) if isinstance(column, Discrete)]


def _numeric(schema: Schema) -> list[int]:
    return [place for place, column in enumerate(schema) if isinstance(column, Numeric)]
