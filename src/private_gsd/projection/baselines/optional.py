"""Optional packages (JAX, Optax, mbi), imported when a projector needs them."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from private_gsd.errors import require


class Gradients(NamedTuple):
    """JAX and Optax, for gradient methods."""

    jax: Any
    jnp: Any
    optax: Any

    def key(self, seed: int) -> Any:
        """A random key from a seed of any size."""
        return self.jax.random.key(int(np.random.SeedSequence(seed).generate_state(1)[0]))


def gradients(name: str) -> Gradients:
    """JAX and Optax, for a projector."""
    what = f"The projector {name!r}"
    jax = require("jax", what=what, extra="baselines")
    return Gradients(
        jax,
        require("jax.numpy", what=what, extra="baselines"),
        require("optax", what=what, extra="baselines"),
    )


def graphical_models(name: str) -> Any:
    """The package mbi, for a projector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mbi warns of single precision, which is not used here
        return require("mbi", what=f"The projector {name!r}", extra="baselines")
