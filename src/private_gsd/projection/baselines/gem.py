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

from private_gsd.projection.baselines.mixing import Mixing

if TYPE_CHECKING:
    from private_gsd.projection.atoms import Atoms

NOISE = 16
HIDDEN = (128, 256)


@dataclass(frozen=True, kw_only=True)
class GEM(Mixing):
    """The projector "gem"; its settings are those of ``Mixing``, but for the learning rate."""

    learning_rate: float = 0.0003

    @property
    def name(self) -> str:
        """As it is registered."""
        return "gem"

    def begin(self, tools: Any, atoms: Atoms, key: Any) -> tuple[Any, Any]:
        """Random weights, biases of zero; the noise stays."""
        widths = (NOISE, *HIDDEN, int(atoms.starts[-1]))
        keys = tools.jax.random.split(key, len(widths))
        noise = tools.jax.random.normal(keys[0], (NOISE, self.mixtures))
        layers = [
            (
                tools.jax.random.normal(each, (after, before)) * math.sqrt(2 / before),
                tools.jnp.zeros((after, 1)),
            )
            for each, before, after in zip(keys[1:], widths, widths[1:], strict=False)
        ]
        return layers, noise

    @staticmethod
    def logits(jnp: Any, theta: Any, fixed: Any) -> Any:
        """What the network, of weights and biases, makes of the noise that stays."""
        signal = fixed
        for weights, biases in theta[:-1]:
            signal = jnp.maximum(weights @ signal + biases, 0)
        weights, biases = theta[-1]
        return weights @ signal + biases
