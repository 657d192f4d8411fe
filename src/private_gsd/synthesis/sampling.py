"""Samples of a release: some of its rows, rows that meet a condition, rows around given values.

All are made of a release alone, and cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd.data.encoding import Encoder
from private_gsd.data.sources import open_source
from private_gsd.errors import DataError, ReleaseError, did_you_mean
from private_gsd.kernels.nearest import draw_donors
from private_gsd.projection.constraints import broken_rows
from private_gsd.schema import Discrete
from private_gsd.sql.rules import UndecidedError, check_rules
from private_gsd.system.memory import BASE, require_room
from private_gsd.workloads import Predicates
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.runs.release import Release
    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]

# A given row takes the other columns of one of so many synthetic rows that are most like it, or of
# more if more are as near as the last of them.
ENOUGH = 5
# Number of other rows that are drawn for a given row whose other columns would break a rule, before
# more rows are drawn from.
TRIES = 5
# What Arrow keeps of a piece of a column, in bytes, about.
PIECE = 200


def rows_where(release: Release, where: str) -> pa.Table:
    """The synthetic rows that meet a condition in SQL; an error if there are none."""
    condition = Predicates(release.schema, [where], [1])
    table = release.synthetic
    met = table.filter(pa.array(condition.met(release.matrix)[:, 0]))
    if not met.num_rows:
        raise ReleaseError(
            f"none of the {table.num_rows:,} synthetic rows meets {where!r:.200}; ask for less, or "
            "make the release with more rows"
        )
    return met


def fill_columns(release: Release, given: Any, *, seed: int = 0) -> pa.Table:
    """Rows with the given values of some columns, and synthetic ones of all others.

    Each given row takes the other columns of a random one of the synthetic rows that are most like
    it. What it gets does not depend on the other given rows, except that among rows that are as
    good, those are drawn first that were drawn least often.

    Args:
        release: The release.
        given: A table of some of the schema's columns.
        seed: The seed of the draws.
    """
    schema = release.schema
    names, rows = _given(schema, given)
    columns = np.array([schema.names.index(name) for name in names], dtype=np.int64)
    made = Donors(schema, release.matrix, columns, seed).fill(rows)
    return pa.Table.from_batches([Encoder(schema).decode(np.asfortranarray(made))])


def _given(schema: Schema, data: Any) -> tuple[list[str], Matrix]:
    """The names that are given, and rows of the whole schema, with zeros for what is not."""
    names = list(open_source(data).columns)
    for name in names:
        if name not in schema:
            raise DataError(
                f"the given table has a column {name!r} that the schema has not"
                f"{did_you_mean(name, schema.names)}"
            )
    names = [name for name in schema.names if name in names]  # in the schema's order
    parts = list(open_source(data, schema.select(names)).encoded())
    rows = np.zeros((sum(len(part) for part in parts), len(schema)))
    rows[:, [schema.names.index(name) for name in names]] = np.concatenate(parts)
    return names, rows


class Donors:
    """Synthetic rows that give their other columns to given rows.

    Args:
        schema: The public schema.
        table: The synthetic rows.
        columns: The positions of the given columns.
        seed: The seed of the draws.
    """

    def __init__(
        self, schema: Schema, table: Matrix, columns: NDArray[np.int64], seed: int
    ) -> None:
        self._schema = schema
        self._table = np.ascontiguousarray(table)
        self._columns = columns
        self._seed = seed
        self._discrete = np.array([isinstance(column, Discrete) for column in schema])
        self._spreads = spreads(table)
        self._uses = np.zeros(len(table), dtype=np.int64)

    def draw(self, rows: Matrix, enough: int, turn: int = 0) -> NDArray[np.int64]:
        """For each given row, the number of a synthetic row that is like it.

        Args:
            rows: The given rows.
            enough: The least number of rows to draw from.
            turn: The number of draws before.
        """
        drawn = np.zeros(len(rows), dtype=np.int64)
        order = np.lexsort(rows[:, self._columns].T)  # equal rows are compared once
        known = rows[order], self._table, self._columns, self._discrete, self._spreads
        enough = min(enough, len(self._table))
        draw_donors(*known, enough, self._seed, turn, self._uses, drawn)
        found = np.empty_like(drawn)
        found[order] = drawn
        return found

    def fill(self, rows: Matrix) -> Matrix:
        """The given rows with the other columns of synthetic rows; they keep the schema's rules."""
        filled = self._filled(rows, ENOUGH, 0)
        broken = np.flatnonzero(broken_rows(self._schema, filled))
        enough, turn = ENOUGH, 1
        while broken.size and enough < TRIES * len(self._table):
            filled[broken] = self._filled(rows[broken], enough, turn)
            broken = broken[broken_rows(self._schema, filled[broken])]
            turn += 1
            if turn % TRIES == 0:
                enough *= TRIES
        return _mended(self._schema, filled, self._columns, self._seed)

    def _filled(self, rows: Matrix, enough: int, turn: int) -> Matrix:
        filled = self._table[self.draw(rows, enough, turn)]
        filled[:, self._columns] = rows[:, self._columns]
        return filled


def spreads(table: Matrix) -> NDArray[np.float64]:
    """The standard deviation of each column, without nulls; 1 where a column has a single value."""
    found = np.ones(table.shape[1])
    for place, column in enumerate(table.T):
        known = column[~np.isnan(column)]
        found[place] = known.std() if known.size else 0.0
    found[found == 0] = 1.0
    return found


def _mended(schema: Schema, start: Matrix, columns: NDArray[np.int64], seed: int) -> Matrix:
    """Rows that keep the schema's rules, the given columns as they are."""
    rules = check_rules(schema)
    rng = np.random.default_rng(seed)
    for number in np.flatnonzero(broken_rows(schema, start)).tolist():
        given = {place: float(start[number, place]) for place in columns.tolist()}
        try:
            row = rules.find(rng, given)
        except UndecidedError:
            row = None
        if row is None:
            words = ", ".join(repr(rule) for rule in rules.broken(start[number].tolist()))
            raise DataError(
                f"given row {number + 1}: whatever its other columns hold, it breaks a rule of the "
                f"schema (as it is: {words})"
            )
        start[number] = row
    return start


def sampled(
    release: Release, number: int | None, random_state: int, where: str | None = None
) -> pa.Table:
    """Rows of a release's synthetic table; see ``Synthesizer.sample``."""
    table = release.synthetic if where is None else rows_where(release, where)
    if number is None:
        return table
    number = whole("number", number, 1, 2**63 - 1)
    # Twice: as they are taken, and as they are handed over. Each repetition is a piece by itself.
    row = (2 * table.nbytes + PIECE * table.num_columns) / table.num_rows
    require_room(number, BASE, row, "a sample", "draw at most {fits} rows at a time")
    rng = np.random.default_rng(random_state)
    rest = np.sort(rng.permutation(table.num_rows)[: number % table.num_rows])
    return pa.concat_tables([table] * (number // table.num_rows) + [table.take(pa.array(rest))])
