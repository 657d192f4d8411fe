"""Coordinate search: sweeps that replace single values by better ones.

Large tables are swept block by block: threads mark the values that have a better alternative, and
one thread replaces the marked values one after the other. The result does not depend on the number
of threads. Where the fit is worse than the noise explains, rows exchange values at the end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.coordinate_search import sweep, sweep_parallel
from private_gsd.kernels.exchanges import change_linked_columns, swap
from private_gsd.kernels.streams import permute
from private_gsd.projection.genetic.search import Search
from private_gsd.projection.watch import Slices

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.objective import Objective
    from private_gsd.projection.watch import Reason, Watch

    Matrix = NDArray[np.float64]

# Least number of rows of a table that is swept block by block.
PARALLEL_ROWS = 8192
# Number of blocks in which the rows of a large table are marked.
BLOCKS = 128
# Most rows, and least number of tries, of a round of exchanges.
SWAP_ROWS = 16_384
SWAP_TRIES = 20_000
# Number of changes of several columns that are tried for a row in each sweep, under rules.
LINKS = 8

ORDERS = 2**62  # streams of random numbers for the order of the rows
RELEASED = 2**62  # a barrier's count that no thread waits for


class CoordinateSearch(Search):
    """One run of the fast search.

    Args:
        objective: The objective to minimise.
        config: The settings.
        rows: The number of rows of the table.
        seed: The seed of the search.
        watch: The watch that reports progress.
        threads: The number of threads.
    """

    def __init__(
        self,
        objective: Objective,
        config: GeneticSearch,
        rows: int,
        seed: int,
        watch: Watch,
        threads: int,
    ) -> None:
        super().__init__(objective, config, rows, seed, watch)
        self._threads = threads
        self._workspaces = [objective.workspace() for _ in range(threads)]
        self._slices = Slices()
        self._serial = rows < PARALLEL_ROWS
        self._block = -(-rows // BLOCKS)  # rows that are marked before any is changed

    def prepare(self, state: State) -> None:
        """Compile the kernels, or load them from the cache: each is called with no rows."""
        problem, workspace = self._objective.problem, self._workspaces[0]
        no_rows = np.zeros(0, dtype=np.int64)
        permute(self._seed, 0, ORDERS, no_rows)
        sweep(problem, state, no_rows, self._seed, 0, workspace)
        swap(problem, state, no_rows, 0, self._seed, 0, 0, workspace)
        if self._objective.ruled:
            change_linked_columns(problem, state, no_rows, 0, self._seed, 0, 0, workspace)
        if not self._serial:
            self._sweep_parallel(state, no_rows, None)

    def run(self, tables: Iterable[Matrix]) -> Reason:
        """Sweep until no single edit helps; then exchange values while the fit is poor."""
        self.values = next(iter(tables))
        self.state = state = self._objective.state(self.values)
        reason, loss = self._converge(state, self._objective.loss(state))
        while reason == "converged" and self._objective.reduced_chi_square(state) > 1:
            if self.generation >= self._config.generations:
                return "generations"
            before = loss
            reason, loss = self._converge(state, self._exchange(state))
            if self._config.settled(before, loss):
                break
        return reason

    def _converge(self, state: State, loss: float) -> tuple[Reason, float]:
        """Sweep until the loss converges."""
        while self.generation < self._config.generations:
            before = loss
            loss = self._sweep(state)
            if self._config.settled(before, loss):
                return "converged", loss
        return "generations", loss

    def _sweep(self, state: State) -> float:
        """Try to improve every value once; returns the loss."""
        order = self._order(state)
        # Calls end where blocks end; otherwise the blocks would depend on the time that calls take.
        unit = 1 if self._serial else self._block
        problem, workspace = self._objective.problem, self._workspaces[0]
        with ThreadPoolExecutor(max(1, self._threads - 1)) as pool:
            for piece in self._slices.of(-(-len(order) // unit)):
                rows = order[piece.start * unit : piece.stop * unit]
                if self._serial:
                    edits = sweep(problem, state, rows, self._seed, self.generation, workspace)[2]
                else:
                    edits = self._sweep_parallel(state, rows, pool)
                self._count(edits)
        if self._objective.ruled:
            for piece in Slices().of(len(order)):
                turn = order[piece], piece.start, self._seed, self.generation
                self._count(change_linked_columns(problem, state, *turn, LINKS, workspace)[2])
        return self._end(state)

    def _sweep_parallel(
        self, state: State, rows: NDArray[np.int64], pool: ThreadPoolExecutor | None
    ) -> int:
        """Sweep rows on all threads, or on this thread without a pool; returns the edits scored."""
        block = self._block
        marks = np.zeros((block, len(self._objective.schema)), dtype=np.bool_)
        counters = np.zeros(1 + -(-len(rows) // block), dtype=np.int64)
        threads = 1 if pool is None else self._threads

        def work(thread: int) -> int:
            found = sweep_parallel(
                self._objective.problem,
                state,
                rows,
                block,
                self._seed,
                self.generation,
                marks,
                counters,
                thread,
                threads,
                self._workspaces[thread],
            )
            return int(found[2])

        try:
            others = [pool.submit(work, thread) for thread in range(1, threads)] if pool else []
            edits = work(0)
        except BaseException:
            counters[0] = RELEASED  # otherwise the other threads would wait at the barrier forever
            raise
        return edits + sum(other.result() for other in others)

    def _exchange(self, state: State) -> float:
        """Let rows exchange values, with one try per column in each turn; returns the loss."""
        tries = len(self._objective.schema)
        order = self._order(state)[:SWAP_ROWS]
        turns = np.tile(order, -(-SWAP_TRIES // (tries * len(order))))
        problem, workspace = self._objective.problem, self._workspaces[0]
        for piece in Slices().of(len(turns)):
            turn = turns[piece], piece.start, self._seed, self.generation
            self._count(swap(problem, state, *turn, tries, workspace)[2])
        return self._end(state)

    def _count(self, edits: int) -> None:
        """Add to the number of edits scored, and report progress."""
        self._watch.edits += edits
        self._watch.report(self.generation)

    def _end(self, state: State) -> float:
        """End a generation; returns the loss, recomputed so that rounding errors do not add up."""
        loss = self._objective.loss(state)
        self.generation += 1
        self._watch.record(self.generation, loss)
        return loss

    def _order(self, state: State) -> NDArray[np.int64]:
        """The rows, in random order."""
        order = np.empty(len(state.values), dtype=np.int64)
        permute(self._seed, self.generation, ORDERS, order)
        return order
