"""Algorithm 1 of the paper, as it stands there; the kernels keep elites as edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import ProjectionError
from private_gsd.kernels.algorithm_1 import Candidates, Elites, generations, set_elite
from private_gsd.kernels.streams import begin_stream
from private_gsd.projection.watch import Slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.objective import Objective
    from private_gsd.projection.watch import Reason, Watch

# An elite takes 24 bytes for each value of the table at first, and a place must fit 31 bits.
MOST_CELLS = 2**30

_GENERATIONS = 2**61  # the stream of random numbers of all generations


class Algorithm1:
    """One run.

    Args:
        objective: What to minimise.
        config: How.
        seed: Of the search.
        watch: Told of progress.
    """

    def __init__(
        self, objective: Objective, config: GeneticSearch, seed: int, watch: Watch
    ) -> None:
        cells = config.rows * len(objective.schema)
        if cells * config.elites > MOST_CELLS:
            raise ProjectionError(
                f"{config.elites:,} elites of {cells:,} values each take too much memory; take "
                "fewer rows or elites"
            )
        self.objective = objective
        self._config = config
        self._seed = seed
        self._watch = watch
        self._row = objective.row()
        begin_stream(seed, _GENERATIONS, 0, self._row.stream)
        size = config.mutations + config.crossovers
        rate = max(config.mutation_rate, config.crossover_rate)
        self._candidates = Candidates(
            rows=np.zeros((size, rate), dtype=np.int64),
            columns=np.zeros((size, rate), dtype=np.int64),
            values=np.zeros((size, rate)),
            losses=np.zeros(size),
            old=np.zeros(rate),
            chosen=np.zeros((3, config.elites), dtype=np.int64),
            kept=np.zeros(config.elites),
            history=np.zeros(config.window or config.rows),
        )
        self.generation = 0
        self.values: NDArray[np.float64] = np.empty((0, len(objective.schema)))
        self.state: State | None = None

    def first_tables(self) -> Iterator[NDArray[np.float64]]:
        """As many random tables as there are elites."""
        for elite in range(self._config.elites):
            yield self.objective.random_table(self._config.rows, self._seed, elite)

    def begin(self, tables: Iterable[NDArray[np.float64]]) -> tuple[State, Elites]:
        """The first elites: the best table whole, the others as edits against it.

        Args:
            tables: The first elites; a single one stands for all.
        """
        size = self._config.elites
        kept = list(tables)
        losses = [self.objective.loss(self.objective.state(each)) for each in kept]
        order = np.argsort(losses, kind="stable").tolist()
        best = self.objective.state(kept[order[0]])
        cells = best.values.size
        elites = Elites(
            losses=np.array([losses[place] for place in order] * size)[:size],
            slots=np.arange(size),
            sizes=np.zeros(size, dtype=np.int64),
            cells=np.zeros((size, cells), dtype=np.int32),
            values=np.zeros((size, cells)),
            places=np.full((size, cells), -1, dtype=np.int32),
        )
        for slot, place in enumerate(order):
            set_elite(elites, slot, kept[place], best.values)
        return best, elites

    def prepare(self, state: State) -> None:
        """Compile, or load what was compiled before: no generation is run."""
        _, elites = self.begin([state.values])
        self.step(state, elites, 0)

    def run(self, start: NDArray[np.float64] | None) -> Reason:
        """Run generations until the loss stays."""
        state, elites = self.begin(self.first_tables() if start is None else [start])
        self.state, self.values = state, state.values
        size = self._config.mutations + self._config.crossovers
        for piece in Slices().of(self._config.generations):
            done, converged = self.step(state, elites, piece.stop)
            self._watch.edits += (done - self.generation) * size
            self.generation = done
            self._watch.report(done, float(elites.losses[0]), whole=True)
            if converged:
                return "converged"
        return "generations"

    def step(self, state: State, elites: Elites, until: int) -> tuple[int, bool]:
        """Run generations up to a number; returns which comes next, and whether it converged."""
        done, converged = generations(
            self.objective.problem,
            state,
            elites,
            self._candidates,
            self._config.mutations,
            self._config.mutation_rate,
            self._config.crossover_rate,
            self.generation,
            until,
            self._config.tolerance,
            self._row,
        )
        return int(done), bool(converged)
