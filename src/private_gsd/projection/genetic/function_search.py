"""Function search: edits are scored in batches, with one call of each Python function per batch.

Values are tried for one column of many rows at once: every category, or values of other rows
(crossover) and random values (mutation). The best edit of each row is then made in turn, if it
still lowers the loss. Queries of other families are scored by their kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.batches import commit, score_edits
from private_gsd.kernels.cells import draw_rows
from private_gsd.kernels.streams import permute
from private_gsd.projection.genetic.coordinate_search import ORDERS
from private_gsd.projection.genetic.search import Search

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.objective import Objective
    from private_gsd.projection.watch import Reason, Watch

# Most rows of a batch.
BATCH_ROWS = 256
# Number of random candidates for a numeric column, or for a column of more categories than that.
DRAWN = 12
# Fraction of the random candidates that are values of other rows.
CROSSOVER_SHARE = 0.5


class FunctionSearch(Search):
    """One run of the search for queries that are Python functions."""

    def __init__(
        self, objective: Objective, config: GeneticSearch, rows: int, seed: int, watch: Watch
    ) -> None:
        super().__init__(objective, config, rows, seed, watch)
        self._workspace = objective.workspace()
        self._queries = np.concatenate(
            [each.query + np.arange(each.size) for each in objective.functions]
        )
        self._weights = objective.share_weights[self._queries]

    def prepare(self, state: State) -> None:
        """Compile the kernels, or load them from the cache."""
        rows = np.zeros(0, dtype=np.int64)
        nothing = np.zeros((0, 1))
        permute(self._seed, 0, ORDERS, rows)
        columns = self._objective.problem.columns
        draw_rows(columns, state.values, self._seed, 0, rows, 0, CROSSOVER_SHARE, nothing)
        self._score(state, rows, 0, nothing)
        met = self._met(state.values)
        self._commit(state, rows, 0, nothing[:, 0], met[:0], met)

    def run(self, tables: Iterable[NDArray[np.float64]]) -> Reason:
        """Try to improve every value once per generation, until the loss converges."""
        self.values = next(iter(tables))
        self.state = state = self._objective.state(self.values)
        loss = self._objective.loss(state)
        met = self._met(state.values)
        order = np.empty(len(state.values), dtype=np.int64)
        while self.generation < self._config.generations:
            before = loss
            permute(self._seed, self.generation, ORDERS, order)
            # Edits of one batch are scored independently: a batch is at most a tenth of the table.
            size = min(BATCH_ROWS, -(-len(order) // 10))
            places = np.empty(len(self._objective.schema), dtype=np.int64)
            for batch, begin in enumerate(range(0, len(order), size)):
                permute(self._seed, self.generation, ORDERS + 1 + batch, places)
                for column in places.tolist():
                    self._try(state, order[begin : begin + size], column, met)
                    self._watch.report(self.generation)
            self.generation += 1
            loss = self._objective.loss(state)
            self._watch.record(self.generation, loss)
            if self._config.settled(before, loss):
                return "converged"
        return "generations"

    def _try(
        self, state: State, rows: NDArray[np.int64], column: int, met: NDArray[np.bool_]
    ) -> None:
        """Give one column of some rows better values."""
        candidates = self._candidates(state, rows, column)
        each = candidates.shape[1]
        trial = np.repeat(state.values[rows], each, axis=0)
        trial[:, column] = candidates.ravel()
        would = self._met(trial).reshape(len(rows), each, -1)
        deltas = self._score(state, rows, column, candidates)
        residuals = (state.targets - state.counts)[self._queries]
        now = met[rows][:, None, :]
        deltas += (now & ~would) @ (self._weights * (2 * residuals + 1))
        deltas += (would & ~now) @ (self._weights * (1 - 2 * residuals))
        self._watch.edits += deltas.size
        best = deltas.argmin(axis=1)
        promising = np.flatnonzero(deltas[np.arange(len(rows)), best] < 0)
        chosen = best[promising]
        self._commit(
            state,
            rows[promising],
            column,
            candidates[promising, chosen],
            would[promising, chosen],
            met,
        )

    def _candidates(
        self, state: State, rows: NDArray[np.int64], column: int
    ) -> NDArray[np.float64]:
        columns = self._objective.problem.columns
        size = int(columns.starts[column + 1] - columns.starts[column])
        if columns.discrete[column] and size <= DRAWN:
            values = np.arange(size, dtype=np.float64)
            if columns.nulls[column] >= 0:
                values[columns.nulls[column]] = np.nan
            return np.tile(values, (len(rows), 1))
        out = np.empty((len(rows), DRAWN))
        turn = self.generation * len(self._objective.schema) + column
        draw_rows(columns, state.values, self._seed, turn, rows, column, CROSSOVER_SHARE, out)
        return out

    def _met(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """For each row and function, whether the row satisfies the function."""
        return np.concatenate([each.met(values) for each in self._objective.functions], axis=1)

    def _score(
        self,
        state: State,
        rows: NDArray[np.int64],
        column: int,
        candidates: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """The change of the loss by each candidate, over the queries that have kernels."""
        deltas = np.zeros(candidates.shape)
        score_edits(
            self._objective.problem, state, rows, column, candidates, deltas, self._workspace
        )
        return deltas

    def _commit(
        self,
        state: State,
        rows: NDArray[np.int64],
        column: int,
        values: NDArray[np.float64],
        would: NDArray[np.bool_],
        met: NDArray[np.bool_],
    ) -> None:
        commit(
            self._objective.problem,
            state,
            rows,
            column,
            np.ascontiguousarray(values),
            np.ascontiguousarray(would),
            met,
            self._queries,
            self._workspace,
        )
