"""Samples of a release: its rows, new rows, rows that meet a condition, rows around given values.

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
from private_gsd.projection.new_rows import NewRows
from private_gsd.projection.protocol import MOST_ROWS
from private_gsd.schema import Discrete
from private_gsd.sql.rules import UndecidedError, check_rules
from private_gsd.system.memory import BASE, require_room
from private_gsd.system.progress import Progress, ignore, shown
from private_gsd.workloads import Predicates
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

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
# What Arrow keeps of a piece of a column, in bytes, about; a table of one row is a piece.
PIECE = 200
# Most new rows that are made for those that meet a condition, and how many more of them than should
# do are made at first.
MOST_TRIED = 10_000_000
SPARE = 1.1
# New rows that are made in turn have seeds so far apart: beyond those of a sample.
SEEDS = 2**31


@shown()
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


@shown()
def fill_columns(release: Release, given: Any, *, seed: int = 0) -> pa.Table:
    """Rows with the given values of some columns, and synthetic ones of all others.

    Each given row takes the other columns of a random one of the synthetic rows that are most like
    it. What it gets does not depend on the other given rows, except that among rows that are as
    good, those are drawn first that were drawn least often. Of more given rows than synthetic ones,
    each further part takes its columns of new rows.

    Args:
        release: The release.
        given: A table of some of the schema's columns.
        seed: The seed of the draws.
    """
    schema = release.schema
    names, rows = _given(schema, given)
    columns = np.array([schema.names.index(name) for name in names], dtype=np.int64)
    table = release.matrix
    parts = np.split(rows, range(len(table), len(rows), len(table)))
    donors = [table]
    if len(parts) > 1:
        more = new_rows(release, seed).table((len(parts) - 1) * len(table))
        donors += np.split(more, len(parts) - 1)
    made = np.concatenate(
        [
            Donors(schema, each, columns, seed).fill(part)
            for each, part in zip(donors, parts, strict=True)
        ]
    )
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
    parts = list(open_source(data, schema.select(names).with_unit(None)).encoded())
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
    """Rows of a release's synthetic table, and new ones; see ``Synthesizer.sample``."""
    if number is not None:
        number = whole("number", number, 1, 2**63 - 1)
        table = release.synthetic
        # Twice: as they are made, and as they are handed over.
        row = (2 * table.nbytes + PIECE * table.num_columns) / table.num_rows
        advice = "draw at most {fits} rows at a time, or write them to a file: private-gsd sample"
        require_room(number, BASE, row, "a sample", advice)
    return pa.concat_tables(sampled_tables(release, number, random_state, where))


def sampled_tables(
    release: Release,
    number: int | None,
    random_state: int,
    where: str | None = None,
    progress: Progress = ignore,
) -> Iterator[pa.Table]:
    """The rows of a sample, table by table: those of the release first, and then new ones.

    Args:
        release: The release.
        number: The number of rows; all rows of the release by default.
        random_state: The seed of the sample.
        where: A condition in SQL that all rows meet.
        progress: Called with the number of rows so far.
    """
    if number is not None:
        number = whole("number", number, 1, MOST_ROWS)
    return _tables(release, number, random_state, where, progress)


def _tables(
    release: Release, number: int | None, random_state: int, where: str | None, progress: Progress
) -> Iterator[pa.Table]:
    known = release.synthetic
    table = known if where is None else rows_where(release, where)
    if number is None or number == table.num_rows:
        yield table
        return
    if number < table.num_rows:
        chosen = np.random.default_rng(random_state).permutation(table.num_rows)[:number]
        yield table.take(pa.array(np.sort(chosen)))
        return
    share = table.num_rows / known.num_rows
    _require_likely(share, number - table.num_rows, table.num_rows, known.num_rows, where)
    yield table
    schema, made, attempt = release.schema, table.num_rows, 0
    condition = None if where is None else Predicates(schema, [where], [1])
    while made < number:
        wanted = number - made
        if condition is not None:  # a few more than should do
            wanted = int(SPARE * wanted / share) + 1
        for chunk in new_rows(release, random_state + attempt * SEEDS).chunks(wanted):
            met = chunk if condition is None else chunk[condition.met(chunk)[:, 0]]
            rows = np.asfortranarray(met[: number - made])
            made += len(rows)
            progress("new rows", made, number)
            if len(rows):
                yield pa.Table.from_batches([Encoder(schema).decode(rows)])
            if made == number:
                return
        attempt += 1


def new_rows(release: Release, seed: int) -> NewRows:
    """What makes new rows of a release, with the answers of its synthetic table."""
    measured = release.measurements()
    if measured is None:
        raise ReleaseError(f"{release.folder}: has no measurements, and so no new rows")
    known = release.settings.knowledge.of(release.schema).supplement(measured)
    return NewRows(known, release.matrix, seed=seed)


def _require_likely(share: float, wanted: int, met: int, rows: int, where: str | None) -> None:
    """Refuse a condition that so few rows meet that their number would take too many new rows."""
    if where is None or wanted <= share * MOST_TRIED:
        return
    raise ReleaseError(
        f"{met:,} of the {rows:,} synthetic rows meet {where!r:.200}: {wanted:,} more would take "
        f"about {wanted / share:,.0f} new rows, and at most {MOST_TRIED:,} are made; ask for at "
        f"most {met + int(share * MOST_TRIED):,}"
    )
