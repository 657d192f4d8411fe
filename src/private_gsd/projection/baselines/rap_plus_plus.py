"""RAP++: gradient descent over relaxed rows, while the sigmoids become sharper.

The method is that of Vietri et al. (2022), Algorithm 4 of the paper. Inverse temperatures double
from 2 to 2,048, and at each one Adam descends the gradient of the squared errors until its norm is
small. RAP++ serves marginals of mixed columns, prefixes and halfspaces. It cannot serve conditions
in SQL or Python functions. All queries have the same weight. The paper's table of hyperparameters
has learning rates from 0.0005 to 0.01, of which each run uses one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.projection.baselines.optional import gradients
from private_gsd.projection.baselines.relaxed import (
    Queries,
    Relaxation,
    RelaxedRows,
    RelaxedShape,
    relaxed_answers,
    too_many_queries,
)
from private_gsd.projection.baselines.setting_checks import check_settings
from private_gsd.projection.protocol import (
    Projection,
    Projector,
    checked,
    require_finite,
    require_served,
)
from private_gsd.projection.watch import Reason, Stopped, Watch
from private_gsd.system.progress import Progress, ignore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.baselines.optional import Gradients
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

SERVED = ("tables", "conjunctions", "halfspaces")
FIRST_TEMPERATURE = 2.0
# Number of steps between two reports of progress.
REPORTED_STEPS = 25


class MeasuredQueries(NamedTuple):
    """Queries with their targets and weights."""

    queries: Queries
    targets: Any
    weights: Any


@dataclass(frozen=True, kw_only=True)
class RAPPlusPlus(Projector):
    """RAP++: gradient descent over relaxed rows (projector ``"rap++"``).

    It serves marginals, prefixes and halfspaces, and needs the optional packages of
    ``private-gsd[baselines]``.

    Attributes:
        points: Number of relaxed rows, N' in the paper; at most the number of rows of the table. A
            larger table has several rows for each relaxed row.
        temperatures: Number of inverse temperatures. The first is 2, and each is twice the one
            before: 11 of them end at 2,048.
        iterations: Largest number of steps at each temperature.
        learning_rate: Learning rate of Adam.
        gradient: The next temperature begins when the norm of the gradient is at most this.
    """

    points: int = 1000
    temperatures: int = 11
    iterations: int = 500
    learning_rate: float = 0.005
    gradient: float = 1e-5

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def name(self) -> str:
        """The name in the registry."""
        return "rap++"

    def check(self, workload: Workload) -> None:
        """Refuse conditions in SQL and functions."""
        gradients(self.name)
        require_served(self.name, workload, SERVED)

    def why_infeasible(self, workload: Workload, share: float = 1.0) -> str | None:  # noqa: ARG002
        """Why there would be too many queries; None if there would not."""
        return too_many_queries(workload, self.points)

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: Matrix | None = None,
        threads: int | None = None,  # noqa: ARG002
        progress: Progress = ignore,
    ) -> Projection:
        """Fit relaxed rows that begin as rows of ``start``, or random; ``threads`` is not used."""
        rows, seed = checked(measurements, rows, seed)
        self.check(measurements.workload)
        tools = gradients(self.name)
        points = min(rows, self.points)
        watch = Watch(progress=progress, what="fitting")
        relaxation = Relaxation(tools, measurements.workload, points)
        targets = measurements.shares[relaxation.queries].astype(np.float32)
        measured = MeasuredQueries(relaxation.layout, targets, relaxation.weights)
        run, optimizer = compiled(tools, relaxation.shape, self.learning_rate, self.gradient)
        found = relaxation.begin(tools.key(seed), points, start)
        steps, loss = 0, math.nan
        reason: Reason = "converged"
        with watch.listening():
            try:
                for number in range(self.temperatures):
                    sharpness = FIRST_TEMPERATURE * 2.0**number
                    moments = optimizer.init(found)
                    left = self.iterations
                    small = False
                    while left > 0 and not small:
                        wanted = min(left, REPORTED_STEPS)
                        found, moments, steps_done, value, norm = run(
                            found, moments, measured, sharpness, wanted
                        )
                        left -= wanted
                        steps += int(steps_done)
                        loss = require_finite(self.name, float(value), self.learning_rate)
                        small = float(norm) <= self.gradient
                        watch.record(steps, loss)
                    if not small:
                        reason = "generations"
            except Stopped as stopped:
                reason = stopped.reason
        matrix = relaxation.round(found, rows, np.random.default_rng(seed))
        return Projection(matrix, loss, watch.end_reason(reason), steps, watch.seconds)


@lru_cache
def compiled(
    tools: Gradients, shape: RelaxedShape, learning_rate: float, gradient: float
) -> tuple[Any, Any]:
    """A function that takes some steps at a temperature, compiled for each shape; and Adam.

    Args:
        tools: JAX and Optax.
        shape: The columns.
        learning_rate: The learning rate of Adam.
        gradient: The steps end when the norm of the gradient is at most this.
    """
    jax, jnp, optax = tools
    optimizer = optax.adam(learning_rate)

    def run(
        rows: RelaxedRows, moments: Any, measured: MeasuredQueries, sharpness: Any, wanted: Any
    ) -> Any:
        def loss(rows: RelaxedRows) -> Any:
            found = relaxed_answers(tools, shape, measured.queries, rows, sharpness)
            return (measured.weights * (found - measured.targets) ** 2).sum()

        def continues(state: Any) -> Any:
            return (state[2] < wanted) & (state[4] > gradient)

        def step(state: Any) -> Any:
            rows, moments, steps_done, _, _ = state
            value, derivatives = jax.value_and_grad(loss)(rows)
            changes, moments = optimizer.update(derivatives, moments)
            after: RelaxedRows = optax.apply_updates(rows, changes)
            after = after._replace(numbers=jnp.clip(after.numbers, 0, 1))
            norm = optax.tree.norm(derivatives)
            stay = norm <= gradient
            kept = jax.tree.map(lambda old, new: jnp.where(stay, old, new), rows, after)
            return kept, moments, steps_done + 1, value, norm

        infinite = jnp.asarray(jnp.inf, dtype=jnp.float32)
        begin = (rows, moments, 0, infinite, infinite)
        return jax.lax.while_loop(continues, step, begin)

    return jax.jit(run), optimizer
