"""A search: what all searches of the genetic projector are made with, and have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.projection.genetic.starting import starting_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.denoising.denoise import Denoising
    from private_gsd.projection.genetic.config import GeneticSearch
    from private_gsd.projection.objective import Objective
    from private_gsd.projection.watch import Reason, Watch


class Search(ABC):
    """One run of a search.

    Args:
        objective: The objective to minimise.
        config: The settings.
        rows: The number of rows of the table.
        seed: The seed of the search.
        watch: The watch that reports progress.

    Attributes:
        generation: The number of generations so far.
        values: The table, encoded; without rows before the search begins.
        state: The table with its counts; None before it is counted.
    """

    def __init__(
        self, objective: Objective, config: GeneticSearch, rows: int, seed: int, watch: Watch
    ) -> None:
        self._objective = objective
        self._config = config
        self._rows = rows
        self._seed = seed
        self._watch = watch
        self.generation = 0
        self.values: NDArray[np.float64] = np.empty((0, len(objective.schema)))
        self.state: State | None = None

    def first_tables(
        self, measured: Measurements, denoising: Denoising | None
    ) -> Iterable[NDArray[np.float64]]:
        """The tables to start from, where no table is given.

        Args:
            measured: The answers that the search fits.
            denoising: The denoising, if there is one.
        """
        return [starting_table(self._objective, measured, denoising, self._rows, self._seed)]

    @abstractmethod
    def prepare(self, state: State) -> None:
        """Compile the kernels, or load them from the cache.

        Args:
            state: A table of one row; not changed.
        """

    @abstractmethod
    def run(self, tables: Iterable[NDArray[np.float64]]) -> Reason:
        """Run generations until the loss converged; returns the reason why the search stopped.

        Args:
            tables: The tables to start from; all but Algorithm 1 take the first alone.
        """
