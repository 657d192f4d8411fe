"""The fast search: sweeps of best single edits, on islands first where the table is large.

Large tables begin as islands: parts of the rows that each fit the answers on their own, side by
side on threads. The whole table is then swept block by block: threads mark the values that have a
better alternative, and those are visited one after the other. Neither depends on the number of
threads. Where the noise leaves something to be gained, rows exchange values in the end.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.coordinate_search import relink, swap, sweep, sweep_together
from private_gsd.kernels.streams import permute
from private_gsd.projection.watch import REPORT_SECONDS, Slices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.objective import Objective
    from private_gsd.projection.watch import Reason, Watch

    Matrix = NDArray[np.float64]

# From so many rows on there are islands, each of at least half as many.
ISLAND_ROWS = 8192
MOST_ISLANDS = 64
# After so many sweeps, islands mostly fit noise. Measured on 30,000 rows and all pairs of 17
# columns: 3 take 0.47 s to the end and 6 take 0.55 s, to the same loss.
ISLAND_SWEEPS = 4
# The rows are marked in so many blocks. On 30,000 rows, 8 led to a loss 0.25 % above that of visits
# in turn, 32 to 0.1 %, 128 to 0.05 %.
BLOCKS = 128
# A round of exchanges has turns for so many rows at most, and so many tries at least.
SWAP_ROWS = 16_384
SWAP_TRIES = 20_000

# How many changes of several columns at once are tried for a row in each sweep, under rules.
LINKS = 8

ORDERS = 2**62  # streams of random numbers that are no row's
LET_GO = 2**62  # more than threads ever have meetings


class Sweeps:
    """One run of the fast search.

    Args:
        objective: What to minimise.
        config: How.
        seed: Of the search.
        threads: How many to use.
        watch: Told of progress.
    """

    def __init__(
        self, objective: Objective, config: GeneticSearch, seed: int, threads: int, watch: Watch
    ) -> None:
        self._objective = objective
        self._config = config
        self._seed = seed
        self._threads = threads
        self._watch = watch
        self._rooms = [objective.row() for _ in range(threads)]
        self._slices = Slices()
        self._alone = config.rows < ISLAND_ROWS
        self.generation = 0
        self.values: Matrix = np.empty((0, len(objective.schema)))
        self.state: State | None = None

    def prepare(self, state: State) -> None:
        """Compile, or load what was compiled before: every kernel is called for no rows."""
        problem, room = self._objective.problem, self._rooms[0]
        nobody = np.zeros(0, dtype=np.int64)
        permute(self._seed, 0, ORDERS, nobody)
        sweep(problem, state, nobody, self._seed, 0, room)
        swap(problem, state, nobody, 0, self._seed, 0, 0, room)
        if self._objective.ruled:
            relink(problem, state, nobody, 0, self._seed, 0, 0, room)
        if not self._alone:
            self._sweep_together(state, nobody, None)

    def run(self, start: Matrix | None) -> Reason:
        """Sweep until single edits are exhausted; then exchange values, if that is worth it."""
        counts = None
        if start is None:
            self.values = self._objective.random_table(self._config.rows, self._seed)
            counts = self._settle_islands(self.values)
        else:
            self.values = start
        self.state = state = self._objective.state(self.values, counts)
        reason, loss = self._settle(state, self._objective.loss(state))
        while reason == "converged" and self._objective.reduced_chi_square(state) > 1:
            if self.generation >= self._config.generations:
                return "generations"
            before = loss
            reason, loss = self._settle(state, self._exchange(state, loss))
            if self._config.settled(before, loss):
                break
        return reason

    def _settle_islands(self, values: Matrix) -> NDArray[np.int64] | None:
        """Let parts of a table fit the answers on their own; returns the answers of the whole."""
        number = self._config.islands or island_number(len(values))
        if number == 1 or self._config.generations == 0:
            return None
        parts = np.array_split(values, number)
        seeds = np.random.SeedSequence(self._seed).generate_state(number, dtype=np.uint64)
        losses = np.full((2, number), np.nan)  # at the beginning, and now; as of the whole table
        edits = np.zeros(number, dtype=np.int64)
        counts = np.zeros(self._objective.workload.size, dtype=np.int64)
        stopping, adding = threading.Event(), threading.Lock()

        def settle(place: int) -> None:
            if stopping.is_set():
                return
            part = parts[place]
            unit = (len(values) / len(part)) ** 2
            seed = int(seeds[place] >> np.uint64(1))
            state, row = self._objective.state(part), self._objective.row()
            order = np.empty(len(part), dtype=np.int64)
            loss = self._objective.loss(state)
            losses[:, place] = loss * unit
            slices = Slices()
            problem = self._objective.problem
            for generation in range(min(ISLAND_SWEEPS, self._config.generations)):
                permute(seed, generation, ORDERS, order)
                before = loss
                for piece in slices.of(len(part)):
                    if stopping.is_set():
                        return
                    change, _, tried = sweep(problem, state, order[piece], seed, generation, row)
                    loss += change
                    edits[place] += tried
                    losses[1, place] = loss * unit
                if self._objective.ruled:
                    relink(problem, state, order, 0, seed, generation, LINKS, row)
                loss = self._objective.loss(state)
                if self._config.settled(before, loss):
                    break
            with adding:
                np.add(counts, state.counts, out=counts)

        begun = self._watch.edits
        pool = ThreadPoolExecutor(self._threads)
        try:
            waiting = {pool.submit(settle, place) for place in range(number)}
            while waiting:
                done, waiting = wait(waiting, timeout=REPORT_SECONDS)
                for each in done:
                    each.result()
                self._watch.edits = begun + int(edits.sum())
                known = losses.copy()  # islands that have not begun are as bad as others were
                if np.isfinite(known[0]).any():
                    known[1][np.isnan(known[1])] = np.nanmean(known[0])
                    self._watch.report(0, float(known[1].mean()), whole=False)
        finally:
            stopping.set()
            pool.shutdown(cancel_futures=True)
        return counts

    def _settle(self, state: State, loss: float) -> tuple[Reason, float]:
        """Sweep until the loss stays."""
        while self.generation < self._config.generations:
            before = loss
            loss = self._sweep(state, loss)
            if self._config.settled(before, loss):
                return "converged", loss
        return "generations", loss

    def _sweep(self, state: State, loss: float) -> float:
        """Visit every value once."""
        order = self._order(state)
        # Calls end where blocks end, or the blocks would depend on how long calls take.
        unit = 1 if self._alone else self._block
        problem, room = self._objective.problem, self._rooms[0]
        with ThreadPoolExecutor(max(1, self._threads - 1)) as pool:
            for piece in self._slices.of(-(-len(order) // unit)):
                rows = order[piece.start * unit : piece.stop * unit]
                if self._alone:
                    change, _, edits = sweep(
                        problem, state, rows, self._seed, self.generation, room
                    )
                else:
                    change, edits = self._sweep_together(state, rows, pool)
                loss += change
                self._watch.edits += edits
                self._watch.report(self.generation, loss, whole=False)
        if self._objective.ruled:
            for piece in Slices().of(len(order)):
                change, _, edits = relink(
                    *(problem, state, order[piece], piece.start, self._seed, self.generation),
                    *(LINKS, room),
                )
                loss += change
                self._watch.edits += edits
                self._watch.report(self.generation, loss, whole=False)
        return self._end(state)

    def _sweep_together(
        self, state: State, rows: NDArray[np.int64], pool: ThreadPoolExecutor | None
    ) -> tuple[float, int]:
        """Visit rows on all threads, this one among them; without a pool, on this one."""
        block = self._block
        marks = np.zeros((block, len(self._objective.schema)), dtype=np.bool_)
        counters = np.zeros(1 + -(-len(rows) // block), dtype=np.int64)
        threads = 1 if pool is None else self._threads

        def work(thread: int) -> tuple[float, int, int]:
            done: tuple[float, int, int] = sweep_together(
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
                self._rooms[thread],
            )
            return done

        try:
            others = [pool.submit(work, thread) for thread in range(1, threads)] if pool else []
            change, _, edits = work(0)
        except BaseException:
            counters[0] = LET_GO  # or the others would wait for this thread for ever
            raise
        return change, edits + sum(other.result()[2] for other in others)

    def _exchange(self, state: State, loss: float) -> float:
        """Let rows try to exchange values, as often as they have columns in each turn."""
        tries = len(self._objective.schema)
        order = self._order(state)[:SWAP_ROWS]
        turns = np.tile(order, -(-SWAP_TRIES // (tries * len(order))))
        problem, room = self._objective.problem, self._rooms[0]
        for piece in Slices().of(len(turns)):
            change, _, edits = swap(
                problem,
                state,
                turns[piece],
                piece.start,
                self._seed,
                self.generation,
                tries,
                room,
            )
            loss += change
            self._watch.edits += edits
            self._watch.report(self.generation, loss, whole=False)
        return self._end(state)

    def _end(self, state: State) -> float:
        """End a generation; returns the loss, computed anew, so that no rounding adds up."""
        loss = self._objective.loss(state)
        self.generation += 1
        self._watch.report(self.generation, loss, whole=True)
        return loss

    @property
    def _block(self) -> int:
        """How many rows are marked before they are visited."""
        return -(-self._config.rows // BLOCKS)

    def _order(self, state: State) -> NDArray[np.int64]:
        order = np.empty(len(state.values), dtype=np.int64)
        permute(self._seed, self.generation, ORDERS, order)
        return order[order < self._objective.movable]


def island_number(rows: int) -> int:
    """How many islands a table has: a power of two, from its number of rows alone.

    >>> [island_number(rows) for rows in (1_000, 10_000, 30_000, 1_000_000)]
    [1, 2, 4, 64]
    """
    number = 1
    while number < MOST_ISLANDS and rows // (2 * number) >= ISLAND_ROWS // 2:
        number *= 2
    return number
