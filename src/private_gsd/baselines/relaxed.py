"""Relaxed rows: rows whose answers have gradients, and how they become rows again.

A discrete column of a relaxed row is a chance for each value, and a numeric column is a number of
[0, 1] with, where it is nullable, a chance of null. What a query asks of a number is asked by a
sigmoid, the more sharply the larger its inverse temperature. Numbers on a grid are cut half way
between two of its points, so that rounding changes no answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.baselines.drawing import draw_places
from private_gsd.baselines.features import Atoms
from private_gsd.baselines.products import (
    LARGEST,
    ProductQueries,
    product_answers,
    too_many_products,
)
from private_gsd.errors import WorkloadError
from private_gsd.schema import Discrete
from private_gsd.workloads import Conjunctions, Halfspaces
from private_gsd.workloads.tables import tables_asked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.baselines.optional import Gradients
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

# How sure a relaxed row is of a value that it begins with.
SURE = 2.0


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
    kinds = (Conjunctions, Halfspaces)
    size = sum(int(each.group_sizes.sum()) for each in workload.families if isinstance(each, kinds))
    if size * points > LARGEST:
        return f"{size:,} queries are too many for {points:,} relaxed rows at once"
    return too_many_products(workload, points)


class Relaxation:
    """A workload's queries, asked of relaxed rows.

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
        tables = tables_asked(workload)
        self._atoms = Atoms.of(schema, tables)
        self._discrete = [p for p, column in enumerate(schema) if isinstance(column, Discrete)]
        self._numeric = [p for p, column in enumerate(schema) if p not in self._discrete]
        self._nullable = np.array([schema.columns[p].nullable for p in self._numeric], dtype=bool)
        bounds = [schema.columns[p].bounds for p in self._numeric]
        self._bounds = np.array(bounds, dtype=np.float64).reshape(-1, 2)
        sizes = [self._atoms.sizes[place] for place in self._discrete]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._products = ProductQueries(self._atoms, tables, points) if tables else None
        self._edges = [self._boundaries(place) for place in self._numeric]
        self._conjunctions: list[tuple[NDArray[Any], ...]] = []
        self._halfspaces: list[tuple[NDArray[Any], ...]] = []
        found = [] if self._products is None else [self._products.queries]
        later: list[NDArray[np.int64]] = []
        first = 0
        for family in workload.families:
            size = int(family.group_sizes.sum())
            numbers = np.arange(first, first + size)
            if isinstance(family, Conjunctions):
                self._add_conjunctions(family)
                found.append(numbers)
            elif isinstance(family, Halfspaces):
                self._halfspaces.append(family.parameters(np.arange(size)))
                later.append(numbers)
            first += size
        # Which query each answer is, in the order that they are found.
        self.queries: NDArray[np.int64] = np.concatenate([*found, *later])

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

    def _add_conjunctions(self, family: Conjunctions) -> None:
        value = self._starts[np.searchsorted(self._discrete, family.category)] + family.value
        numbers = np.searchsorted(self._numeric, family.numbers)
        denominators = self._atoms.columns.denominators[family.numbers]
        grid = denominators > 0
        steps = np.ceil(np.round(family.thresholds * denominators, 6)) - 0.5
        thresholds = np.where(grid, steps / np.where(grid, denominators, 1), family.thresholds)
        low, high = self._bounds[numbers, 0], self._bounds[numbers, 1]
        self._conjunctions.append((value, numbers, (thresholds - low) / (high - low)))

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
        """The relaxed share of each query, in the order of ``queries``.

        Args:
            rows: The relaxed rows.
            sharpness: The inverse temperature.
        """
        jax, jnp, _ = self._tools
        values = self._values(rows)
        null = jnp.where(self._nullable[:, None], jax.nn.sigmoid(rows.nulls), 0.0)

        def below(thresholds: Any, numbers: Any) -> Any:
            return jax.nn.sigmoid(sharpness * (thresholds - numbers))

        found = []
        if self._products is not None:
            parts: dict[int, Any] = {}
            for number, place in enumerate(self._discrete):
                parts[place] = values[self._starts[number] : self._starts[number + 1]]
            for number, place in enumerate(self._numeric):
                edges = jnp.asarray(self._edges[number], dtype=jnp.float32)[:, None]
                ends = below(edges, rows.numbers[number])
                one = jnp.ones((1, ends.shape[1]))
                pieces = jnp.diff(jnp.concatenate([0 * one, ends, one]), axis=0)
                parts[place] = pieces * (1 - null[number])
                if self._nullable[number]:
                    parts[place] = jnp.concatenate([parts[place], null[number][None]])
            chances = jnp.concatenate([parts[place] for place in range(len(self.schema))])
            found.append(product_answers(jnp, self._products.layout, chances))
        for value, numbers, thresholds in self._conjunctions:
            product = values[value]
            for column, threshold in zip(numbers.T, thresholds.T, strict=True):
                edges = jnp.asarray(threshold, dtype=jnp.float32)[:, None]
                product = product * below(edges, rows.numbers[column]) * (1 - null[column])
            found.append(product.mean(axis=1))
        if self._halfspaces:
            hot = self._one_hot(values, rows.numbers, null)
            for coefficients, thresholds in self._halfspaces:
                found.append(below(thresholds[:, None], coefficients.T @ hot).mean(axis=1))
        return jnp.concatenate(found)

    def _values(self, rows: Rows) -> Any:
        """The chances of every discrete column's values."""
        jax, jnp, _ = self._tools
        parts = [
            jax.nn.softmax(rows.logits[begin:end], axis=0)
            for begin, end in zip(self._starts[:-1], self._starts[1:], strict=True)
        ]
        return jnp.concatenate([rows.logits[:0], *parts])

    def _one_hot(self, values: Any, numbers: Any, null: Any) -> Any:
        """The one-hot encoding that halfspaces have, a column for each relaxed row."""
        parts: dict[int, Any] = {}
        for number, place in enumerate(self._discrete):
            parts[place] = values[self._starts[number] : self._starts[number + 1]]
        for number, place in enumerate(self._numeric):
            parts[place] = ((1 - null[number]) * numbers[number])[None]
            if self._nullable[number]:
                parts[place] = self._tools.jnp.concatenate([parts[place], null[number][None]])
        return self._tools.jnp.concatenate([parts[place] for place in range(len(self.schema))])

    def round(self, rows: Rows, number: int, rng: np.random.Generator) -> Matrix:
        """Rows of a table: as many of each relaxed row as goes, values drawn by their chances."""
        points = rows.numbers.shape[1]
        whole = np.arange(number - number % points) % points
        which = np.concatenate([whole, rng.permutation(points)])[:number]
        table = np.empty((number, len(self.schema)))
        values = np.asarray(self._values(rows), dtype=np.float64)
        for column, place in enumerate(self._discrete):
            mine = values[self._starts[column] : self._starts[column + 1]]
            codes = draw_places(mine, which, rng).astype(float)
            known = self.schema.columns[place]
            assert isinstance(known, Discrete)
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
            table[:, place] = np.where(null & self._nullable[column], np.nan, numbers)
        return table
