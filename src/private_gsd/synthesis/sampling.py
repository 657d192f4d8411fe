"""Samples of a release: some of its rows, rows that meet a condition, rows around given values.

All are made of a release alone, and cost nothing.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd.data.encoding import Encoder
from private_gsd.data.sources import open_source
from private_gsd.errors import DataError, ReleaseError, did_you_mean
from private_gsd.kernels.nearest import nearest_donors
from private_gsd.projection.constraints import broken_rows
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.schema import Discrete
from private_gsd.sql.rules import UndecidedError, check_rules
from private_gsd.system.memory import BASE, require_room
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads import Predicates
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.runs.release import Release
    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]

# A synthetic row gives its other columns to as few given rows as leaves them this near to it, where
# 1 is a category that differs. Mean error of pairs in nine cases of the simulated census, in 1e-5:
# 126 with 0.01, 121 with 0.02, 129 with 0.05, 126 with 0.2, and 146 without a limit.
NEAR = 0.02
# What Arrow keeps of a piece of a column, in bytes, about.
PIECE = 200
# Beside the given rows, at most so many rows take part in the search.
MOST_ROWS = 500_000


class FewAlikeWarning(UserWarning):
    """Given rows did not evolve, since few synthetic rows are like them."""


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


def fill_columns(
    release: Release,
    given: Any,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress = ignore,
) -> pa.Table:
    """Rows with the given values of some columns, and synthetic ones of all others.

    A warning says if they did not evolve, where they are many and few synthetic rows like them.
    Each given row first takes the other columns of a synthetic row that is like it. Then they
    evolve: the given rows, in the place of those synthetic rows, should answer as was measured.

    Args:
        release: The release.
        given: A table of some of the schema's columns.
        seed: The seed of the search.
        threads: The number of threads; all cores by default.
        progress: Called as the search goes on.
    """
    schema = release.schema
    names, rows = _given(schema, given)
    table = release.matrix
    columns = np.array([schema.names.index(name) for name in names], dtype=np.int64)
    often, donors = donors_of(schema, rows, table, columns, seed)
    start = table[donors]
    start[:, columns] = rows[:, columns]
    start = _mended(schema, start, columns, seed)
    measured = release.measurements()
    if measured is None:
        raise ReleaseError(f"{release.folder}: holds no measurements to evolve by")
    if often * len(table) - len(rows) > MOST_ROWS:
        warnings.warn(
            "the given rows are many times the synthetic rows that are like them: their other "
            "columns were taken from these as they are, and did not evolve",
            FewAlikeWarning,
            stacklevel=3,
        )
    elif len(names) < len(schema):
        rest = np.repeat(table, often - np.bincount(donors, minlength=len(table)), axis=0)
        known = release.settings.knowledge.of(schema).supplement(measured)
        everyone = np.concatenate([start, rest])
        found = evolve(
            known,
            GeneticSearch(rows=len(everyone)),
            seed=seed,
            start=everyone,
            threads=threads,
            progress=progress,
            fixed=names,
            movable=len(start),
        )
        if found.reason == "interrupted":
            raise KeyboardInterrupt
        start = found.matrix[: len(start)]
    return pa.Table.from_batches([Encoder(schema).decode(np.asfortranarray(start))])


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


def donors_of(
    schema: Schema, rows: Matrix, table: Matrix, columns: NDArray[np.int64], seed: int
) -> tuple[int, NDArray[np.int64]]:
    """How often a synthetic row may be chosen, and the one that each given row chooses."""
    discrete = np.array([isinstance(column, Discrete) for column in schema])
    spans = np.array([max(column.bounds[1] - column.bounds[0], 1e-300) for column in schema])
    found = np.zeros(len(rows), dtype=np.int64)
    known = (rows, table, columns, discrete, spans)
    least = nearest_donors(*known, len(rows), seed, found)
    often = -(-len(rows) // len(table))
    while often < len(rows):
        if nearest_donors(*known, often, seed, found) <= least + NEAR:
            return often, found
        often *= 2
    nearest_donors(*known, len(rows), seed, found)
    return len(rows), found


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
