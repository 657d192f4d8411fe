"""RAP (RP, where it is one-shot): a mixture of product distributions with free chances.

The softmax variant (Liu et al., 2021, after Aydöre et al., 2021), with the paper's update and
hyperparameters. It serves marginals: of discrete columns, and of numeric ones by ranges or trees,
which it discretises at their cuts. It cannot serve prefixes, halfspaces, conditions in SQL or
Python functions. Queries all count alike, whatever their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from private_gsd.projection.baselines.mixing import Mixing

if TYPE_CHECKING:
    from private_gsd.projection.atoms import Atoms


@dataclass(frozen=True, kw_only=True)
class RAP(Mixing):
    """The projector "rap"; its settings are those of ``Mixing``."""

    @property
    def name(self) -> str:
        """As it is registered."""
        return "rap"

    def begin(self, tools: Any, atoms: Atoms, key: Any) -> tuple[Any, Any]:
        """Random logits; nothing stays."""
        return tools.jax.random.normal(key, (int(atoms.starts[-1]), self.mixtures)), ()

    @staticmethod
    def logits(jnp: Any, theta: Any, fixed: Any) -> Any:  # noqa: ARG004
        """The parameters are the logits."""
        return theta
