"""Constructors of categorical marginals, range marginals and binary-tree marginals.

A group is one set of columns with all of its tables; a tree has a table for each level.
"""

from __future__ import annotations

import heapq
import itertools
import math
import warnings
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal

from private_gsd.errors import WorkloadError
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.checks import position_of, whole
from private_gsd.workloads.features import (
    Feature,
    discrete_feature,
    range_features,
    tree_depth,
    tree_features,
)
from private_gsd.workloads.marginals import Marginal, Marginals
from private_gsd.workloads.workload import CELL_LIMIT, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from private_gsd.schema import Schema


GROUP_LIMIT = 2**19
MAX_DEPTH = 14


class SkippedWarning(UserWarning):
    """Some column sets have more cells than ``max_cells`` and are left out of a workload.

    Attributes:
        sets: The names of the columns of each set that is left out.
    """

    def __init__(self, message: str, sets: Sequence[tuple[str, ...]] = ()) -> None:
        super().__init__(message)
        self.sets = tuple(sets)


def categorical_marginals(
    schema: Schema,
    k: int = 2,
    *,
    columns: Sequence[str] | None = None,
    sets: Iterable[Sequence[str]] | None = None,
    max_cells: int | None = None,
) -> Workload:
    """All k-way marginals of the categorical and boolean columns, or of some of them.

    Args:
        schema: The public schema.
        k: The number of columns of a marginal.
        columns: The columns to combine; all discrete ones by default.
        sets: The column sets themselves, of any sizes, instead of ``k`` and ``columns``.
        max_cells: Leave out sets with more cells than this, with a warning that names them.
    """
    if sets is None:
        names = columns if columns is not None else _names(schema, Discrete)
        found = _places(schema, names)
        if not found:
            raise WorkloadError("there is no categorical or boolean column to combine")
        k = whole("k", k, 1, len(found))
        chosen: Iterable[tuple[int, ...]] = _combined([(found, k)])
    else:
        chosen = list(_named(schema, sets))
    features: dict[int, Feature] = {}

    def sizes(places: tuple[int, ...]) -> int:
        return math.prod(_values(schema, place) for place in places)

    def make(places: tuple[int, ...]) -> Marginal:
        for place in places:
            if place not in features:
                features[place] = discrete_feature(schema, place)
        return Marginal((tuple(features[place] for place in places),))

    return _workload(schema, chosen, sizes, make, max_cells)


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
        k: The number of columns of a marginal.
        depth: The number of levels of the trees.
        categorical: The number of discrete columns among the k columns. By default 1, as in the
            paper, or 0 if k is 1.
        sets: The column sets themselves, instead of ``k`` and ``categorical``.
        levels: "same" for tables with the same level of each numeric column, "all" for a table of
            each combination of levels.
        max_cells: Leave out sets with more cells than this, with a warning that names them.
    """
    depth = whole("depth", depth, 1, MAX_DEPTH)
    if levels not in ("same", "all"):
        raise WorkloadError(f"levels must be 'same' or 'all', not {levels!r}")
    if sets is None:
        k = whole("k", k, 1, len(schema))
        categorical = min(1, k - 1) if categorical is None else categorical
        categorical = whole("categorical", categorical, 0, k - 1)
        discrete, numeric = _names(schema, Discrete), _names(schema, Numeric)
        if len(discrete) < categorical or len(numeric) < k - categorical:
            raise WorkloadError(
                f"{categorical} discrete and {k - categorical} numeric columns are needed; "
                f"the schema has {len(discrete)} and {len(numeric)}"
            )
        chosen: Iterable[tuple[int, ...]] = _combined(
            [
                (_places(schema, discrete), categorical),
                (_places(schema, numeric), k - categorical),
            ]
        )
    else:
        chosen = list(_named(schema, sets))
    features: dict[int, tuple[Feature, ...]] = {}

    def cells(place: int) -> list[int]:
        """The cells of each feature of a column."""
        column = schema.columns[place]
        if isinstance(column, Numeric):
            return [2**level + column.nullable for level in range(1, tree_depth(column, depth) + 1)]
        return [_values(schema, place)]

    def sizes(places: tuple[int, ...]) -> int:
        each = [cells(place) for place in places]
        if not any(isinstance(schema.columns[place], Numeric) for place in places):
            names = ", ".join(schema.names[place] for place in places)
            raise WorkloadError(f"columns {names}: a tree marginal needs a numeric column")
        if levels == "all":
            return math.prod(sum(column) for column in each)
        deepest = max(len(column) for column in each)
        return sum(
            math.prod(column[min(level, len(column) - 1)] for column in each)
            for level in range(deepest)
        )

    def make(places: tuple[int, ...]) -> Marginal:
        for place in places:
            if place not in features:
                numeric = isinstance(schema.columns[place], Numeric)
                features[place] = (
                    tree_features(schema, place, depth)
                    if numeric
                    else (discrete_feature(schema, place),)
                )
        each = [features[place] for place in places]
        if levels == "all":
            return Marginal(tuple(itertools.product(*each)))
        # A column with fewer levels stays at its finest level.
        deepest = max(len(column) for column in each)
        return Marginal(
            tuple(
                tuple(column[min(level, len(column) - 1)] for column in each)
                for level in range(deepest)
            )
        )

    return _workload(schema, chosen, sizes, make, max_cells)


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
            column ``...``. Intervals of integers and dates include both ends. Intervals of reals
            are half-open, [lower, upper), except those that end at the upper bound, which include
            it. Intervals may overlap.
        k: The number of columns of a marginal; all columns by default.
        max_cells: Leave out sets with more cells than this, with a warning that names them.
    """
    if not columns:
        raise WorkloadError("no column was given")
    features: dict[int, tuple[Feature, ...]] = {}
    for name, intervals in columns.items():
        place = position_of(schema, name)
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

    def sizes(places: tuple[int, ...]) -> int:
        return math.prod(sum(each.size for each in features[place]) for place in places)

    def make(places: tuple[int, ...]) -> Marginal:
        return Marginal(tuple(itertools.product(*(features[place] for place in places))))

    k = len(features) if k is None else whole("k", k, 1, len(features))
    return _workload(schema, _combined([(list(features), k)]), sizes, make, max_cells)


def _workload(
    schema: Schema,
    chosen: Iterable[tuple[int, ...]],
    sizes: Callable[[tuple[int, ...]], int],
    make: Callable[[tuple[int, ...]], Marginal],
    max_cells: int | None,
) -> Workload:
    """Make the marginals, after checking the sizes of all of them."""
    if max_cells is not None:
        max_cells = whole("max_cells", max_cells, 1, CELL_LIMIT)
    kept: list[tuple[int, ...]] = []
    skipped: list[tuple[int, ...]] = []
    total = 0
    for places in chosen:
        size = sizes(places)
        if max_cells is not None and size > max_cells:
            skipped.append(places)
        else:
            total += size
            kept.append(places)
    if total > CELL_LIMIT:
        raise WorkloadError(
            f"the marginals have {total:,} cells, more than the {CELL_LIMIT:,} allowed; "
            f"the largest are {_largest(schema, kept, sizes, 5)}. Leave columns out, or skip large "
            "sets with max_cells=…"
        )
    if skipped:
        named = [tuple(schema.names[place] for place in places) for places in skipped]
        message = (
            f"left out {len(skipped):,} column sets with more than {max_cells:,} cells: "
            f"{_largest(schema, skipped, sizes, 50)}"
        )
        warnings.warn(SkippedWarning(message, named), stacklevel=3)
    if not kept:
        raise WorkloadError("no column set is left" if skipped else "no column set was chosen")
    return Workload(schema, (Marginals(schema, map(make, kept)),))


def _largest(
    schema: Schema,
    sets: list[tuple[int, ...]],
    sizes: Callable[[tuple[int, ...]], int],
    shown: int,
) -> str:
    largest = heapq.nlargest(shown, sets, key=sizes)
    listed = [
        f"{' x '.join(schema.names[place] for place in places)} ({sizes(places):,} cells)"
        for places in largest
    ]
    return ", ".join(listed) + (f" and {len(sets) - shown:,} more" * (len(sets) > shown))


def _combined(parts: Sequence[tuple[Sequence[int], int]]) -> Iterable[tuple[int, ...]]:
    """All combinations of k columns from each list, with its own k for each list."""
    number = math.prod(math.comb(len(places), k) for places, k in parts)
    if number > GROUP_LIMIT:
        raise WorkloadError(
            f"these columns have {number:,} marginals, more than the {GROUP_LIMIT:,} allowed; "
            "choose columns or sets"
        )
    ways = (itertools.combinations(places, k) for places, k in parts)
    return [tuple(itertools.chain(*each)) for each in itertools.product(*ways)]


def _values(schema: Schema, place: int) -> int:
    column = schema.columns[place]
    if not isinstance(column, Discrete):
        raise WorkloadError(
            f"column {column.name!r} is {column.kind}, not categorical or boolean; "
            "use tree_marginals or range_marginals"
        )
    return len(column.values) + column.nullable


def _named(schema: Schema, sets: Iterable[Sequence[str]]) -> Iterable[tuple[int, ...]]:
    for names in sets:
        if isinstance(names, str):
            raise WorkloadError(f"a column set is a list of names, not {names!r}")
        if not names:
            raise WorkloadError("a column set is empty")
        yield tuple(_places(schema, names))


def _places(schema: Schema, names: Sequence[str]) -> list[int]:
    places = [position_of(schema, name) for name in names]
    if len(set(places)) < len(places):
        raise WorkloadError(f"name each column once, not {list(names)!r}")
    return places


def _names(schema: Schema, sort: type) -> list[str]:
    return [column.name for column in schema if isinstance(column, sort)]
