"""Algorithm 1 of the paper, unchanged; the kernels represent elites as edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import ProjectionError
from private_gsd.kernels.algorithm_1 import Elites, Offspring, generations, set_elite
from private_gsd.kernels.streams import begin_stream
from private_gsd.projection.genetic.search import Search
from private_gsd.projection.watch import Slices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.denoising.denoise import Denoising
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.objective import Objective
    from private_gsd.projection.watch import Reason, Watch

# Most values of all elites: an elite takes 24 bytes per value, and a position must fit 31 bits.
MOST_CELLS = 2**30

_GENERATIONS = 2**61  # the stream of random numbers of all generations


class Algorithm1(Search):
    """One run of Algorithm 1."""

    def __init__(
        self, objective: Objective, config: GeneticSearch, rows: int, seed: int, watch: Watch
    ) -> None:
        cells = rows * len(objective.schema)
        if cells * config.elites > MOST_CELLS:
            raise ProjectionError(
                f"{config.elites:,} elites of {cells:,} values each take too much memory; take "
                "fewer rows or elites"
            )
        super().__init__(objective, config, rows, seed, watch)
        self._workspace = objective.workspace()
        begin_stream(seed, _GENERATIONS, 0, self._workspace.stream)
        rates = np.repeat(
            (config.mutation_rate, config.crossover_rate), (config.mutations, config.crossovers)
        )
        size, rate = len(rates), max(config.mutation_rate, config.crossover_rate)
        self._offspring = Offspring(
            rates=rates,
            rows=np.zeros((size, rate), dtype=np.int64),
            columns=np.zeros((size, rate), dtype=np.int64),
            values=np.zeros((size, rate)),
            losses=np.zeros(size),
            old=np.zeros(rate),
            chosen=np.zeros((3, config.elites), dtype=np.int64),
            kept=np.zeros(config.elites),
            history=np.zeros(config.window or rows),
        )

    def first_tables(
        self,
        measured: Measurements,  # noqa: ARG002
        denoising: Denoising | None,  # noqa: ARG002
    ) -> Iterator[NDArray[np.float64]]:
        """Random tables, one for each elite."""
        for elite in range(self._config.elites):
            yield self._objective.random_table(self._rows, self._seed, elite)

    def begin(self, tables: Iterable[NDArray[np.float64]]) -> tuple[State, Elites]:
        """The first elites: the best table in full, and the others as edits of the best table.

        Args:
            tables: The tables of the first elites; a single table is used for all elites.
        """
        size = self._config.elites
        kept = list(tables)
        losses = [self._objective.loss(self._objective.state(each)) for each in kept]
        order = np.argsort(losses, kind="stable").tolist()
        best = self._objective.state(kept[order[0]])
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
        """Compile the kernels, or load them from the cache: no generation is run."""
        _, elites = self.begin([state.values])
        self.step(state, elites, 0)

    def run(self, tables: Iterable[NDArray[np.float64]]) -> Reason:
        """Run generations until the loss converges."""
        state, elites = self.begin(tables)
        self.state, self.values = state, state.values
        size = self._config.mutations + self._config.crossovers
        for piece in Slices().of(self._config.generations):
            generation, converged = self.step(state, elites, piece.stop)
            self._watch.edits += (generation - self.generation) * size
            self.generation = generation
            self._watch.record(generation, float(elites.losses[0]))
            if converged:
                return "converged"
        return "generations"

    def step(self, state: State, elites: Elites, until: int) -> tuple[int, bool]:
        """Run generations up to a number; returns the next one, and whether the loss converged."""
        generation, converged = generations(
            self._objective.problem,
            state,
            elites,
            self._offspring,
            self._config.mutations,
            self.generation,
            until,
            self._config.tolerance,
            self._workspace,
        )
        return int(generation), bool(converged)
