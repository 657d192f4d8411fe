"""Conjunctions of a category and several thresholds; random prefixes are such queries."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import WorkloadError, expect_type
from private_gsd.kernels.conjunctions import count_conjunctions
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads.checks import require_sound, whole
from private_gsd.workloads.conditions import is_between, is_value
from private_gsd.workloads.family import QUERY_COST, SingleQueries
from private_gsd.workloads.offsets import starts_of
from private_gsd.workloads.workload import CELL_LIMIT, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads.family import Arrays
    from private_gsd.workloads.layout import QueryLayout


class Conjunctions(SingleQueries):
    """Queries ``category = value AND number < threshold AND …``, each in a group of its own.

    A null meets no threshold. For a category, null is one more value, after the others.

    Attributes:
        category: For each query, the position of its discrete column.
        value: For each query, the code of its category; the code after the last value means null.
        numbers: For each query, the positions of its numeric columns.
        thresholds: For each of these columns, the number that its value must be less than.
    """

    name: ClassVar[str] = "conjunctions"
    title: ClassVar[str] = "prefixes"
    array_names: ClassVar[tuple[str, ...]] = ("category", "value", "numbers", "thresholds")

    def __init__(
        self,
        schema: Schema,
        category: NDArray[np.int64],
        value: NDArray[np.int64],
        numbers: NDArray[np.int64],
        thresholds: NDArray[np.float64],
    ) -> None:
        _check(schema, category, value, numbers, thresholds)
        self.schema = schema
        self.category = category
        self.value = value
        self.numbers = numbers
        self.thresholds = thresholds

    @property
    def size(self) -> int:
        """The number of queries."""
        return len(self.category)

    def select(self, groups: NDArray[np.int64]) -> Conjunctions:
        """The family of some of the queries."""
        return Conjunctions(
            self.schema,
            self.category[groups],
            self.value[groups],
            self.numbers[groups],
            self.thresholds[groups],
        )

    def describe(self, group: int) -> str:
        """The query as a condition in SQL."""
        column = expect_type(Discrete, self.schema.columns[self.category[group]])
        words = [is_value(column, int(self.value[group]))]
        for place, threshold in zip(self.numbers[group], self.thresholds[group], strict=True):
            number = expect_type(Numeric, self.schema.columns[place])
            words.append(is_between(number, -math.inf, float(threshold)))
        return " AND ".join(words)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Count rows, in the order of the plan."""
        count_conjunctions(matrix, *self._plan, state)

    def finish(self, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """Put the counts from the order of the plan into the order of the queries."""
        counts = np.empty_like(state)
        counts[self._order] = state
        return counts

    def to_document(self) -> tuple[dict[str, Any], Arrays]:
        """The arrays of all queries."""
        return {}, {name: getattr(self, name) for name in self.array_names}

    @classmethod
    def from_document(
        cls,
        schema: Schema,
        values: Mapping[str, Any],  # noqa: ARG003
        arrays: Arrays,
    ) -> Conjunctions:
        """The inverse of ``to_document``."""
        return cls(schema, *(arrays[name] for name in cls.array_names))

    def lay_out(self, layout: QueryLayout) -> None:
        """Add the conjunctions to a layout."""
        layout.add_conjunctions(self.category, self.value, self.numbers, self.thresholds)

    @property
    def search_cost(self) -> float:
        """The estimated cost in the search; an edit evaluates the queries of its column only."""
        return float(QUERY_COST * len(self.category) * (1 + self.numbers.shape[1]))

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        # Neighbouring queries have the same columns and close thresholds, and read the same
        # bitmaps.
        return np.lexsort((self.thresholds[:, 0], *self.numbers.T))

    @cached_property
    def _plan(self) -> tuple[NDArray[np.int64] | NDArray[np.float64], ...]:
        """The arguments of the kernel ``count_conjunctions``."""
        order = self._order
        discrete, column = np.unique(self.category[order], return_inverse=True)
        sizes = [
            len(each.values) + 1  # the last is for null, also in columns without nulls
            for each in (self.schema.columns[place] for place in discrete)
            if isinstance(each, Discrete)
        ]
        begins = starts_of(sizes)
        category = begins[column] + self.value[order]
        numeric, columns = np.unique(self.numbers[order], return_inverse=True)
        columns = columns.reshape(self.numbers.shape)
        by_column = np.lexsort((self.thresholds[order].ravel(), columns.ravel()))
        places = np.empty(columns.size, dtype=np.int64)
        places[by_column] = np.arange(columns.size)
        starts = np.searchsorted(columns.ravel()[by_column], np.arange(len(numeric) + 1))
        thresholds = self.thresholds[order].ravel()[by_column]
        return (
            discrete,
            numeric,
            begins,
            category,
            columns,
            thresholds,
            places.reshape(columns.shape),
            starts.astype(np.int64),
        )


def _check(schema: Schema, category: Any, value: Any, numbers: Any, thresholds: Any) -> None:
    """Refuse arrays that the kernels could not handle, since kernels check nothing."""
    queries = len(category)
    for each in (category, value):
        require_sound(each.dtype == np.int64 and each.shape == (queries,), "conjunctions")
    require_sound(numbers.dtype == np.int64 and numbers.ndim == 2, "conjunctions")
    require_sound(
        queries > 0 and numbers.shape[0] == queries and numbers.shape[1] > 0, "conjunctions"
    )
    require_sound(
        thresholds.dtype == np.float64 and thresholds.shape == numbers.shape, "thresholds"
    )
    require_sound(np.isfinite(thresholds).all(), "thresholds")
    for places, sort in ((category, Discrete), (numbers, Numeric)):
        require_sound(((places >= 0) & (places < len(schema))).all(), "a column's position")
        used = (schema.columns[place] for place in np.unique(places))
        require_sound(all(isinstance(column, sort) for column in used), "columns")
    sizes = np.array([len(c.values) + c.nullable if isinstance(c, Discrete) else 0 for c in schema])
    require_sound(((value >= 0) & (value < sizes[category])).all(), "values")


def random_prefixes(schema: Schema, count: int, seed: int = 0, *, k: int = 3) -> Workload:
    """Random k-way prefixes: a random category and k - 1 random thresholds.

    As in section 5.2 of the paper, where k is 3: a discrete column and k - 1 numeric columns are
    drawn uniformly, then one of the discrete column's values (null included, if nullable), then a
    threshold between the bounds of each numeric column. Each query is a group of its own.

    Args:
        schema: The public schema, with at least one discrete and k - 1 numeric columns.
        count: The number of queries.
        seed: The seed of the queries, which are public.
        k: The number of conditions of a query.
    """
    discrete = [place for place, column in enumerate(schema) if isinstance(column, Discrete)]
    numeric = [place for place, column in enumerate(schema) if isinstance(column, Numeric)]
    count = whole("count", count, 1, CELL_LIMIT)
    seed = whole("seed", seed, 0, 2**63 - 1)
    k = whole("k", k, 2, len(schema))
    if not discrete or len(numeric) < k - 1:
        raise WorkloadError(
            f"{k}-way prefixes need a discrete and {k - 1} numeric columns; "
            f"the schema has {len(discrete)} and {len(numeric)}"
        )
    rng = np.random.default_rng(seed)
    category = np.array(discrete)[rng.integers(len(discrete), size=count)]
    sizes = np.array([_values(schema, place) for place in range(len(schema))])
    value = rng.integers(sizes[category])
    numbers = np.array(numeric)[_distinct(rng, count, len(numeric), k - 1)]
    bounds = np.array(
        [column.bounds if isinstance(column, Numeric) else (0, 0) for column in schema],
        dtype=np.float64,
    )
    low, high = bounds[numbers, 0], bounds[numbers, 1]
    thresholds = low + (high - low) * rng.random(numbers.shape)
    return Workload(schema, (Conjunctions(schema, category, value, numbers, thresholds),))


def _values(schema: Schema, place: int) -> int:
    column = schema.columns[place]
    return len(column.values) + column.nullable if isinstance(column, Discrete) else 1


def _distinct(rng: np.random.Generator, count: int, choices: int, picks: int) -> NDArray[np.int64]:
    """For each query, distinct choices, drawn uniformly, in random order."""
    chosen = np.empty((count, picks), dtype=np.int64)
    for pick in range(picks):
        drawn = rng.integers(choices - pick, size=count)
        # The number counts the choices that are left: skip each choice taken, in ascending order.
        for taken in np.sort(chosen[:, :pick], axis=1).T:
            drawn += drawn >= taken
        chosen[:, pick] = drawn
    return chosen
