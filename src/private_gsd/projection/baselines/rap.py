"""RAP (RP in the one-shot setting): a mixture of product distributions with free probabilities.

This is the softmax variant (Liu et al., 2021, after Aydöre et al., 2021), with the paper's update
and hyperparameters. RAP serves marginals of discrete columns, and of numeric columns by ranges or
trees, which it discretises at their cut points. It cannot serve prefixes, halfspaces, conditions in
SQL or Python functions. All queries have the same weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from private_gsd.projection.baselines.mixture_projector import MixtureProjector

if TYPE_CHECKING:
    from private_gsd.projection.atoms import Atoms


@dataclass(frozen=True, kw_only=True)
class RAP(MixtureProjector):
    """RAP: a mixture of product distributions with free probabilities (projector ``"rap"``).

    It serves marginals, and needs the optional packages of ``private-gsd[baselines]``.

    Attributes:
        mixtures: Number of product distributions, K in the paper.
        batch: Number of queries in the batch of a step, B in the paper.
        iterations: Number of pairs of steps, M in the paper.
        learning_rate: Learning rate of Adam.
    """

    @property
    def name(self) -> str:
        """The name in the registry."""
        return "rap"

    def begin(self, tools: Any, atoms: Atoms, key: Any, *, joint: bool) -> tuple[Any, Any]:  # noqa: ARG002
        """Random logits, and no constants."""
        return tools.jax.random.normal(key, (int(atoms.starts[-1]), self.mixtures)), ()

    @staticmethod
    def logits(jnp: Any, parameters: Any, constant: Any) -> Any:  # noqa: ARG004
        """The parameters are the logits."""
        return parameters
