"""The objective: the loss of a table, and the arrays of the kernels that score edits.

The loss is the sum over all queries of weight times squared residual, where the residual is the
noisy share minus the table's share. The kernels use counts of the table's rows in place of shares,
and weights of at most 1.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from private_gsd.kernels.cells import fill_atoms
from private_gsd.kernels.edits import Problem, State, Workspace, count_rows
from private_gsd.kernels.halfspaces import fill_halfspace_gains
from private_gsd.kernels.marginals import LANES, fill_residuals
from private_gsd.projection.constraints import POOL, Pool, kernel_of
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.sql.rules import check_rules
from private_gsd.workloads.kernel_arrays import conditions_of, cuts_of, directions_of, tables_of
from private_gsd.workloads.layout import QueryLayout
from private_gsd.workloads.programs import compiled, depth_of
from private_gsd.workloads.sums import parts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.schema import Schema
    from private_gsd.workloads.layout import FunctionQueries

Weights = Literal["inverse-variance", "equal"]

# Largest absolute value of a noisy share; larger ones are clipped.
LARGEST_SHARE = 1e6
# Smallest scale, and the inverse of the largest: the squares stay within float64.
SMALLEST_SCALE = 1e-90
# Number of candidate values of a cell where queries depend on the number itself.
CANDIDATES = 32


class Objective:
    """The objective that a search minimises.

    Args:
        measurements: The noisy counts.
        weights: The weight of each query: the inverse of its variance, or the same for all.
        pool: The number of rows of the pool, from which random rows that keep the schema's rules
            are made.
    """

    def __init__(
        self,
        measurements: Measurements,
        weights: Weights,
        pool: int = POOL,
    ) -> None:
        self.schema: Schema = measurements.workload.schema
        self.workload = measurements.workload
        self._pool: tuple[int, Pool | None] | None = None
        self._pool_size = pool
        self.shares = np.clip(measurements.shares, -LARGEST_SHARE, LARGEST_SHARE)
        scales = np.clip(measurements.scales, SMALLEST_SCALE, 1 / SMALLEST_SCALE)
        self._variances = np.repeat(
            (scales / measurements.n_records) ** 2, self.workload.group_sizes
        )
        self.share_weights = np.ones(self.workload.size)
        if weights == "inverse-variance":
            relative = scales.min() / scales
            self.share_weights = np.repeat(relative**2, self.workload.group_sizes)
            self.unit = float((measurements.n_records / scales.min()) ** 2)
        else:
            self.unit = 1.0

    @cached_property
    def _layout(self) -> QueryLayout:
        return QueryLayout.of(self.workload.families)

    @property
    def functions(self) -> list[FunctionQueries]:
        """Queries that have no kernel."""
        return self._layout.functions

    @property
    def ruled(self) -> bool:
        """Whether the schema has rules."""
        return bool(self.schema.constraints)

    @cached_property
    def problem(self) -> Problem:
        """The arrays of the kernels."""
        layout = self._layout
        truths = [truth for _, truth in layout.conditions]
        rules = check_rules(self.schema)
        conditions = [*truths, *rules.truths, *(t for each in layout.sums for t in each.truths)]
        cuts = cuts_of(self.schema, layout, conditions)
        self._depth = depth_of(conditions)
        self._cuts = cuts
        queries = np.array([query for query, _ in layout.conditions])
        # A part that is left out is not compiled, and with what may be left out the number of forms
        # of the kernels doubles. An adaptive run fits any of its families: with two such halves,
        # all families or any one of them have all forms that there are (rules are always there).
        geometric = bool(layout.conjunctions or layout.halfspaces)
        logical = bool(truths or layout.sums)
        ruled = bool(rules.texts)
        return Problem(
            columns_of(self.schema, cuts),
            tables_of(self.schema, layout.tables, cuts, self.share_weights),
            conditions_of(self.schema, layout.conjunctions, cuts) if geometric else (),
            directions_of(self.schema, layout.halfspaces, self.share_weights) if geometric else (),
            compiled(self.schema, truths, queries, cuts) if logical else (),
            parts_of(self.schema, layout.sums, cuts) if logical else (),
            kernel_of(rules, cuts) if ruled else (),
            (True,) if geometric or logical or ruled else (),
            self.share_weights,
        )

    def random_table(self, rows: int, seed: int, number: int = 0) -> NDArray[np.float64]:
        """A random table whose rows keep the schema's rules."""
        columns = self.problem.columns
        if self.ruled and (self._pool is None or self._pool[0] != seed):
            self._pool = seed, Pool.of(self.schema, self._cuts, seed, self._pool_size)
        return random_table(columns, rows, seed, number, self._pool[1] if self._pool else None)

    def state(
        self,
        values: NDArray[np.float64],
        counts: NDArray[np.int64] | None = None,
        others: tuple[int, NDArray[np.int64]] | None = None,
    ) -> State:
        """A table and its counts.

        Args:
            values: The table; taken over, not copied.
            counts: Its counts, if they are known.
            others: The number of other rows, which stay as they are, and their counts: targets and
                counts are then those of all rows.
        """
        problem = self.problem
        atoms = np.empty(values.shape, dtype=np.int32)
        fill_atoms(problem.columns, values, atoms)
        if counts is None:
            counts = np.zeros(self.workload.size, dtype=np.int64)
            count_rows(problem, values, atoms, counts, self.workspace())
            for each in self.functions:
                counts[each.query : each.query + each.size] = each.met(values).sum(axis=0)
        rows = len(values)
        if others is not None:
            rows, counts = rows + others[0], counts + others[1]
        targets = self.shares * rows
        sources = problem.tables.sources
        # Padded, since the kernels read whole lanes, also at the end.
        residuals = np.zeros(len(sources) + LANES, dtype=np.float32)
        fill_residuals(sources, problem.weights, targets, counts, residuals)
        directions = problem.directions
        halfspace_gains = np.zeros(len(directions.queries) if directions else 0, dtype=np.float32)
        if directions:
            fill_halfspace_gains(
                directions.queries, problem.weights, targets, counts, halfspace_gains
            )
        return State(values, atoms, targets, counts, residuals, halfspace_gains)

    def workspace(self) -> Workspace:
        """A workspace for one thread."""
        problem = self.problem
        columns = problem.columns
        atoms = int(np.diff(columns.starts).max())
        directions = len(problem.directions.queries) if problem.directions else 0
        entries = len(problem.clauses.entries) if problem.clauses else 0
        return Workspace(
            cells=np.zeros(len(problem.tables.atom_starts), dtype=np.int32),
            products=np.zeros(directions, dtype=np.float32),
            trial=np.zeros(directions, dtype=np.float32),
            sums=np.zeros(problem.tables.slots[-1], dtype=np.float32),
            scores=np.zeros(atoms),
            steps=np.zeros(atoms + 1),
            slacks=np.zeros(directions, dtype=np.float32),
            gains=np.zeros(directions, dtype=np.float32),
            candidates=np.zeros((2, CANDIDATES)),
            met=np.zeros(len(problem.clauses.queries) if problem.clauses else 0, dtype=np.bool_),
            numbers=np.zeros(self._depth),
            clause_gains=np.zeros(entries),
            lines=np.zeros((4, entries)),
            order=np.arange(len(self.schema)),
            values=np.zeros(len(self.schema)),
            atoms=np.zeros(len(self.schema), dtype=np.int32),
            stream=np.zeros(1, dtype=np.uint64),
        )

    def loss(self, state: State) -> float:
        """The loss as the kernels compute it: over counts, with weights of at most 1."""
        squares: NDArray[np.float64] = (state.targets - state.counts) ** 2
        # Without BLAS, whose threads would wait for each other on a busy machine.
        return float((self.share_weights * squares).sum())

    def reduced_chi_square(self, state: State) -> float:
        """The mean of squared residuals over the variances of the noise; 1 for noise alone."""
        residuals: NDArray[np.float64] = (state.targets - state.counts) / len(state.values)
        squares: NDArray[np.float64] = residuals**2 / self._variances
        return float(squares.mean())

    def share_loss(self, loss: float, rows: int) -> float:
        """The loss over shares with the true weights, from the loss over counts."""
        return loss * self.unit / rows**2
