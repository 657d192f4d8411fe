"""Chains: tables at a temperature, whose answers are averaged.

The chance of a table is that of its rows, times exp(-misfit / 2), where the misfit counts each
squared residual by the inverse of its variance. Rows are drawn from the table's own columns one by
one (whatever hangs together must be asked for by the answers), or along a forest of columns.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.gibbs import gibbs_sweep
from private_gsd.kernels.streams import permute
from private_gsd.projection.denoising.chow_liu import forest_of, no_forest
from private_gsd.projection.objective import Objective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.kernels.gibbs import ChowLiuForest
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.watch import Watch
    from private_gsd.workloads import Workload

    Shares = NDArray[np.float64]
    Matrix = NDArray[np.float64]

# So many chains, whatever the number of threads.
CHAINS = 2
# Sweeps until the beginning is forgotten, and sweeps that the mean is taken of. With 60 and 20 of
# them, errors on real data were the same within 2 %.
SETTLING = 15
WARM_SETTLING = 5  # where tables were drawn before
KEPT = 10
# What an atom has beside the rows that are in it, when the chance of the next is reckoned.
PSEUDO = 0.5
ORDERS = 2**62 + 2**40  # streams of random numbers that are no row's


class Chains:
    """Tables that answer about as was measured.

    Args:
        measured: What is to be answered; scales say how closely.
        rows: How many rows each table has.
        seed: Of the search.
        known: For each column, whether its distribution is learned; others stay without
            preference.
        forest: Along which columns rows are drawn; none by default.
        start: Tables to begin with; random ones by default.
    """

    def __init__(
        self,
        measured: Measurements,
        rows: int,
        seed: int,
        known: NDArray[np.bool_],
        forest: ChowLiuForest | None = None,
        start: Sequence[Matrix] = (),
    ) -> None:
        self._objective = Objective(measured, "inverse-variance")
        self._rows = rows
        self._seeds = [
            int(word >> np.uint64(1))
            for word in np.random.SeedSequence([seed, 1]).generate_state(CHAINS, dtype=np.uint64)
        ]
        self._known = known
        self._temperature = 2 * rows * float((measured.scales.min() / measured.n_records) ** 2)
        self._columns = self._objective.problem.columns
        self._forest = no_forest(len(known)) if forest is None else forest
        self._kept: list[State] = []
        self._start = start
        self.states: list[State] = []
        self.means: Shares = np.zeros(0)

    def prepare(self) -> None:
        """Compile, or load what was compiled before."""
        objective, nobody = self._objective, np.zeros(0, dtype=np.int64)
        state = objective.state(objective.random_table(1, 0))
        permute(0, 0, ORDERS, nobody)
        gibbs_sweep(
            objective.problem, state, nobody, 0, 0, 1.0, self._forest, objective.workspace()
        )

    def run(self, watch: Watch, threads: int) -> None:
        """Draw tables.

        Args:
            watch: Told of progress.
            threads: How many to use.
        """
        objective = self._objective
        start = self._start or [objective.random_table(self._rows, seed) for seed in self._seeds]
        settling = WARM_SETTLING if self._start else SETTLING
        self.states = [objective.state(values.copy()) for values in start]
        free = self._free_chances()
        answers = np.zeros(objective.workload.size)
        self._kept = []

        def step(chain: int, generation: int) -> int:
            state, seed = self.states[chain], self._seeds[chain]
            order = np.empty(self._rows, dtype=np.int64)
            permute(seed, generation, ORDERS, order)
            columns = self._columns._replace(base_scores=self._barriers(state, free))
            problem = objective.problem._replace(columns=columns)
            at = seed, generation, self._temperature
            return int(
                gibbs_sweep(problem, state, order, *at, self._forest, objective.workspace())[1]
            )

        with ThreadPoolExecutor(min(threads, CHAINS)) as pool:
            for generation in range(settling + KEPT):
                edits = list(pool.map(step, range(CHAINS), [generation] * CHAINS))
                watch.edits += sum(edits)
                watch.report(0, "denoising")
                if generation >= settling:
                    for state in self.states:
                        answers += state.counts
                        self._kept.append(
                            state._replace(values=state.values.copy(), atoms=state.atoms.copy())
                        )
        self.means = answers / (KEPT * CHAINS * self._rows)

    def answers(self, workload: Workload) -> Shares:
        """The mean answers to other questions, as shares."""
        values = np.concatenate([state.values for state in self._kept])
        found = []
        for family in workload.families:
            counts = family.start()
            family.count(values, counts)
            found.append(family.finish(counts) / len(values))
        return np.concatenate(found)

    def forest(self) -> ChowLiuForest:
        """The columns that hang together most in the tables that the means are of."""
        atoms = np.concatenate([state.atoms for state in self._kept])
        sizes = np.diff(self._columns.starts)
        return forest_of(atoms, sizes, np.flatnonzero(self._known).tolist())

    def _barriers(self, state: State, free: Shares) -> Shares:
        """The atoms' chances in the table itself, as the kernel wants them."""
        logs = free.copy()
        starts = self._columns.starts
        for column in np.flatnonzero(self._known):
            place = slice(starts[column], starts[column + 1])
            counts = np.bincount(state.atoms[:, column], minlength=place.stop - place.start)
            logs[place] = np.log((counts + PSEUDO) / self._rows)
        return np.asarray(self._columns.base_scores + self._temperature * logs)

    def _free_chances(self) -> Shares:
        """The logarithms of the atoms' chances among values drawn without preference."""
        rows = max(self._rows, 10_000)
        atoms = self._objective.state(self._objective.random_table(rows, 0)).atoms
        starts = self._columns.starts
        return np.concatenate(
            [
                np.log((np.bincount(atoms[:, column], minlength=size) + PSEUDO) / rows)
                for column, size in enumerate(np.diff(starts))
            ]
        )
