"""Mixture projectors: the base class of RAP and GEM, which fit mixtures of products."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from private_gsd.projection.baselines.mixtures import fit_mixture
from private_gsd.projection.baselines.optional import gradients
from private_gsd.projection.baselines.products import too_many_products
from private_gsd.projection.baselines.setting_checks import check_settings
from private_gsd.projection.protocol import Projection, Projector, require_served
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads.layout import marginal_tables

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.atoms import Atoms
    from private_gsd.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class MixtureProjector(Projector):
    """A projector that fits a mixture of product distributions.

    Attributes:
        mixtures: Number of product distributions, K in the paper.
        batch: Number of queries in the batch of a step, B in the paper.
        iterations: Number of pairs of steps, M in the paper.
        learning_rate: Learning rate of Adam.
    """

    mixtures: int = 1000
    batch: int = 5000
    iterations: int = 1000
    learning_rate: float = 0.03

    from_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def begin(self, tools: Any, atoms: Atoms, key: Any, *, joint: bool) -> tuple[Any, Any]:
        """The first parameters, and the constants.

        Args:
            tools: JAX and Optax.
            atoms: The atoms of the columns.
            key: The random key.
            joint: Whether any marginal has more than one column.
        """

    @staticmethod
    @abstractmethod
    def logits(jnp: Any, parameters: Any, constant: Any) -> Any:
        """The logits of all product distributions, from parameters and constants."""

    def check(self, workload: Workload) -> None:
        """Refuse all queries except marginals."""
        gradients(self.name)
        require_served(self.name, workload, ("tables",))

    def why_infeasible(self, workload: Workload, share: float = 1.0) -> str | None:  # noqa: ARG002
        """Why the mixture would have too many products; None if it would not."""
        return too_many_products(workload, self.mixtures)

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: NDArray[np.float64] | None = None,  # noqa: ARG002
        threads: int | None = None,  # noqa: ARG002
        progress: Progress = ignore,
    ) -> Projection:
        """Fit a new mixture and draw rows; ``start`` and ``threads`` are not used."""
        tools = gradients(self.name)

        def begin(atoms: Any, key: Any) -> Any:
            tables = marginal_tables(measurements.workload)
            joint = any(len(table.features) > 1 for table in tables)
            return self.begin(tools, atoms, key, joint=joint)

        return fit_mixture(
            self.name,
            tools,
            measurements,
            begin,
            self.logits,
            mixtures=self.mixtures,
            batch=self.batch,
            iterations=self.iterations,
            learning_rate=self.learning_rate,
            rows=rows,
            seed=seed,
            progress=progress,
        )
