"""Relaxed rows: rows whose answers have gradients, and their conversion to rows of a table.

A discrete column of a relaxed row has a probability for each value. A numeric column has a number
in [0, 1] and, where it is nullable, a probability of null. Comparisons of numbers become sigmoids,
which are sharper at a larger inverse temperature. Columns on a grid are cut half way between two
grid points, so that rounding changes no answer.
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
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.projection.baselines.optional import Gradients
    from private_gsd.workloads import Workload
    from private_gsd.workloads.layout import ConjunctionQueries

    Matrix = NDArray[np.float64]

# Logit of the value of a row that a relaxed row starts from.
FIRST_LOGIT = 2.0
# The number of queries is padded to a multiple of this, so that functions are rarely recompiled.
PADDING = 16


class RelaxedShape(NamedTuple):
    """The properties of a schema that relaxed rows depend on.

    Attributes:
        sizes: The number of values of each discrete column, with its null; 0 for numeric columns.
        nullable: Whether each column is nullable.
    """

    sizes: tuple[int, ...]
    nullable: tuple[bool, ...]

    @property
    def discrete(self) -> list[int]:
        """The positions of discrete columns."""
        return [place for place, size in enumerate(self.sizes) if size > 0]

    @property
    def numeric(self) -> list[int]:
        """The positions of numeric columns."""
        return [place for place, size in enumerate(self.sizes) if size == 0]


class Queries(NamedTuple):
    """The queries of a workload, in arrays.

    Attributes:
        products: The marginals; None where there are none.
        edges: For marginals, where each numeric column's atoms begin, but for the first.
        conjunctions: For each number of thresholds: each query's value among all values, its
            numeric columns, and their thresholds.
        halfspaces: Coefficients and thresholds, in one entry or none.
    """

    products: Layout | None
    edges: tuple[Any, ...]
    conjunctions: tuple[tuple[Any, Any, Any], ...]
    halfspaces: tuple[tuple[Any, Any], ...]


class RelaxedRows(NamedTuple):
    """Relaxed rows, one in each column of the arrays.

    Attributes:
        logits: The logits of all values of all discrete columns, each column's null last.
        numbers: The numbers of all numeric columns, between 0 and 1.
        nulls: The logits of nulls of all numeric columns; unused where a column is not nullable.
    """

    logits: Any
    numbers: Any
    nulls: Any


def too_many_queries(workload: Workload, points: int) -> str | None:
    """Why a workload has too many queries for ``points`` relaxed rows; None if it has not."""
    layout = QueryLayout.of(workload.families)
    size = sum(len(each.category) for each in layout.conjunctions)
    size += sum(each.size for each in layout.halfspaces)
    if size * points > LARGEST:
        return f"{size:,} queries are too many for {points:,} relaxed rows at once"
    return too_many_products(workload, points)


def joined(parts: Sequence[tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
    """The arrays of several families, concatenated and padded with the last query."""
    arrays = [np.concatenate(each) for each in zip(*parts, strict=True)]
    places = np.arange(-(-len(arrays[0]) // PADDING) * PADDING)
    return tuple(array[np.minimum(places, len(array) - 1)] for array in arrays)


class Relaxation:
    """The queries of a workload as functions of relaxed rows.

    Attributes:
        shape: The columns.
        layout: The queries.
        queries: The number of the query of each answer; padding repeats queries.
        weights: The weight of each answer: 1, and 0 for padding.

    Args:
        tools: JAX and Optax.
        workload: Marginals, conjunctions and halfspaces.
        points: The number of relaxed rows.
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
        self.shape = RelaxedShape(
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
        self._starts = starts_of(sizes)
        # Each family of a measurement may have few queries; those of one type are joined.
        conjunctions: dict[int, list[tuple[NDArray[Any], ...]]] = {}
        halfspaces: list[tuple[NDArray[Any], ...]] = []
        for family in layout.conjunctions:
            alike = conjunctions.setdefault(family.numbers.shape[1], [])
            numbers = family.query + np.arange(len(family.category))
            alike.append((*self._thresholds(family), numbers))
        for each in layout.halfspaces:
            numbers = np.arange(each.size)
            coefficients, thresholds = each.parameters(numbers)
            halfspaces.append((coefficients.T, thresholds, each.query + numbers))
        conjunctions_of = [joined(parts) for parts in conjunctions.values()]
        halfspaces_of = [joined(halfspaces)] if halfspaces else []
        products = ProductQueries(self._atoms, tables, points) if tables else None
        self.layout = Queries(
            None if products is None else products.layout,
            tuple(self._boundaries(place) for place in self._numeric),
            tuple((value, columns, cuts) for value, columns, cuts, _ in conjunctions_of),
            tuple((coefficients, cuts) for coefficients, cuts, _ in halfspaces_of),
        )
        found = [] if products is None else [products.queries]
        found += [each[-1] for each in (*conjunctions_of, *halfspaces_of)]
        self.queries: NDArray[np.int64] = np.concatenate(found)
        self.weights = np.zeros(len(self.queries), dtype=np.float32)
        self.weights[np.unique(self.queries, return_index=True)[1]] = 1

    def _unit(self, number: int, values: Any) -> Any:
        low, high = self._bounds[number]
        return (values - low) / (high - low)

    def _boundaries(self, place: int) -> NDArray[np.float64]:
        """Where a numeric column's atoms begin, except the first, as numbers in [0, 1]."""
        columns = self._atoms.columns
        entries = columns.starts[place] + self._atoms.segments[place]
        firsts = columns.firsts[entries][: len(entries) - self.schema.columns[place].nullable][1:]
        denominator = columns.denominators[place]
        values = firsts if denominator == 0 else (firsts - 0.5) / denominator
        return np.asarray(self._unit(self._numeric.index(place), values))

    def _thresholds(self, family: ConjunctionQueries) -> tuple[NDArray[Any], ...]:
        """For each query its value among all values, its numeric columns, and their thresholds."""
        value = self._starts[np.searchsorted(self._discrete, family.category)] + family.value
        numbers = np.searchsorted(self._numeric, family.numbers)
        denominators = self._atoms.columns.denominators[family.numbers]
        grid = denominators > 0
        steps = np.ceil(np.round(family.thresholds * denominators, 6)) - 0.5
        thresholds = np.where(grid, steps / np.where(grid, denominators, 1), family.thresholds)
        low, high = self._bounds[numbers, 0], self._bounds[numbers, 1]
        return value, numbers, (thresholds - low) / (high - low)

    def begin(self, key: Any, points: int, table: Matrix | None) -> RelaxedRows:
        """The first relaxed rows: random, or from the rows of a table."""
        jax, jnp, _ = self._tools
        keys = jax.random.split(key, 3)
        shape = (len(self._numeric), points)
        if table is None:
            return RelaxedRows(
                jax.random.normal(keys[0], (int(self._starts[-1]), points)),
                jax.random.uniform(keys[1], shape),
                jax.random.normal(keys[2], shape),
            )
        chosen = table[np.arange(points) * len(table) // points]
        logits = np.zeros((int(self._starts[-1]), points))
        for number, place in enumerate(self._discrete):
            last = self._starts[number + 1] - self._starts[number] - 1
            codes = np.where(np.isnan(chosen[:, place]), last, chosen[:, place]).astype(int)
            logits[self._starts[number] + codes, np.arange(points)] = FIRST_LOGIT
        numbers = chosen[:, self._numeric].T
        null = np.isnan(numbers)
        low, high = self._bounds[:, :1], self._bounds[:, 1:]
        units = np.where(null, 0.5, (numbers - low) / (high - low))
        return RelaxedRows(
            jnp.asarray(logits, dtype=jnp.float32),
            jnp.asarray(units, dtype=jnp.float32),
            jnp.asarray(np.where(null, FIRST_LOGIT, -FIRST_LOGIT), dtype=jnp.float32),
        )

    def answers(self, rows: RelaxedRows, sharpness: Any) -> Any:
        """The relaxed share of each query, in the order of ``queries``."""
        return relaxed_answers(self._tools, self.shape, self.layout, rows, sharpness)

    def round(self, rows: RelaxedRows, number: int, rng: np.random.Generator) -> Matrix:
        """Draw rows of a table by their probabilities, equally many for each relaxed row."""
        points = rows.numbers.shape[1]
        whole = np.arange(number - number % points) % points
        which = np.concatenate([whole, rng.permutation(points)])[:number]
        table = np.empty((number, len(self.schema)))
        values_of = probabilities(self._tools, self.shape, rows)
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
            null_probability = 1 / (1 + np.exp(-np.asarray(rows.nulls[column], dtype=np.float64)))
            null = rng.random(number) < null_probability[which]
            numbers = np.clip(numbers, low, high)[which]
            table[:, place] = np.where(null & self.shape.nullable[place], np.nan, numbers)
        return table


def relaxed_answers(
    tools: Gradients, shape: RelaxedShape, layout: Queries, rows: RelaxedRows, sharp: Any
) -> Any:
    """The relaxed share of each query.

    Args:
        tools: JAX and Optax.
        shape: The columns.
        layout: The queries.
        rows: The relaxed rows.
        sharp: The inverse temperature.
    """
    jax, jnp, _ = tools
    values = probabilities(tools, shape, rows)
    nullable = np.array([shape.nullable[place] for place in shape.numeric], dtype=bool)
    null = jnp.where(nullable[:, None], jax.nn.sigmoid(rows.nulls), 0.0)

    def below(thresholds: Any, numbers: Any) -> Any:
        return jax.nn.sigmoid(sharp * (thresholds - numbers))

    def by_column(numbers: list[Any]) -> Any:
        """For each column the probabilities of its values, or its numbers, and those of nulls."""
        parts = dict(zip(shape.discrete, values, strict=True))
        for number, place in enumerate(shape.numeric):
            parts[place] = numbers[number] * (1 - null[number])
            if shape.nullable[place]:
                parts[place] = jnp.concatenate([parts[place], null[number][None]])
        return jnp.concatenate([parts[place] for place in range(len(shape.sizes))])

    found = []
    if layout.products is not None:
        pieces = []
        for edges, numbers in zip(layout.edges, rows.numbers, strict=True):
            ends = below(edges[:, None], numbers)
            one = jnp.ones((1, ends.shape[1]))
            pieces.append(jnp.diff(jnp.concatenate([0 * one, ends, one]), axis=0))
        found.append(product_answers(jnp, layout.products, by_column(pieces)))
    for value, columns, thresholds in layout.conjunctions:
        product = jnp.concatenate(values)[value]
        for column, threshold in zip(columns.T, thresholds.T, strict=True):
            product = product * below(threshold[:, None], rows.numbers[column]) * (1 - null[column])
        found.append(product.mean(axis=1))
    for coefficients, thresholds in layout.halfspaces:
        hot = by_column([numbers[None] for numbers in rows.numbers])
        found.append(below(thresholds[:, None], coefficients @ hot).mean(axis=1))
    return jnp.concatenate(found)


def probabilities(tools: Gradients, shape: RelaxedShape, rows: RelaxedRows) -> list[Any]:
    """The probabilities of each discrete column's values."""
    jax, jnp, _ = tools
    if not shape.discrete:
        return []
    # The gradient of a split is one array; that of each slice would be as large as all.
    ends = np.cumsum([shape.sizes[place] for place in shape.discrete])
    return [jax.nn.softmax(part, axis=0) for part in jnp.split(rows.logits, ends[:-1])]
