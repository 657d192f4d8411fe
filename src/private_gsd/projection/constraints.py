"""Constraints: the rules of a schema for the kernels, and random rows that keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import SchemaError
from private_gsd.kernels.cells import fill_atoms
from private_gsd.kernels.rules import Rules as Kernel
from private_gsd.kernels.rules import mark_broken, random_rows
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.sql.rules import PATIENCE, Rules, UndecidedError, check_rules
from private_gsd.workloads.offsets import starts_of
from private_gsd.workloads.programs import compiled, cut_columns, depth_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.cells import Columns
    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]

# Number of rows of a pool, which are found from the rules alone. Random rows begin as copies of
# these rows.
POOL = 500
# Number of times that each value of a random row is redrawn.
ROUNDS = 10
# Number of failed attempts to find a row after which the pool is left as it is.
MISSES = 20

_POOL = 2**60  # the stream of random numbers of pools


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows that keep some rules, from which tables of such rows are made.

    Attributes:
        rules: The rules.
        kernel: The rules as the kernels' arrays.
        rows: The rows, encoded.
        depth: The most numbers that the program of a rule holds at once.
    """

    rules: Rules
    kernel: Kernel
    rows: Matrix
    depth: int

    @classmethod
    def of(
        cls,
        schema: Schema,
        cuts: Sequence[NDArray[np.float64]],
        seed: int,
        size: int = POOL,
    ) -> Pool | None:
        """The pool of a schema; None if the schema has no rules.

        Args:
            schema: The schema.
            cuts: The cut points of each column, with those of the rules.
            seed: The seed of the search.
            size: The largest number of rows.
        """
        rules = check_rules(schema)
        if not rules.texts:
            return None
        rng = np.random.default_rng([seed, _POOL])
        # ``check_rules`` found a row in this way, so there is at least one.
        first = rules.find(np.random.default_rng(0))
        if first is None:
            raise SchemaError("no row that keeps the rules of the schema was found")
        found, misses = [first], 0
        while len(found) < size and misses < MISSES:
            try:
                row = rules.find(rng, patience=PATIENCE // 10)
            except UndecidedError:
                row = None
            if row is None:
                misses += 1
            else:
                found.append(row)
        return cls(rules, kernel_of(rules, cuts), np.array(found), depth_of(rules.truths))

    def fill(self, columns: Columns, seed: int, number: int, values: Matrix) -> None:
        """Fill a table with rows that keep the rules."""
        random_rows(
            self.kernel, columns, self.rows, ROUNDS, seed, number, values, np.zeros(self.depth)
        )


def kernel_of(rules: Rules, cuts: Sequence[NDArray[np.float64]]) -> Kernel:
    """The rules as the kernels' arrays."""
    blocks = {*rules.blocks, *(columns for columns in rules.columns if len(columns) > 1)}
    kept = sorted(block for block in blocks if block)
    tied = sorted({column for block in rules.blocks for column in block})
    return Kernel(
        compiled(rules.schema, rules.truths, np.arange(len(rules.truths)), cuts),
        np.array(tied, dtype=np.int64),
        starts_of([len(block) for block in kept]),
        np.array([column for block in kept for column in block], dtype=np.int64),
    )


def broken_rules(schema: Schema, values: Matrix) -> dict[str, int]:
    """The rules that an encoded table breaks, and the number of rows that break each."""
    numbers = broken_by_rule(schema, values).tolist()
    return {text: n for text, n in zip(schema.constraints, numbers, strict=True) if n}


def broken_by_rule(schema: Schema, values: Matrix) -> NDArray[np.int64]:
    """For each rule, the number of rows of an encoded table that break it."""
    return np.asarray(_broken(schema, values).sum(axis=0))


def broken_rows(schema: Schema, values: Matrix) -> NDArray[np.bool_]:
    """For each row of an encoded table, whether it breaks any rule."""
    return np.asarray(_broken(schema, values).any(axis=1))


def _broken(schema: Schema, values: Matrix) -> NDArray[np.bool_]:
    """For each row and rule, whether the row breaks it."""
    rules = check_rules(schema)
    broken = np.zeros((len(values), len(rules.texts)), dtype=np.bool_)
    if not rules.texts:
        return broken
    cuts = _cuts(schema)
    atoms = np.empty(values.shape, dtype=np.int32)
    fill_atoms(columns_of(schema, cuts), values, atoms)
    kernel = kernel_of(rules, cuts)
    mark_broken(kernel, values, atoms, np.zeros(depth_of(rules.truths)), broken)
    return broken


def first_table(schema: Schema, rows: int, seed: int) -> Matrix:
    """A table of random rows that keep the schema's rules."""
    cuts = _cuts(schema)
    pool = Pool.of(schema, cuts, seed)
    return random_table(columns_of(schema, cuts), rows, seed, pool=pool)


def _cuts(schema: Schema) -> list[NDArray[np.float64]]:
    """The cut points of the rules, for each column."""
    return cut_columns(schema, check_rules(schema).truths)[0]
