"""Projectors: measurements in, an encoded synthetic table out. The door that all rivals share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from private_gsd.errors import SearchError, WorkloadError
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.genetic.config import MOST_ROWS, whole_number
from private_gsd.workloads import (
    Conjunctions,
    Functions,
    Halfspaces,
    Marginals,
    Predicates,
    Sums,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.projection.watch import Callback, Reason
    from private_gsd.workloads import Family, Workload

    Matrix = NDArray[np.float64]

# What a family is called, to people.
KINDS: dict[type[Family], str] = {
    Marginals: "marginals",
    Conjunctions: "prefixes",
    Halfspaces: "halfspaces",
    Predicates: "conditions in SQL",
    Functions: "Python functions",
    Sums: "sums",
}


@dataclass(frozen=True, eq=False)
class Projection:
    """What a projector made.

    Attributes:
        matrix: The synthetic table, encoded.
        loss: What the projector minimises, as it ended. Losses of different projectors do not
            compare.
        reason: Why it stopped.
        steps: How many steps it took.
        seconds: How long it took, compiling included.
    """

    matrix: Matrix = field(repr=False)
    loss: float
    reason: Reason
    steps: int
    seconds: float


class Projector(Protocol):
    """Makes tables of measurements; its attributes are its settings."""

    @property
    def name(self) -> str:
        """What it is called in the registry."""

    @property
    def limited(self) -> bool:
        """Whether few groups may be too many together, so that a selection must look at each."""

    def check(self, workload: Workload) -> None:
        """Refuse queries that it cannot serve, by name, and an extra that is not installed."""

    def why_infeasible(self, workload: Workload, share: float = 1.0) -> str | None:
        """Why it cannot take measurements of all these groups at once, if it cannot.

        Args:
            workload: The groups.
            share: How much of the size that a model may have it may take, where that grows with
                every group.
        """

    def prepare(self, measurements: Measurements, *, rows: int) -> None:
        """Load what projecting needs from the disk, or compile it, before anything is paid for.

        Args:
            measurements: Of a query of each kind, with any answers.
            rows: How many rows the table has.
        """

    def project(
        self,
        measurements: Measurements,
        *,
        rows: int,
        seed: int = 0,
        start: Matrix | None = None,
        threads: int | None = None,
        callback: Callback | None = None,
    ) -> Projection:
        """Make a table. The same measurements, settings and seed give the same one.

        Args:
            measurements: The noisy answers.
            rows: How many rows the table has.
            seed: Of the search; privacy does not depend on it.
            start: An encoded table of as many rows to begin with, where that is of use.
            threads: How many to use, where that can be chosen.
            callback: Told of progress; if it returns true, the table is made of what there is.
        """


def require_served(name: str, workload: Workload, served: tuple[type[Family], ...]) -> None:
    """Refuse families that a projector does not serve."""
    for family in workload.families:
        if not isinstance(family, served):
            relaxed = isinstance(family, Conjunctions | Halfspaces)
            others = "gsd or rap++" if relaxed else "gsd"
            raise WorkloadError(
                f"the projector {name!r} cannot serve "
                f"{KINDS.get(type(family), type(family).__name__)} "
                f"(such as {family.describe(0)}); it serves "
                f"{', '.join(KINDS[each] for each in served)}. Leave them out, or use the "
                f"projector {others}"
            )


def require_finite(name: str, loss: float, learning_rate: float) -> float:
    """A loss that is a number; a learning rate that is too large leaves the numbers there are."""
    if not math.isfinite(loss):
        raise SearchError(
            f"the loss of the projector {name!r} is {loss}: its learning rate of "
            f"{learning_rate:g} is too large; take a smaller one, as in "
            f"{name}:learning_rate={learning_rate / 10:g}"
        )
    return loss


def checked(measurements: Measurements, rows: int, seed: int) -> tuple[int, int]:
    """The number of rows and the seed, if all three make sense."""
    if not isinstance(measurements, Measurements):
        raise SearchError(f"a projector needs Measurements, not {type(measurements).__name__}")
    return whole_number("rows", rows, 1, MOST_ROWS), whole_number("seed", seed, 0, 2**63 - 1)
