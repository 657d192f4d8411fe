"""New rows: more rows of a fitted table, which answer as it does and are no copies of its rows.

The rows come in chunks. A chunk begins with rows of the fitted table, or of the chunk before it.
One Gibbs sweep then draws every value again, given the other values of its row: the more likely a
value is, the more it brings the answers of all rows so far near to those of the fitted table. What
one chunk misses, the next makes up for, so that the errors of drawing do not grow with the rows.
Coordinate sweeps follow where the answers are not near enough. Values of columns with histograms
and joined categories are drawn within their cells in the end.

Chunks belong to chains, which know nothing of each other and so run on all cores. The result does
not depend on the number of threads. Nothing but the table and the measurements is looked at, and
so new rows cost no privacy.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.cells import draw_again, fill_atoms
from private_gsd.kernels.coordinate_search import sweep
from private_gsd.kernels.edits import count_rows
from private_gsd.kernels.exchanges import change_linked_columns
from private_gsd.kernels.gibbs import gibbs_sweep
from private_gsd.kernels.streams import permute
from private_gsd.measurements.summed_histograms import summed_histograms
from private_gsd.projection.denoising.chow_liu import empty_chow_liu_forest
from private_gsd.projection.fewer_categories import FewerCategories
from private_gsd.projection.objective import Objective
from private_gsd.projection.within_cells import WithinCells, looks_at_numbers
from private_gsd.schema import Numeric
from private_gsd.sql.expressions import columns_of_truth
from private_gsd.sql.rules import check_rules
from private_gsd.system.operating_system import cores
from private_gsd.workloads.layout import QueryLayout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import Problem, State
    from private_gsd.measurements.measurements import Measurements

    Matrix = NDArray[np.float64]
    Counts = NDArray[np.int64]

# Number of chains; the number of threads does not change it.
CHAINS = 16
# Most rows and most values of a chunk.
CHUNK_ROWS = 20_000
CHUNK_VALUES = 2**19
# Temperature of the Gibbs sweeps, as a multiple of the loss by one edit of a table that fits.
TEMPERATURE = 1.0
# Number of edits from which that loss is learned.
EDITS = 64
# Coordinate sweeps end when one lowers the loss by at most this fraction.
SETTLED = 0.1
MOST_SWEEPS = 20
# Number of changes of several columns that are tried for a row, under rules.
LINKS = 8
# Pseudo-count of an atom in the distribution of its column.
PSEUDO_COUNT = 0.5

_ORDERS = 2**62 + 2**41  # streams of random numbers for the order of the rows
_CHUNKS, _CHAINS = 2**60 + 2, 2**60 + 3  # streams of random numbers of chunks and of chains


@dataclass(frozen=True, eq=False)
class _Total:
    """All rows of a chain so far, with those of the fitted table.

    Attributes:
        values: The rows that the next chunk begins with.
        rows: The number of rows.
        counts: Their counts, for each objective.
    """

    values: Matrix
    rows: int
    counts: tuple[Counts, ...]


class NewRows:
    """Makes new rows of a fitted table.

    Args:
        known: All that is known: the measurements, with histograms.
        table: The fitted table, encoded.
        seed: The seed of the new rows; privacy does not depend on it.
        threads: The number of threads; all cores by default.
    """

    def __init__(
        self, known: Measurements, table: Matrix, *, seed: int = 0, threads: int | None = None
    ) -> None:
        self._seed = seed
        self._threads = cores() if threads is None else threads
        fitted = summed_histograms(known)
        self._within = WithinCells.of(known, fitted.workload.families)
        self._fewer = FewerCategories.of(fitted)
        if self._fewer is not None:
            fitted, table = self._fewer.measured, self._fewer.joined(table)
        self._table = np.ascontiguousarray(table)
        families = fitted.workload.families
        # Queries that look at numbers within cells are fitted after these have been drawn.
        self._late = looks_at_numbers(families)
        parts = [_without_numbers(fitted), fitted] if self._late else [fitted]
        found = [_fitted(part, self._table) for part in parts if part is not None]
        self._objectives = [objective for objective, _ in found]
        self._counts = tuple(counts for _, counts in found)
        self._gibbs = not looks_at_numbers(self._objectives[0].workload.families)
        if self._gibbs:
            self._sampler = _Sampler.of(self._objectives[0], self._table, set(self._within.columns))

    @classmethod
    def prepare(cls, known: Measurements) -> None:
        """Compile the kernels for such measurements, or load them from the cache."""
        objective = Objective(known, "inverse-variance", pool=1)
        cls(known, objective.random_table(1, 0), threads=1).table(1)

    def chunks(self, number: int) -> Iterator[Matrix]:
        """New rows, chunk by chunk; the same seed and number give the same rows.

        Args:
            number: The number of rows.
        """
        sizes = chunk_sizes(number, self._table.shape[1])
        chains = min(CHAINS, len(sizes))
        with ThreadPoolExecutor(max(1, min(self._threads, chains))) as pool:
            try:
                waiting = [
                    pool.submit(self._chunk, self._first(chain, sizes[chain]), chain, sizes[chain])
                    for chain in range(chains)
                ]
                for chunk in range(len(sizes)):
                    total, made = waiting[chunk % chains].result()
                    after = chunk + chains
                    if after < len(sizes):
                        work = pool.submit(self._chunk, total, after, sizes[after])
                        waiting[chunk % chains] = work
                    yield made
            finally:
                pool.shutdown(cancel_futures=True)

    def table(self, number: int) -> Matrix:
        """New rows as one table.

        Args:
            number: The number of rows.
        """
        found = np.empty((number, self._table.shape[1]), order="F")
        begin = 0
        for chunk in self.chunks(number):
            found[begin : begin + len(chunk)] = chunk
            begin += len(chunk)
        return found

    def _first(self, chain: int, rows: int) -> _Total:
        """What a chain begins with: the fitted table, and some of its rows in random order."""
        order = np.random.default_rng([self._seed, _CHAINS, chain]).permutation(len(self._table))
        return _Total(self._table[order[:rows]], len(self._table), self._counts)

    def _chunk(self, total: _Total, chunk: int, rows: int) -> tuple[_Total, Matrix]:
        """What a chain has made with one chunk more, and the chunk."""
        words = np.random.SeedSequence([self._seed, _CHUNKS, chunk]).generate_state(2, np.uint32)
        seed = int(words[0]) << 31 | int(words[1]) >> 1
        values = np.resize(total.values, (rows, total.values.shape[1]))
        states = []
        if self._gibbs:
            state = self._state(0, values, total)
            self._sampler.run(state, seed)
            states.append(state)
        elif not self._objectives[0].ruled:
            np.random.default_rng(seed).permuted(values, axis=0, out=values)
        if self._late:
            values = np.ascontiguousarray(self._within.redrawn(values, [seed, 2]))
            states.append(self._state(-1, values, total))
        self._improve(states[-1], seed)
        made = values if self._late else self._within.redrawn(values, [seed, 2])
        if self._fewer is not None:
            made = self._fewer.expanded(made, seed)
        counts = tuple(state.counts for state in states)
        return _Total(values, total.rows + rows, counts), made

    def _state(self, number: int, values: Matrix, total: _Total) -> State:
        others = total.rows, total.counts[number]
        return self._objectives[number].state(values, others=others)

    def _improve(self, state: State, seed: int) -> None:
        """Sweep until the answers of all rows of a chain settle."""
        objective = self._objectives[-1]
        problem, workspace = objective.problem, objective.workspace()
        order = np.empty(len(state.values), dtype=np.int64)
        loss = objective.loss(state)
        for generation in range(MOST_SWEEPS):
            permute(seed, generation, _ORDERS + 1, order)
            sweep(problem, state, order, seed, generation, workspace)
            if objective.ruled:
                turn = order, 0, seed, generation
                change_linked_columns(problem, state, *turn, LINKS, workspace)
            before, loss = loss, objective.loss(state)
            if before - loss <= SETTLED * before:
                return


@dataclass(frozen=True, eq=False)
class _Sampler:
    """Gibbs sweeps of chunks.

    Attributes:
        objective: The objective, of queries that do not look at numbers.
        problem: Its problem; base scores are those of the columns of the fitted table.
        temperature: The temperature, in units of the loss.
        within: The columns whose values are drawn again within their atoms.
    """

    objective: Objective
    problem: Problem
    temperature: float
    within: NDArray[np.int64]

    @classmethod
    def of(cls, objective: Objective, table: Matrix, drawn: set[int]) -> _Sampler:
        """The sweeps of a fitted table.

        Args:
            objective: The objective.
            table: The fitted table.
            drawn: The columns that are drawn within their cells in another way.
        """
        problem, schema = objective.problem, objective.schema
        temperature = TEMPERATURE * _loss_of_edit(objective, table)
        atoms = np.empty(table.shape, dtype=np.int32)
        fill_atoms(problem.columns, table, atoms)
        logs = [
            np.log((np.bincount(atoms[:, place], minlength=size) + PSEUDO_COUNT) / len(table))
            for place, size in enumerate(np.diff(problem.columns.starts))
        ]
        scores = problem.columns.base_scores + temperature * np.concatenate(logs)
        layout = QueryLayout.of(objective.workload.families)
        truths = [truth for _, truth in layout.conditions] + list(check_rules(schema).truths)
        drawn = drawn.union(*(columns_of_truth(truth) for truth in truths))
        within = [
            place
            for place, column in enumerate(schema)
            if isinstance(column, Numeric) and place not in drawn
        ]
        problem = problem._replace(columns=problem.columns._replace(base_scores=scores))
        return cls(objective, problem, temperature, np.array(within, dtype=np.int64))

    def run(self, state: State, seed: int) -> None:
        """Draw all values of a chunk again."""
        order = np.empty(len(state.values), dtype=np.int64)
        permute(seed, 0, _ORDERS, order)
        no_edges = empty_chow_liu_forest(len(self.objective.schema))
        gibbs_sweep(
            self.problem,
            state,
            order,
            seed,
            0,
            self.temperature,
            no_edges,
            self.objective.workspace(),
        )
        draw_again(self.problem.columns, self.within, state.atoms, seed, state.values)


def chunk_sizes(number: int, columns: int) -> list[int]:
    """The numbers of rows of all chunks.

    >>> chunk_sizes(50_000, 24)
    [16667, 16667, 16666]
    """
    most = max(1, min(CHUNK_ROWS, CHUNK_VALUES // columns))
    chunks = -(-number // most)
    return [number // chunks + (chunk < number % chunks) for chunk in range(chunks)]


def _without_numbers(measured: Measurements) -> Measurements | None:
    """The measurements of queries that do not look at numbers within cells; None without any."""
    groups: list[int] = []
    begin = 0
    for family in measured.workload.families:
        end = begin + len(family.group_sizes)
        if not looks_at_numbers([family]):
            groups += range(begin, end)
        begin = end
    return measured.select(groups) if groups else None


def _fitted(measured: Measurements, table: Matrix) -> tuple[Objective, Counts]:
    """An objective whose targets are the answers of a table, and the counts of the table."""
    objective = Objective(measured, "inverse-variance")
    counts = objective.state(table).counts
    objective.shares = counts / len(table)
    return objective, counts


def _loss_of_edit(objective: Objective, table: Matrix) -> float:
    """The median loss by one edit of a table that fits; 1 where edits change no answer."""
    rng = np.random.default_rng(0)
    problem, workspace = objective.problem, objective.workspace()
    losses = []
    for place in rng.integers(table.shape[1], size=EDITS).tolist():
        rows = table[rng.integers(len(table), size=2)]
        rows[1, np.arange(rows.shape[1]) != place] = rows[0, np.arange(rows.shape[1]) != place]
        atoms = np.empty(rows.shape, dtype=np.int32)
        fill_atoms(problem.columns, rows, atoms)
        counts = np.zeros((2, objective.workload.size), dtype=np.int64)
        for row in range(2):
            some = slice(row, row + 1)
            count_rows(problem, rows[some], atoms[some], counts[row], workspace)
        losses.append(float((objective.share_weights * (counts[0] - counts[1]) ** 2).sum()))
    found = [loss for loss in losses if loss > 0]
    return float(np.median(found)) if found else 1.0
