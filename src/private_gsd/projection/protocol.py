"""The protocol of projectors: measurements in, an encoded synthetic table out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from private_gsd.errors import ProjectionError, WorkloadError
from private_gsd.measurements.measurements import Measurements
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads.checks import whole
from private_gsd.workloads.layout import QueryLayout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.projection.watch import Reason
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

MOST_ROWS = 2**31 - 1
# The queries of a layout that have a gradient, and their names in messages.
RELAXED = {"tables": "marginals", "conjunctions": "prefixes", "halfspaces": "halfspaces"}


@dataclass(frozen=True, eq=False)
class Projection:
    """The result of a projector.

    Attributes:
        matrix: The synthetic table, encoded.
        loss: The loss of the projector at the end. Losses of different projectors are not
            comparable.
        reason: The reason why the projector stopped.
        steps: The number of steps.
        seconds: The time that the projection took, with compilation.
    """

    matrix: Matrix = field(repr=False)
    loss: float
    reason: Reason
    steps: int
    seconds: float


class Projector(ABC):
    """A projector makes tables from measurements.

    Subclasses are frozen dataclasses. Their fields are the settings.
    """

    # Whether the tables of this projector keep the rules of a schema.
    keeps_rules: ClassVar[bool] = False
    # Whether this projector takes public counts and derived statistics beside measurements.
    takes_knowledge: ClassVar[bool] = False
    # Whether rows are drawn from a model, so that many rows take hardly longer than a few.
    from_model: ClassVar[bool] = False

    @property
    def finds_interactions(self) -> bool:
        """Whether it finds in a noisy table of many columns what several of them have in common."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in the registry."""

    @property
    def has_size_limit(self) -> bool:
        """Whether a few groups may be infeasible, so that a selection must check each group."""
        return False

    def check(self, workload: Workload) -> None:  # noqa: B027
        """Raise an error that names queries it cannot serve, or a missing optional package."""

    def why_infeasible(self, workload: Workload, share: float = 1.0) -> str | None:  # noqa: ARG002
        """Why the projector cannot use measurements of all these groups at once; None if it can.

        Args:
            workload: The groups.
            share: The fraction of the largest allowed model that these groups may take, where the
                model grows with every group.
        """
        return None

    def takes_new_rows(self, workload: Workload) -> bool:
        """Whether a large table is a smaller one of this projector with new rows.

        Args:
            workload: The queries that are fitted.
        """
        return not QueryLayout.of(workload.families).functions

    def prepare(self, measurements: Measurements, *, rows: int) -> None:  # noqa: B027
        """Compile what a projection needs, or load it, before any budget is spent.

        Args:
            measurements: One query group of each family, with any answers.
            rows: The number of rows of the table.
        """

    @abstractmethod
    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: Matrix | None = None,
        threads: int | None = None,
        progress: Progress = ignore,
    ) -> Projection:
        """Make a table. The same measurements, settings and seed give the same table.

        Args:
            measurements: The noisy answers.
            rows: The number of rows of the table.
            seed: The seed of the projection; privacy does not depend on it.
            start: An encoded table of ``rows`` rows to start from, where the projector supports it.
            threads: The number of threads, where the projector supports it.
            progress: Called with the progress; if it returns true, the projection stops, and the
                table is made from what was found so far.
        """

    def to_dict(self) -> dict[str, Any]:
        """The name and the settings, for JSON."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]


def require_served(name: str, workload: Workload, served: tuple[str, ...]) -> None:
    """Refuse families that a projector does not serve.

    Args:
        name: The name of the projector.
        workload: The queries.
        served: The queries of a ``QueryLayout`` that it serves; some of ``RELAXED``.
    """
    for family in workload.families:
        forms = QueryLayout.of([family]).forms
        if not forms <= set(served):
            others = "gsd or rap++" if forms <= set(RELAXED) else "gsd"
            raise WorkloadError(
                f"the projector {name!r} cannot serve {family.title} "
                f"(such as {family.describe(0)}); it serves "
                f"{', '.join(RELAXED[each] for each in served)}. Leave them out, or use the "
                f"projector {others}"
            )


def require_finite(name: str, loss: float, learning_rate: float) -> float:
    """The loss, if it is finite; raises an error otherwise (the learning rate is too large)."""
    if not math.isfinite(loss):
        raise ProjectionError(
            f"the loss of the projector {name!r} is {loss}: its learning rate of "
            f"{learning_rate:g} is too large; take a smaller one, as in "
            f"{name}:learning_rate={learning_rate / 10:g}"
        )
    return loss


def checked(measurements: Measurements, rows: int, seed: int) -> tuple[int, int]:
    """The number of rows and the seed, if they and the measurements are valid."""
    if not isinstance(measurements, Measurements):
        raise ProjectionError(f"a projector needs Measurements, not {type(measurements).__name__}")
    return (
        whole("rows", rows, 1, MOST_ROWS, ProjectionError),
        whole("seed", seed, 0, 2**63 - 1, ProjectionError),
    )
