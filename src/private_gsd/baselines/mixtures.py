"""Mixtures of product distributions, fitted to measurements: Algorithm 3 of the paper.

RAP and GEM differ in what stands behind the mixture: free chances, or a network. The fit is the
same. Each step finds all answers, draws a batch of queries (in turns by their errors and without
preference), and goes down the gradient of the batch's absolute errors, by Adam. A query that is
drawn twice counts twice, so that the gradient of a batch is the gradient of all queries with
weights: no query needs to be taken out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.baselines.features import Atoms, tables_asked
from private_gsd.baselines.products import ProductQueries
from private_gsd.baselines.projector import Projection, checked, require_served
from private_gsd.genetic.watch import Reason, Stopped, Watch
from private_gsd.workloads import Marginals

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.baselines.optional import Gradients
    from private_gsd.genetic.watch import Callback
    from private_gsd.measurement import Measurements

# Pairs of steps between two words about them.
AT_ONCE = 10


def fit_mixture(
    name: str,
    tools: Gradients,
    measurements: Measurements,
    begin: Callable[[Atoms, Any], tuple[Any, Callable[[Any], Any]]],
    *,
    mixtures: int,
    batch: int,
    iterations: int,
    learning_rate: float,
    rows: int,
    seed: int,
    callback: Callback | None,
) -> Projection:
    """Fit a mixture and draw rows from it.

    Args:
        name: The projector's.
        tools: JAX and Optax.
        measurements: The noisy answers.
        begin: Gives, for atoms and a random key, the parameters to begin with, and a function
            from parameters to the logits of every atom (rows) in every mixture (columns).
        mixtures: How many product distributions.
        batch: How many queries a step looks at.
        iterations: How many pairs of steps.
        learning_rate: Of Adam.
        rows: How many rows to draw.
        seed: Of everything.
        callback: Told of progress.
    """
    rows, seed = checked(measurements, rows, seed)
    require_served(name, measurements.workload, (Marginals,))
    jax, jnp, optax = tools
    watch = Watch(1.0, None, callback)
    tables = tables_asked(measurements.workload)
    atoms = Atoms.of(measurements.workload.schema, tables)
    queries = ProductQueries(atoms, tables, mixtures)
    targets = jnp.asarray(measurements.shares[queries.queries], dtype=jnp.float32)
    first, key = jax.random.split(tools.key(seed))
    theta, logits_of = begin(atoms, first)
    optimizer = optax.adam(learning_rate)

    def answers(theta: Any) -> Any:
        return queries.answers(jnp, _chances(tools, atoms, logits_of(theta)))

    def step(state: Any, by_error: bool) -> tuple[Any, Any]:
        theta, moments, key = state
        key, mine = jax.random.split(key)
        found, pull = jax.vjp(answers, theta)
        errors = found - targets
        sizes = jnp.abs(errors)
        if by_error:
            ends = jnp.cumsum(sizes)
            drawn = jnp.searchsorted(ends, jax.random.uniform(mine, (batch,)) * ends[-1])
            drawn = jnp.minimum(drawn, len(targets) - 1)
        else:
            drawn = jax.random.randint(mine, (batch,), 0, len(targets))
        times = jnp.zeros(len(targets)).at[drawn].add(1.0)
        (gradient,) = pull(times * jnp.sign(errors))
        changes, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(theta, changes), moments, key), sizes.sum()

    def pair(state: Any, _: Any) -> tuple[Any, Any]:
        state, _ = step(state, True)
        return step(state, False)

    run = jax.jit(lambda state, length: jax.lax.scan(pair, state, None, length), static_argnums=1)
    state = (theta, optimizer.init(theta), key)
    done, loss = 0, float("nan")
    reason: Reason = "generations"
    with watch.listening():
        try:
            while done < iterations:
                length = min(AT_ONCE, iterations - done)
                state, losses = run(state, length)
                done += length
                loss = float(losses[-1])
                watch.report(2 * done, loss, whole=True)
        except Stopped as stopped:
            reason = stopped.reason
    chances = np.asarray(_chances(tools, atoms, logits_of(state[0])))
    rng = np.random.default_rng(seed)
    matrix = atoms.draw(draw_atoms(atoms, chances, rows, rng), rng)
    return Projection(matrix, loss, reason, 2 * done, watch.seconds)


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
        ends = np.cumsum(mine, axis=0)
        share = rng.random(rows) * ends[-1, mixture]
        below = (share[:, None] >= ends.T[mixture]).sum(axis=1)
        drawn[:, place] = np.minimum(below, len(mine) - 1)
    return drawn


def _chances(tools: Gradients, atoms: Atoms, logits: Any) -> Any:
    """The chances of every column's atoms, which sum to one."""
    parts = [
        tools.jax.nn.softmax(logits[begin:end], axis=0)
        for begin, end in zip(atoms.starts[:-1].tolist(), atoms.starts[1:].tolist(), strict=True)
    ]
    return tools.jnp.concatenate(parts)
