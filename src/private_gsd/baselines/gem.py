"""GEM (GN, where it is one-shot): a network that makes product distributions of noise.

After Liu et al. (2021), with the paper's update and hyperparameters: noise of 16 numbers goes
through hidden layers of 128 and 256 and becomes the chances of a product distribution. The noise of
every product distribution is drawn once. It serves marginals: of discrete columns, and of numeric
ones by ranges or trees, which it discretises at their cuts. It cannot serve prefixes, halfspaces,
conditions in SQL or Python functions. Queries all count alike, whatever their noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from private_gsd.baselines.mixtures import fit_mixture
from private_gsd.baselines.optional import gradients
from private_gsd.baselines.products import too_many_products
from private_gsd.baselines.projector import Projection, require_served
from private_gsd.baselines.settings import check_settings
from private_gsd.workloads import Marginals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.baselines.features import Atoms
    from private_gsd.genetic.watch import Callback
    from private_gsd.measurement import Measurements
    from private_gsd.workloads import Workload

NOISE = 16
HIDDEN = (128, 256)


@dataclass(frozen=True, kw_only=True)
class GEM:
    """The projector "gem".

    Attributes:
        mixtures: How many product distributions, K in the paper.
        batch: How many queries a step looks at, B.
        iterations: How many pairs of steps, M.
        learning_rate: Of Adam.
    """

    mixtures: int = 1000
    batch: int = 5000
    iterations: int = 1000
    learning_rate: float = 0.0003

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def name(self) -> str:
        """As it is registered."""
        return "gem"

    @property
    def limited(self) -> bool:
        """A few groups always do together."""
        return False

    def check(self, workload: Workload) -> None:
        """Refuse all but marginals."""
        gradients(self.name)
        require_served(self.name, workload, (Marginals,))

    def misfit(self, workload: Workload) -> str | None:
        """Why there would be too many products."""
        return too_many_products(workload, self.mixtures)

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: NDArray[np.float64] | None = None,  # noqa: ARG002
        threads: int | None = None,  # noqa: ARG002
        callback: Callback | None = None,
    ) -> Projection:
        """Train the network anew, whatever the start, and draw rows; JAX chooses the threads."""
        tools = gradients(self.name)
        jax, jnp = tools.jax, tools.jnp

        def begin(atoms: Atoms, key: Any) -> tuple[Any, Any]:
            widths = (NOISE, *HIDDEN, int(atoms.starts[-1]))
            keys = jax.random.split(key, len(widths))
            noise = jax.random.normal(keys[0], (NOISE, self.mixtures))
            layers = [
                (
                    jax.random.normal(each, (after, before)) * math.sqrt(2 / before),
                    jnp.zeros((after, 1)),
                )
                for each, before, after in zip(keys[1:], widths, widths[1:], strict=False)
            ]
            return layers, noise

        return fit_mixture(
            self.name,
            tools,
            measurements,
            begin,
            network_logits,
            mixtures=self.mixtures,
            batch=self.batch,
            iterations=self.iterations,
            learning_rate=self.learning_rate,
            rows=rows,
            seed=seed,
            callback=callback,
        )


def network_logits(jnp: Any, theta: Any, fixed: Any) -> Any:
    """What the network, of weights and biases, makes of the noise that stays."""
    signal = fixed
    for weights, biases in theta[:-1]:
        signal = jnp.maximum(weights @ signal + biases, 0)
    weights, biases = theta[-1]
    return weights @ signal + biases
