"""Mixtures of product distributions, fitted to measurements: Algorithm 3 of the paper.

RAP and GEM differ in what stands behind the mixture: free chances, or a network. The fit is the
same. Each step finds all answers, draws a batch of queries (in turns by their errors and without
preference), and goes down the gradient of the batch's absolute errors, by Adam. A query that is
drawn twice counts twice, so that the gradient of a batch is the gradient of all queries with
weights: no query needs to be taken out.
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
from private_gsd.workloads.layout import tables_asked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.baselines.optional import Gradients
    from private_gsd.system.progress import Progress

# From JAX's NumPy, parameters and what stays.
Logits = Callable[[Any, Any, Any], Any]
# Pairs of steps between two words about them.
AT_ONCE = 10


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
        name: The projector's.
        tools: JAX and Optax.
        measurements: The noisy answers.
        begin: Gives, for atoms and a random key, the parameters to begin with, and what stays.
        logits: Of every atom (rows) in every mixture (columns), from both.
        mixtures: How many product distributions.
        batch: How many queries a step looks at.
        iterations: How many pairs of steps.
        learning_rate: Of Adam.
        rows: How many rows to draw.
        seed: Of everything.
        progress: Called with the progress.
    """
    rows, seed = checked(measurements, rows, seed)
    require_served(name, measurements.workload, ("tables",))
    watch = Watch(progress=progress, what="fitting", total=2 * iterations)
    tables = tables_asked(measurements.workload)
    atoms = Atoms.of(measurements.workload.schema, tables)
    queries = ProductQueries(atoms, tables, mixtures)
    targets = measurements.shares[queries.queries].astype(np.float32)
    first, key = tools.jax.random.split(tools.key(seed))
    theta, fixed = begin(atoms, first)
    starts = tuple(atoms.starts.tolist())
    steps, chances_of = _compiled(tools, logits, starts, batch, learning_rate)
    state = (theta, tools.optax.adam(learning_rate).init(theta), key)
    done, loss = 0, float("nan")
    reason: Reason = "generations"
    with watch.listening():
        try:
            while done < iterations:
                length = min(AT_ONCE, iterations - done)
                state, losses = steps(state, fixed, queries.layout, targets, length)
                done += length
                loss = require_finite(name, float(losses[-1]), learning_rate)
                watch.record(2 * done, loss)
        except Stopped as stopped:
            reason = stopped.reason
    if watch.interrupted:  # perhaps after the last check
        reason = "interrupted"
    rng = np.random.default_rng(seed)
    drawn = draw_atoms(atoms, np.asarray(chances_of(state[0], fixed)), rows, rng)
    return Projection(atoms.draw(drawn, rng), loss, reason, 2 * done, watch.seconds)


@lru_cache
def _compiled(
    tools: Gradients, logits: Logits, starts: tuple[int, ...], batch: int, learning_rate: float
) -> tuple[Any, Any]:
    """Functions for some steps, and for the chances of all atoms; compiled once for each shape.

    Args:
        tools: JAX and Optax.
        logits: See ``fit_mixture``.
        starts: Where each column's atoms begin.
        batch: How many queries a step looks at.
        learning_rate: Of Adam.
    """
    jax, jnp, optax = tools
    optimizer = optax.adam(learning_rate)

    def chances(theta: Any, fixed: Any) -> Any:
        """The chances of every column's atoms, which sum to one."""
        each = logits(jnp, theta, fixed)
        # The gradient of a split is one array; that of slices is as many, each as large as all.
        parts = jnp.split(each, starts[1:-1])
        return jnp.concatenate([jax.nn.softmax(part, axis=0) for part in parts])

    def steps(state: Any, fixed: Any, layout: Layout, targets: Any, pairs: int) -> Any:
        def step(state: Any, by_error: Any) -> tuple[Any, Any]:
            theta, moments, key = state
            key, mine = jax.random.split(key)
            found, pull = jax.vjp(
                lambda each: product_answers(jnp, layout, chances(each, fixed)), theta
            )
            errors = found - targets
            sizes = jnp.abs(errors)
            times = drawn_times(tools, mine, jnp.where(by_error, sizes, 1.0), batch)
            (gradient,) = pull(times * jnp.sign(errors))
            changes, moments = optimizer.update(gradient, moments)
            return (optax.apply_updates(theta, changes), moments, key), sizes.sum()

        return jax.lax.scan(step, state, jnp.arange(2 * pairs) % 2 == 0)

    return jax.jit(steps, static_argnums=4), jax.jit(chances)


def drawn_times(tools: Gradients, key: Any, weights: Any, batch: int) -> Any:
    """How often each query is drawn for a batch, in proportion to its weight."""
    jax, jnp, _ = tools
    ends = jnp.cumsum(weights)
    drawn = jnp.searchsorted(ends, jax.random.uniform(key, (batch,)) * ends[-1], side="right")
    return jnp.zeros(len(weights)).at[drawn].add(1.0, mode="drop")


def draw_atoms(
    atoms: Atoms, chances: NDArray[np.float32], rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rows of a mixture, as many from each product distribution as goes."""
    mixtures = chances.shape[1]
    order = np.concatenate(
        [np.arange(rows - rows % mixtures) % mixtures, rng.permutation(mixtures)]
    )
    mixture = order[:rows]
    drawn = np.empty((rows, len(atoms.sizes)), dtype=np.int64)
    for place in range(len(atoms.sizes)):
        mine = chances[atoms.starts[place] : atoms.starts[place + 1]].astype(np.float64)
        drawn[:, place] = draw_places(mine, mixture, rng)
    return drawn
