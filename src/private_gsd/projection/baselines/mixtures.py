"""Mixtures of product distributions, fitted to measurements: Algorithm 3 of the paper.

RAP and GEM differ in the parameters of the mixture: free probabilities, or a network. They are
fitted in the same way. Each step computes all answers, draws a batch of queries (in odd steps in
proportion to their errors, in even steps uniformly), and descends the gradient of the batch's
absolute errors, by Adam. A query that is drawn twice counts twice, so that the gradient of a batch
is the gradient of all queries with weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.projection.atoms import Atoms
from private_gsd.projection.baselines.drawing import draw_places
from private_gsd.projection.baselines.products import Layout, ProductQueries, product_answers
from private_gsd.projection.protocol import Projection, checked, require_finite, require_served
from private_gsd.projection.watch import Reason, Stopped, Watch
from private_gsd.workloads.layout import marginal_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.baselines.optional import Gradients
    from private_gsd.system.progress import Progress

# A function of JAX's NumPy, parameters and constants.
Logits = Callable[[Any, Any, Any], Any]
# Number of pairs of steps between two reports of progress.
REPORTED_PAIRS = 10


def fit_mixture(
    name: str,
    tools: Gradients,
    measurements: Measurements,
    begin: Callable[[Atoms, Any], tuple[Any, Any]],
    logits: Logits,
    *,
    mixtures: int,
    batch: int,
    iterations: int,
    learning_rate: float,
    rows: int,
    seed: int,
    progress: Progress,
) -> Projection:
    """Fit a mixture and draw rows from it.

    Args:
        name: The name of the projector.
        tools: JAX and Optax.
        measurements: The noisy answers.
        begin: A function from atoms and a random key to the first parameters and the constants.
        logits: A function from parameters and constants to the logits of every atom (rows) in every
            mixture (columns).
        mixtures: The number of product distributions.
        batch: The number of queries in a batch.
        iterations: The number of pairs of steps.
        learning_rate: The learning rate of Adam.
        rows: The number of rows to draw.
        seed: The seed of the projection.
        progress: Called with the progress.
    """
    rows, seed = checked(measurements, rows, seed)
    require_served(name, measurements.workload, ("tables",))
    watch = Watch(progress=progress, what="fitting", total=2 * iterations)
    tables = marginal_tables(measurements.workload)
    atoms = Atoms.of(measurements.workload.schema, tables)
    queries = ProductQueries(atoms, tables, mixtures)
    targets = measurements.shares[queries.queries].astype(np.float32)
    first, key = tools.jax.random.split(tools.key(seed))
    parameters, constant = begin(atoms, first)
    starts = tuple(atoms.starts.tolist())
    steps, probabilities_of = _compiled(tools, logits, starts, batch, learning_rate)
    state = (parameters, tools.optax.adam(learning_rate).init(parameters), key)
    pairs_done, loss = 0, float("nan")
    reason: Reason = "generations"
    with watch.listening():
        try:
            while pairs_done < iterations:
                length = min(REPORTED_PAIRS, iterations - pairs_done)
                state, losses = steps(state, constant, queries.layout, targets, length)
                pairs_done += length
                loss = require_finite(name, float(losses[-1]), learning_rate)
                watch.record(2 * pairs_done, loss)
        except Stopped as stopped:
            reason = stopped.reason
    rng = np.random.default_rng(seed)
    drawn = draw_atoms(atoms, np.asarray(probabilities_of(state[0], constant)), rows, rng)
    matrix, ended = atoms.draw(drawn, rng), watch.end_reason(reason)
    return Projection(matrix, loss, ended, 2 * pairs_done, watch.seconds)


@lru_cache
def _compiled(
    tools: Gradients, logits: Logits, starts: tuple[int, ...], batch: int, learning_rate: float
) -> tuple[Any, Any]:
    """Compiled functions: one runs some steps, one gives the probabilities of all atoms.

    Args:
        tools: JAX and Optax.
        logits: See ``fit_mixture``.
        starts: Where each column's atoms begin.
        batch: The number of queries in a batch.
        learning_rate: The learning rate of Adam.
    """
    jax, jnp, optax = tools
    optimizer = optax.adam(learning_rate)

    def probabilities(parameters: Any, constant: Any) -> Any:
        """The probabilities of every column's atoms, which sum to one."""
        each = logits(jnp, parameters, constant)
        # The gradient of a split is one array; that of each slice would be as large as all.
        parts = jnp.split(each, starts[1:-1])
        return jnp.concatenate([jax.nn.softmax(part, axis=0) for part in parts])

    def steps(state: Any, constant: Any, layout: Layout, targets: Any, pairs: int) -> Any:
        def step(state: Any, by_error: Any) -> tuple[Any, Any]:
            parameters, moments, key = state
            key, mine = jax.random.split(key)
            found, pullback = jax.vjp(
                lambda each: product_answers(jnp, layout, probabilities(each, constant)), parameters
            )
            errors = found - targets
            sizes = jnp.abs(errors)
            counts = batch_counts(tools, mine, jnp.where(by_error, sizes, 1.0), batch)
            (gradient,) = pullback(counts * jnp.sign(errors))
            changes, moments = optimizer.update(gradient, moments)
            return (optax.apply_updates(parameters, changes), moments, key), sizes.sum()

        return jax.lax.scan(step, state, jnp.arange(2 * pairs) % 2 == 0)

    return jax.jit(steps, static_argnums=4), jax.jit(probabilities)


def batch_counts(tools: Gradients, key: Any, weights: Any, batch: int) -> Any:
    """The number of times that each query is drawn for a batch, in proportion to the weights."""
    jax, jnp, _ = tools
    ends = jnp.cumsum(weights)
    drawn = jnp.searchsorted(ends, jax.random.uniform(key, (batch,)) * ends[-1], side="right")
    return jnp.zeros(len(weights)).at[drawn].add(1.0, mode="drop")


def draw_atoms(
    atoms: Atoms, probabilities: NDArray[np.float32], rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rows of a mixture; each product distribution has the same number of rows, or one more."""
    mixtures = probabilities.shape[1]
    order = np.concatenate(
        [np.arange(rows - rows % mixtures) % mixtures, rng.permutation(mixtures)]
    )
    mixture = order[:rows]
    drawn = np.empty((rows, len(atoms.sizes)), dtype=np.int64)
    for place in range(len(atoms.sizes)):
        mine = probabilities[atoms.starts[place] : atoms.starts[place + 1]].astype(np.float64)
        drawn[:, place] = draw_places(mine, mixture, rng)
    return drawn
