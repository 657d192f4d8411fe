"""Gibbs sampler: chains of tables, whose mean answers are the posterior means of the answers.

The probability of a table is the prior probability of its rows, times exp(-χ² / 2), where χ² is the
sum of squared residuals divided by their variances. The prior distribution of a row has the
distributions of the table's own columns. Columns are independent in it (all dependence must then
come from the answers), or they follow a Chow–Liu forest.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.gibbs import gibbs_sweep
from private_gsd.kernels.streams import permute
from private_gsd.projection.denoising.chow_liu import (
    chow_liu_forest,
    empty_chow_liu_forest,
    pair_means,
)
from private_gsd.projection.objective import Objective
from private_gsd.workloads.workload import RunningCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.edits import State
    from private_gsd.kernels.gibbs import ChowLiuForest
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.watch import Watch
    from private_gsd.workloads import Workload
    from private_gsd.workloads.layout import MarginalTable

    Shares = NDArray[np.float64]
    Matrix = NDArray[np.float64]

# Number of chains; the number of threads does not change it.
CHAINS = 2
# Number of burn-in sweeps, from random tables and from tables of an earlier sampler.
BURN_IN = 8
WARM_BURN_IN = 3
# Chains stand still where a sweep changes less than this fraction of the values. Then their burn-in
# ends, and they end after a number of samples.
STANDSTILL = 0.01
LEAST_SAMPLES = 3
# Pseudo-count of an atom in the distribution of its column.
PSEUDO_COUNT = 0.5
# Least number of uniform random rows from which the distributions of atoms are estimated.
UNIFORM_ROWS = 10_000
ORDERS = 2**62 + 2**40  # streams of random numbers for the order of the rows


class GibbsSampler:
    """Chains of tables whose answers are close to the measured ones.

    Args:
        measured: The targets; their scales are the tolerances.
        rows: The number of rows of each table.
        seed: The seed of the search.
        learned: For each column, whether its distribution is learned; others stay uniform.
        chow_liu_forest: The Chow–Liu forest of the rows' prior distribution; none by default.
        start: The first tables of the chains; random tables by default.

    Attributes:
        states: The current table of each chain.
        samples: The tables after burn-in, those of all chains one sweep after the other.
        means: The mean answers, as shares.
        chow_liu: The Chow–Liu forest, for the sampler's own atoms.
    """

    def __init__(
        self,
        measured: Measurements,
        rows: int,
        seed: int,
        learned: NDArray[np.bool_],
        chow_liu_forest: ChowLiuForest | None = None,
        start: Sequence[Matrix] = (),
    ) -> None:
        self._objective = Objective(measured, "inverse-variance")
        self._rows = rows
        self._seeds = [
            int(word >> np.uint64(1))
            for word in np.random.SeedSequence([seed, 1]).generate_state(CHAINS, dtype=np.uint64)
        ]
        self._learned = learned
        self._temperature = 2 * rows * float((measured.scales.min() / measured.n_records) ** 2)
        self._columns = self._objective.problem.columns
        self.chow_liu = (
            empty_chow_liu_forest(len(learned)) if chow_liu_forest is None else chow_liu_forest
        )
        self.samples: list[State] = []
        self._start = start
        self.states: list[State] = []
        self.means: Shares = np.zeros(0)

    def prepare(self) -> None:
        """Compile the kernels, or load them from the cache."""
        objective, no_rows = self._objective, np.zeros(0, dtype=np.int64)
        state = objective.state(objective.random_table(1, 0))
        permute(0, 0, ORDERS, no_rows)
        gibbs_sweep(
            objective.problem,
            state,
            no_rows,
            0,
            0,
            1.0,
            self.chow_liu,
            objective.workspace(),
        )

    def run(self, samples: int, watch: Watch, threads: int) -> None:
        """Run the chains.

        Args:
            samples: The number of tables that each chain samples after burn-in, one a sweep; the
                means are taken over them. Chains that stand still end earlier.
            watch: The watch that reports progress.
            threads: The number of threads.
        """
        objective = self._objective
        start = self._start or [objective.random_table(self._rows, seed) for seed in self._seeds]
        burn_in = WARM_BURN_IN if self._start else BURN_IN
        self.states = [objective.state(values.copy()) for values in start]
        uniform = self._uniform_logs()
        answers = np.zeros(objective.workload.size)
        self.samples = []

        def step(chain: int, generation: int) -> tuple[int, int]:
            state, seed = self.states[chain], self._seeds[chain]
            order = np.empty(self._rows, dtype=np.int64)
            permute(seed, generation, ORDERS, order)
            columns = self._columns._replace(base_scores=self._base_scores(state, uniform))
            problem = objective.problem._replace(columns=columns)
            at = seed, generation, self._temperature
            found = gibbs_sweep(problem, state, order, *at, self.chow_liu, objective.workspace())
            return int(found[0]), int(found[1])

        with ThreadPoolExecutor(min(threads, CHAINS)) as pool:
            taken, stands_still = 0, False
            for generation in range(burn_in + samples):
                found = list(pool.map(step, range(CHAINS), [generation] * CHAINS))
                watch.edits += sum(edits for _, edits in found)
                watch.report(0, "denoising")
                if generation >= burn_in or stands_still:
                    taken += 1
                    for state in self.states:
                        answers += state.counts
                        self.samples.append(
                            state._replace(values=state.values.copy(), atoms=state.atoms.copy())
                        )
                moves = sum(moves for moves, _ in found)
                stands_still = moves < STANDSTILL * CHAINS * self.states[0].values.size
                if taken == samples or (stands_still and taken >= LEAST_SAMPLES):
                    break
        self.means = answers / (taken * CHAINS * self._rows)

    def answers(self, workload: Workload) -> Shares:
        """The mean answers to other queries, as shares."""
        values = np.concatenate([state.values for state in self.samples])
        counts = RunningCounts(workload)
        counts.add(values)
        return np.asarray(counts.finish() / len(values))

    def column_shares(self) -> list[Shares]:
        """For each column, the share of each of its atoms in the sampled tables."""
        atoms = np.concatenate([state.atoms for state in self.samples])
        return [
            np.bincount(atoms[:, column], minlength=size) / len(atoms)
            for column, size in enumerate(np.diff(self._columns.starts))
        ]

    def tables_along(
        self,
        chow_liu: ChowLiuForest,
        shares: Sequence[Shares],
        tables: Sequence[MarginalTable],
    ) -> list[Shares]:
        """Tables of rows that follow a Chow–Liu forest.

        Args:
            chow_liu: The forest.
            shares: For each column, the share of each of its atoms.
            tables: Tables of one or two columns.
        """
        ends = self._columns.cut_starts
        cuts = [self._columns.cuts[ends[c] : ends[c + 1]] for c in range(len(shares))]
        places = [tuple(feature.position for feature in table.features) for table in tables]
        pairs = pair_means(
            chow_liu, shares, {(each[0], each[1]) for each in places if len(each) > 1}
        )
        found = []
        for place, table in zip(places, tables, strict=True):
            made = shares[place[0]] if len(place) == 1 else pairs[place[0], place[1]]
            for axis, feature in enumerate(table.features):
                cells = feature.cells_of_atoms(cuts[feature.position])
                made = np.moveaxis(
                    _summed(np.moveaxis(made, axis, 0), cells, feature.size), 0, axis
                )
            found.append(made)
        return found

    def chow_liu_forest(self, tables: Iterable[MarginalTable]) -> ChowLiuForest:
        """The Chow–Liu forest of the sampled tables.

        Args:
            tables: The tables whose pairs of columns may be joined.
        """
        places = [[feature.position for feature in table.features] for table in tables]
        pairs = {(each[0], each[1]) for each in places if len(each) == 2}
        atoms = np.concatenate([state.atoms for state in self.samples])
        sizes = np.diff(self._columns.starts)
        return chow_liu_forest(atoms, sizes, pairs)

    def refine_chow_liu(self, before: GibbsSampler) -> None:
        """Learn the forest again for the atoms of this sampler, where an earlier one had others.

        Args:
            before: The sampler whose tables the forest was learned from; it has run.
        """
        mine, theirs = self._columns, before._columns
        if np.array_equal(mine.cuts, theirs.cuts) and np.array_equal(mine.starts, theirs.starts):
            return
        known = self.chow_liu
        columns = np.repeat(np.arange(len(known.starts) - 1), np.diff(known.starts))
        edges = zip(columns.tolist(), known.neighbours.tolist(), strict=True)
        pairs = {(first, second) for first, second in edges if first < second}
        values = np.concatenate([state.values for state in before.samples])
        atoms = self._objective.state(values).atoms
        self.chow_liu = chow_liu_forest(atoms, np.diff(mine.starts), pairs)

    def _base_scores(self, state: State, uniform: Shares) -> Shares:
        """The log-probabilities of the atoms in the table itself, times the temperature."""
        logs = uniform.copy()
        starts = self._columns.starts
        for column in np.flatnonzero(self._learned):
            place = slice(starts[column], starts[column + 1])
            counts = np.bincount(state.atoms[:, column], minlength=place.stop - place.start)
            logs[place] = np.log((counts + PSEUDO_COUNT) / self._rows)
        return np.asarray(self._columns.base_scores + self._temperature * logs)

    def _uniform_logs(self) -> Shares:
        """The log-probabilities of the atoms among uniform random values, where any are needed."""
        if self._learned.all():
            return np.zeros(int(self._columns.starts[-1]))
        rows = max(self._rows, UNIFORM_ROWS)
        atoms = self._objective.state(self._objective.random_table(rows, 0)).atoms
        return np.concatenate(
            [
                np.log((np.bincount(atoms[:, column], minlength=size) + PSEUDO_COUNT) / rows)
                for column, size in enumerate(np.diff(self._columns.starts))
            ]
        )


def _summed(table: Shares, cells: NDArray[np.int64], size: int) -> Shares:
    """The rows of a table, summed to cells."""
    if np.array_equal(cells, np.arange(size)):
        return table
    found = np.zeros((size, *table.shape[1:]))
    np.add.at(found, cells, table)
    return found
