"""Relaxed rows: rows whose answers have gradients, and how they become rows again.

A discrete column of a relaxed row is a chance for each value, and a numeric column is a number of
[0, 1] with, where it is nullable, a chance of null. What a query asks of a number is asked by a
sigmoid, the more sharply the larger its inverse temperature. Numbers on a grid are cut half way
between two of its points, so that rounding changes no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.errors import WorkloadError, expect_type
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.baselines.drawing import draw_places
from private_gsd.projection.baselines.products import (
    LARGEST,
    Layout,
    ProductQueries,
    product_answers,
    too_many_products,
)
from private_gsd.schema import Discrete
from private_gsd.workloads.layout import QueryLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.projection.baselines.optional import Gradients
    from private_gsd.workloads import Workload
    from private_gsd.workloads.layout import ConjunctionQueries

    Matrix = NDArray[np.float64]

# How sure a relaxed row is of a value that it begins with.
SURE = 2.0
# Queries that come one by one are padded to a multiple of this, so that little is compiled anew.
TOGETHER = 16


class Shape(NamedTuple):
    """What of a schema relaxed rows depend on.

    Attributes:
        sizes: How many values each discrete column has, its null among them; 0 of a numeric one.
        nullable: Whether each column is.
    """

    sizes: tuple[int, ...]
    nullable: tuple[bool, ...]

    @property
    def discrete(self) -> list[int]:
        """The places of discrete columns."""
        return [place for place, size in enumerate(self.sizes) if size > 0]

    @property
    def numeric(self) -> list[int]:
        """The places of numeric columns."""
        return [place for place, size in enumerate(self.sizes) if size == 0]


class Queries(NamedTuple):
    """What is asked, in arrays.

    Attributes:
        products: The marginals; None where there are none.
        edges: For marginals, where each numeric column's atoms begin, but for the first.
        conjunctions: By the number of their thresholds: each query's value among all, its
            numeric columns, and what each is below.
        halfspaces: Coefficients and thresholds, once or not at all.
    """

    products: Layout | None
    edges: tuple[Any, ...]
    conjunctions: tuple[tuple[Any, Any, Any], ...]
    halfspaces: tuple[tuple[Any, Any], ...]


class Rows(NamedTuple):
    """Relaxed rows, a column each.

    Attributes:
        logits: Of every value of every discrete column, its null last.
        numbers: Of every numeric column, between 0 and 1.
        nulls: Of every numeric column, the logit of a null; of no meaning where it is not nullable.
    """

    logits: Any
    numbers: Any
    nulls: Any


def too_many_queries(workload: Workload, points: int) -> str | None:
    """Why a workload has too many queries for so many relaxed rows, if it has."""
    layout = QueryLayout.of(workload.families)
    size = sum(len(each.category) for each in layout.conjunctions)
    size += sum(each.size for each in layout.halfspaces)
    if size * points > LARGEST:
        return f"{size:,} queries are too many for {points:,} relaxed rows at once"
    return too_many_products(workload, points)


def joined(parts: Sequence[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """Several queries' arrays, one after the other; the last query again up to a full number."""
    arrays = [np.concatenate(each) for each in zip(*parts, strict=True)]
    places = np.arange(-(-len(arrays[0]) // TOGETHER) * TOGETHER)
    return tuple(array[np.minimum(places, len(array) - 1)] for array in arrays)


class Relaxation:
    """A workload's queries, asked of relaxed rows.

    Attributes:
        shape: The columns.
        asked: The queries.
        queries: Which query each answer is; those that fill up a number are there again.
        weights: 1, and 0 for those that fill up.

    Args:
        tools: JAX and Optax.
        workload: Marginals, conjunctions and halfspaces.
        points: How many relaxed rows there will be.
    """

    def __init__(self, tools: Gradients, workload: Workload, points: int) -> None:
        reason = too_many_queries(workload, points)
        if reason is not None:
            raise WorkloadError(reason)
        self._tools = tools
        self.schema = schema = workload.schema
        layout = QueryLayout.of(workload.families)
        tables = layout.tables
        self._atoms = Atoms.of(schema, tables)
        self.shape = Shape(
            tuple(
                size if isinstance(column, Discrete) else 0
                for size, column in zip(self._atoms.sizes, schema, strict=True)
            ),
            tuple(column.nullable for column in schema),
        )
        self._discrete, self._numeric = self.shape.discrete, self.shape.numeric
        bounds = [schema.columns[p].bounds for p in self._numeric]
        self._bounds = np.array(bounds, dtype=np.float64).reshape(-1, 2)
        sizes = [self.shape.sizes[place] for place in self._discrete]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        # Families come one by one as they are measured; each kind is asked all at once.
        conjunctions: dict[int, list[tuple[NDArray[Any], ...]]] = {}
        halfspaces: list[tuple[NDArray[Any], ...]] = []
        for family in layout.conjunctions:
            kind = conjunctions.setdefault(family.numbers.shape[1], [])
            numbers = family.query + np.arange(len(family.category))
            kind.append((*self._thresholds(family), numbers))
        for each in layout.halfspaces:
            numbers = np.arange(each.size)
            coefficients, thresholds = each.parameters(numbers)
            halfspaces.append((coefficients.T, thresholds, each.query + numbers))
        alike = [joined(parts) for parts in conjunctions.values()]
        halves = [joined(halfspaces)] if halfspaces else []
        products = ProductQueries(self._atoms, tables, points) if tables else None
        self.asked = Queries(
            None if products is None else products.layout,
            tuple(self._boundaries(place) for place in self._numeric),
            tuple((value, columns, cuts) for value, columns, cuts, _ in alike),
            tuple((coefficients, cuts) for coefficients, cuts, _ in halves),
        )
        found = [] if products is None else [products.queries]
        found += [kind[-1] for kind in (*alike, *halves)]
        self.queries: NDArray[np.int64] = np.concatenate(found)
        self.weights = np.zeros(len(self.queries), dtype=np.float32)
        self.weights[np.unique(self.queries, return_index=True)[1]] = 1

    def _unit(self, number: int, values: Any) -> Any:
        low, high = self._bounds[number]
        return (values - low) / (high - low)

    def _boundaries(self, place: int) -> NDArray[np.float64]:
        """Where a numeric column's atoms begin, but for the first, as numbers of [0, 1]."""
        columns = self._atoms.columns
        entries = columns.starts[place] + self._atoms.kept[place]
        firsts = columns.firsts[entries][: len(entries) - self.schema.columns[place].nullable][1:]
        denominator = columns.denominators[place]
        values = firsts if denominator == 0 else (firsts - 0.5) / denominator
        return np.asarray(self._unit(self._numeric.index(place), values))

    def _thresholds(self, family: ConjunctionQueries) -> tuple[NDArray[Any], ...]:
        """Of each query its value among all, its numeric columns, and what each is below."""
        value = self._starts[np.searchsorted(self._discrete, family.category)] + family.value
        numbers = np.searchsorted(self._numeric, family.numbers)
        denominators = self._atoms.columns.denominators[family.numbers]
        grid = denominators > 0
        steps = np.ceil(np.round(family.thresholds * denominators, 6)) - 0.5
        thresholds = np.where(grid, steps / np.where(grid, denominators, 1), family.thresholds)
        low, high = self._bounds[numbers, 0], self._bounds[numbers, 1]
        return value, numbers, (thresholds - low) / (high - low)

    def begin(self, key: Any, points: int, table: Matrix | None) -> Rows:
        """Relaxed rows to begin with: random ones, or those of a table."""
        jax, jnp, _ = self._tools
        keys = jax.random.split(key, 3)
        shape = (len(self._numeric), points)
        if table is None:
            return Rows(
                jax.random.normal(keys[0], (int(self._starts[-1]), points)),
                jax.random.uniform(keys[1], shape),
                jax.random.normal(keys[2], shape),
            )
        chosen = table[np.arange(points) * len(table) // points]
        logits = np.zeros((int(self._starts[-1]), points))
        for number, place in enumerate(self._discrete):
            last = self._starts[number + 1] - self._starts[number] - 1
            codes = np.where(np.isnan(chosen[:, place]), last, chosen[:, place]).astype(int)
            logits[self._starts[number] + codes, np.arange(points)] = SURE
        numbers = chosen[:, self._numeric].T
        null = np.isnan(numbers)
        low, high = self._bounds[:, :1], self._bounds[:, 1:]
        units = np.where(null, 0.5, (numbers - low) / (high - low))
        return Rows(
            jnp.asarray(logits, dtype=jnp.float32),
            jnp.asarray(units, dtype=jnp.float32),
            jnp.asarray(np.where(null, SURE, -SURE), dtype=jnp.float32),
        )

    def answers(self, rows: Rows, sharpness: Any) -> Any:
        """The relaxed share of each query, in the order of ``queries``."""
        return relaxed_answers(self._tools, self.shape, self.asked, rows, sharpness)

    def round(self, rows: Rows, number: int, rng: np.random.Generator) -> Matrix:
        """Rows of a table: as many of each relaxed row as goes, values drawn by their chances."""
        points = rows.numbers.shape[1]
        whole = np.arange(number - number % points) % points
        which = np.concatenate([whole, rng.permutation(points)])[:number]
        table = np.empty((number, len(self.schema)))
        values_of = chances(self._tools, self.shape, rows)
        for values, place in zip(values_of, self._discrete, strict=True):
            mine = np.asarray(values, dtype=np.float64)
            codes = draw_places(mine, which, rng).astype(float)
            known = expect_type(Discrete, self.schema.columns[place])
            table[:, place] = np.where(codes == len(known.values), np.nan, codes)
        for column, place in enumerate(self._numeric):
            low, high = self._bounds[column]
            numbers = low + np.asarray(rows.numbers[column], dtype=np.float64) * (high - low)
            denominator = self._atoms.columns.denominators[place]
            if denominator > 0:
                numbers = np.rint(numbers * denominator) / denominator
            chance = 1 / (1 + np.exp(-np.asarray(rows.nulls[column], dtype=np.float64)))
            null = rng.random(number) < chance[which]
            numbers = np.clip(numbers, low, high)[which]
            table[:, place] = np.where(null & self.shape.nullable[place], np.nan, numbers)
        return table


def relaxed_answers(tools: Gradients, shape: Shape, asked: Queries, rows: Rows, sharp: Any) -> Any:
    """The relaxed share of each query.

    Args:
        tools: JAX and Optax.
        shape: The columns.
        asked: The queries.
        rows: The relaxed rows.
        sharp: The inverse temperature.
    """
    jax, jnp, _ = tools
    values = chances(tools, shape, rows)
    nullable = np.array([shape.nullable[place] for place in shape.numeric], dtype=bool)
    null = jnp.where(nullable[:, None], jax.nn.sigmoid(rows.nulls), 0.0)

    def below(thresholds: Any, numbers: Any) -> Any:
        return jax.nn.sigmoid(sharp * (thresholds - numbers))

    def by_column(numbers: list[Any]) -> Any:
        """Of every column what it has: its values' chances, or this; and a null's."""
        parts = dict(zip(shape.discrete, values, strict=True))
        for number, place in enumerate(shape.numeric):
            parts[place] = numbers[number] * (1 - null[number])
            if shape.nullable[place]:
                parts[place] = jnp.concatenate([parts[place], null[number][None]])
        return jnp.concatenate([parts[place] for place in range(len(shape.sizes))])

    found = []
    if asked.products is not None:
        pieces = []
        for edges, numbers in zip(asked.edges, rows.numbers, strict=True):
            ends = below(edges[:, None], numbers)
            one = jnp.ones((1, ends.shape[1]))
            pieces.append(jnp.diff(jnp.concatenate([0 * one, ends, one]), axis=0))
        found.append(product_answers(jnp, asked.products, by_column(pieces)))
    for value, columns, thresholds in asked.conjunctions:
        product = jnp.concatenate(values)[value]
        for column, threshold in zip(columns.T, thresholds.T, strict=True):
            product = product * below(threshold[:, None], rows.numbers[column]) * (1 - null[column])
        found.append(product.mean(axis=1))
    for coefficients, thresholds in asked.halfspaces:
        hot = by_column([numbers[None] for numbers in rows.numbers])
        found.append(below(thresholds[:, None], coefficients @ hot).mean(axis=1))
    return jnp.concatenate(found)


def chances(tools: Gradients, shape: Shape, rows: Rows) -> list[Any]:
    """The chances of each discrete column's values."""
    jax, jnp, _ = tools
    if not shape.discrete:
        return []
    # The gradient of a split is one array; that of slices is as many, each as large as all.
    ends = np.cumsum([shape.sizes[place] for place in shape.discrete])
    return [jax.nn.softmax(part, axis=0) for part in jnp.split(rows.logits, ends[:-1])]
