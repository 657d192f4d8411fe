"""Terms: what a mechanism is told, what it leaves behind, and what it comes to.

What was spent and learned is handed to a checkpoint before anything is made of it, so that a run
that dies goes on from there. A step that was paid for and not kept is drawn again under the same
charge: what it drew the first time died with the process, and the ledger sees to it that nobody
keeps a second one (see ``privacy.runs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from private_gsd.errors import BudgetError
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.measurements.measurements import Measurements
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.privacy.measuring import NoisyTotal
    from private_gsd.privacy.noise import NoiseSource
    from private_gsd.workloads import Neighbours, Workload

    Matrix = NDArray[np.float64]
    Before = Callable[[str], object]

Name = Literal["one-shot", "layered", "adaptive", "mst", "aim"]
Split = Literal["half", "tenth"]


class EndedEarlyWarning(UserWarning):
    """An adaptive run ended before its last epoch, and gave back what it had not spent."""


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """How the budget is spent.

    >>> Mechanism(name="adaptive", epochs=25, groups=2).split
    'half'

    Attributes:
        name: "one-shot" measures every group once; "layered", too, and with most of the budget the
            pairs of columns in marginals of more; "adaptive" measures, in each of some epochs, the
            groups that the synthetic table so far answers worst; "mst" measures all columns and a
            tree of pairs; "aim" all columns, and in rounds what is worth its noise.
        epochs: Of the adaptive one, T in the paper.
        groups: Of the adaptive one, how many groups are selected in an epoch, S in the paper.
        split: Of the adaptive one, how much goes to selecting: "half", as in the paper (ρ/(2TS) to
            each selection and each measurement), or a "tenth".
    """

    name: Name = "one-shot"
    epochs: int = 25
    groups: int = 1
    split: Split = "half"

    def __post_init__(self) -> None:
        for name, known in (("name", Name), ("split", Split)):
            if getattr(self, name) not in get_args(known):
                words = " or ".join(repr(each) for each in get_args(known))
                raise BudgetError(f"{name} must be {words}, not {getattr(self, name)!r}")
        for name in ("epochs", "groups"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, 2**20))


class Checkpoint(Protocol):
    """What a run leaves behind as it goes on; everything it is given is kept when it returns."""

    def measurements(self) -> Measurements | None:
        """All that was measured, if anything was."""

    def epochs(self) -> list[list[int]]:
        """The groups that were selected, epoch by epoch; the last ones may not be measured."""

    def table(self, epoch: int) -> Matrix | None:
        """The synthetic table at the end of an epoch, if it was made; the last two are there."""

    def total(self) -> NoisyTotal | None:
        """The number of rows, if it was measured."""

    def keep_total(self, total: NoisyTotal, before: Before) -> None:
        """Keep the number of rows, once ``before`` was told its digest."""

    def keep_epochs(self, epochs: list[list[int]], before: Before) -> None:
        """Keep which groups were selected, once ``before`` was told the digest."""

    def keep_measurements(self, measurements: Measurements, before: Before) -> None:
        """Keep what was measured, once ``before`` was told the digest."""

    def keep_table(self, epoch: int, table: Matrix) -> None:
        """Keep a synthetic table."""


class WhyInfeasible(Protocol):
    """Says why a table cannot be made of some groups together, if it cannot."""

    def __call__(self, groups: list[int], share: float = 1.0) -> str | None:
        """By public facts alone.

        Args:
            groups: The groups.
            share: How much of the size that a model may have they may take.
        """


@dataclass(frozen=True)
class Run:
    """What a mechanism needs to run.

    Attributes:
        workload: What may be measured: the questions, and with "mst" and "aim" their parts (see
            ``measurable``).
        budget: What may be spent.
        exact: Gives the exact answers; asked only where data is needed, and then once.
        pay: Gives the accountant of a step, by the step's name.
        paid: Says what a step has paid, by its name; None where it has not.
        noise: Gives the noise of a step, by the step's number.
        project: Makes a table of measurements: from a table to begin with, and a number that says
            which of the run's tables it is.
        begin: The first table of an adaptive run.
        keep: Takes down, by a step's name, the digest of what it learned; before it is seen.
        check: Makes sure that some steps, by their names, are known to have kept what they learned,
            and that the last of them kept what the checkpoint has: the "total", the "epochs" or the
            "measurements".
        checkpoint: What is left behind.
        neighbours: Which tables count as neighbours.
        why_infeasible: Says, where there are groups that a table cannot be made of together, why
            some cannot. It looks at public facts alone, and such groups are not selected.
        asked: The questions; by default all of the workload.
    """

    workload: Workload
    budget: RhoBudget
    exact: Callable[[], ExactCounts]
    pay: Callable[[str], Accountant]
    paid: Callable[[str], int | None]
    noise: Callable[[int], NoiseSource]
    project: Callable[[Measurements, Matrix | None, int], Matrix]
    begin: Callable[[], Matrix]
    keep: Callable[[str, str], object]
    check: Callable[[list[str], str], object]
    checkpoint: Checkpoint
    neighbours: Neighbours = "replace-one"
    why_infeasible: WhyInfeasible | None = None
    asked: Workload | None = None


class Outcome(NamedTuple):
    """What a run comes to.

    Attributes:
        measurements: All that was measured.
        table: The synthetic table, encoded.
        unspent: What was planned and not spent, where the run ended early.
    """

    measurements: Measurements
    table: Matrix
    unspent: int = 0


class Expected(NamedTuple):
    """What a mechanism does with a budget, as far as that is known before.

    Attributes:
        units: For each group that may be measured, what measuring it would get (the first time).
        searches: How many tables are made, at most.
        selecting: The scale of the noise that selecting adds to an error in rows; 0 where nothing
            is selected.
    """

    units: list[int]
    searches: int
    selecting: float
