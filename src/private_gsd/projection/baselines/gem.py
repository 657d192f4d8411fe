"""GEM (GN in the one-shot setting): a network that maps noise to product distributions.

After Liu et al. (2021), with the paper's update and hyperparameters: 16 random numbers pass hidden
layers of 128 and 256 units and yield the probabilities of a product distribution. The random
numbers of every product distribution are drawn once. GEM serves marginals of discrete columns, and
of numeric columns by ranges or trees, which it discretises at their cut points. It cannot serve
prefixes, halfspaces, conditions in SQL or Python functions. All queries have the same weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from private_gsd.projection.baselines.mixture_projector import MixtureProjector

if TYPE_CHECKING:
    from private_gsd.projection.atoms import Atoms

INPUTS = 16
HIDDEN = (128, 256)
# Factor of the last layer's weights where single columns alone are measured.
ALIKE = 0.1


@dataclass(frozen=True, kw_only=True)
class GEM(MixtureProjector):
    """GEM: a neural network whose outputs are product distributions (projector ``"gem"``).

    It serves marginals, and needs the optional packages of ``private-gsd[baselines]``.

    Attributes:
        mixtures: Number of product distributions, K in the paper.
        batch: Number of queries in the batch of a step, B in the paper.
        iterations: Number of pairs of steps, M in the paper.
        learning_rate: Learning rate of Adam.
    """

    learning_rate: float = 0.0003

    @property
    def name(self) -> str:
        """The name in the registry."""
        return "gem"

    def begin(self, tools: Any, atoms: Atoms, key: Any, *, joint: bool) -> tuple[Any, Any]:
        """Random weights and biases of zero; the random numbers are constant.

        Where single columns alone are measured, the product distributions begin nearly alike: what
        they differ in is dependence between columns, which nothing corrects then.
        """
        widths = (INPUTS, *HIDDEN, int(atoms.starts[-1]))
        keys = tools.jax.random.split(key, len(widths))
        inputs = tools.jax.random.normal(keys[0], (INPUTS, self.mixtures))
        layers = [
            (
                tools.jax.random.normal(each, (after, before)) * math.sqrt(2 / before),
                tools.jnp.zeros((after, 1)),
            )
            for each, before, after in zip(keys[1:], widths, widths[1:], strict=False)
        ]
        if not joint:
            weights, biases = layers[-1]
            layers[-1] = ALIKE * weights, biases
        return layers, inputs

    @staticmethod
    def logits(jnp: Any, parameters: Any, constant: Any) -> Any:
        """The output of the network for the constant random numbers."""
        signal = constant
        for weights, biases in parameters[:-1]:
            signal = jnp.maximum(weights @ signal + biases, 0)
        weights, biases = parameters[-1]
        return weights @ signal + biases
