"""Mechanisms: measure once, or select, measure and project in turns.

What was spent and learned is handed to a checkpoint before anything is made of it, so that a run
that dies goes on from there. A step that was paid for and not kept is drawn again under the same
charge: what it drew the first time died with the process, and the ledger sees to it that nobody
keeps a second one (see ``privacy.runs``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np

from private_gsd.answering import count
from private_gsd.errors import BudgetError, MeasurementError, SearchError
from private_gsd.measurement import Measurements, measure
from private_gsd.privacy.plan import plan_one_shot
from private_gsd.privacy.release import NoisyTotal, Selection, release_total, select_groups
from private_gsd.workloads.checks import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.answering import ExactAnswers
    from private_gsd.privacy.accountant import Accountant
    from private_gsd.privacy.budget import Budget
    from private_gsd.privacy.mechanisms import NoiseSource
    from private_gsd.workloads import Neighbours, Workload

    Matrix = NDArray[np.float64]
    Before = Callable[[str], object]

Name = Literal["one-shot", "adaptive"]
Split = Literal["half", "tenth"]

# The share of the budget that measuring the number of rows gets, where it is not public.
COUNTING = 0.02
# The number of that step; those of the epochs are counted from 0.
COUNTING_STEP = 2**31
# The part of the budget that selecting gets, where the rest is for measuring.
SPLITS: dict[str, tuple[int, int]] = {"half": (1, 1), "tenth": (1, 9)}


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """How the budget is spent.

    >>> Mechanism(name="adaptive", epochs=25, groups=2).split
    'half'

    Attributes:
        name: "one-shot" measures every group once; "adaptive" measures, in each of some epochs, the
            groups that the synthetic table so far answers worst.
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
        """The synthetic table at the end of an epoch, if it was made."""

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


@dataclass(frozen=True)
class Run:
    """What a mechanism needs to run.

    Attributes:
        workload: The questions.
        budget: What may be spent.
        exact: Gives the exact answers; asked only where data is needed, and then once.
        pay: Gives the accountant of a step, by the step's name.
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
        misfit: Says, where there are groups that a table cannot be made of together, why some
            cannot. It looks at public facts alone, and such groups are not selected.
    """

    workload: Workload
    budget: Budget
    exact: Callable[[], ExactAnswers]
    pay: Callable[[str], Accountant]
    noise: Callable[[int], NoiseSource]
    project: Callable[[Measurements, Matrix | None, int], Matrix]
    begin: Callable[[], Matrix]
    keep: Callable[[str, str], object]
    check: Callable[[list[str], str], object]
    checkpoint: Checkpoint
    neighbours: Neighbours = "replace-one"
    misfit: Callable[[list[int]], str | None] | None = None


def run(mechanism: Mechanism, what: Run) -> tuple[Measurements, Matrix]:
    """Spend the budget, and make a table of what was measured.

    Returns:
        The measurements and the synthetic table.
    """
    counting, rest = count_and_rest(what.budget, what.neighbours)
    total = _count_rows(what, counting)
    what = replace(what, budget=rest)
    if mechanism.name == "one-shot":
        return _one_shot(what, total)
    return _adaptive(mechanism, what, total)


def planned_units(
    mechanism: Mechanism,
    workload: Workload,
    budget: Budget,
    neighbours: Neighbours = "replace-one",
) -> int:
    """All that a run will spend."""
    counting, rest = count_and_rest(budget, neighbours)
    if mechanism.name == "one-shot":
        return counting + sum(plan_one_shot(workload, rest, neighbours=neighbours).units)
    selecting, measuring = adaptive_units(mechanism, workload, rest)
    return counting + sum(selecting) + sum(map(sum, measuring))


def count_and_rest(budget: Budget, neighbours: Neighbours) -> tuple[int, Budget]:
    """What measuring the number of rows gets, where it is not public, and the rest."""
    if neighbours == "replace-one":
        return 0, budget
    counting, _ = budget.split([COUNTING, 1 - COUNTING])
    return counting, replace(budget, units=budget.units - counting)


def _count_rows(what: Run, units: int) -> NoisyTotal | None:
    """The number of rows, measured where it is not public."""
    if what.neighbours == "replace-one":
        return None
    known = what.checkpoint.total()
    if known is None:
        if what.checkpoint.measurements() is not None or what.checkpoint.epochs():
            raise MeasurementError("the number of rows is gone, and what was made of it is there")
        known = release_total(
            what.exact(),
            units,
            accountant=what.pay("number of rows"),
            noise=what.noise(COUNTING_STEP),
        )
        what.checkpoint.keep_total(known, partial(what.keep, "number of rows"))
    else:
        what.check(["number of rows"], "total")
    return known


def _one_shot(what: Run, total: NoisyTotal | None) -> tuple[Measurements, Matrix]:
    measured = what.checkpoint.measurements()
    if measured is None and what.checkpoint.table(0) is not None:
        raise MeasurementError("the measurements are gone, and a table of them is there")
    if measured is None:
        plan = plan_one_shot(what.workload, what.budget, neighbours=what.neighbours)
        measured = measure(
            what.exact(),
            range(what.workload.num_groups),
            plan.units,
            accountant=what.pay("measure"),
            noise=what.noise(0),
            neighbours=what.neighbours,
            rows=total,
        )
        what.checkpoint.keep_measurements(measured, partial(what.keep, "measure"))
    else:
        what.check(["measure"], "measurements")
    table = what.checkpoint.table(0)
    if table is None:
        table = what.project(measured, None, 0)
        what.checkpoint.keep_table(0, table)
    return measured, table


def adaptive_units(
    mechanism: Mechanism, workload: Workload, budget: Budget
) -> tuple[list[int], list[list[int]]]:
    """What each epoch's selection gets, and each of its measurements.

    There are no more epochs than it takes to measure everything.
    """
    if (workload.units != 1).any():
        raise BudgetError(
            "the adaptive mechanism selects by errors of counts, and cannot select sums; measure "
            "them one-shot"
        )
    sizes: list[int] = []
    left = workload.num_groups
    while left and len(sizes) < mechanism.epochs:
        sizes.append(min(mechanism.groups, left))
        left -= sizes[-1]
    selecting, measuring = SPLITS[mechanism.split]
    weights = [float(selecting * size) for size in sizes]
    weights += [float(measuring)] * sum(sizes)
    units = budget.split(weights)
    epochs = []
    place = len(sizes)
    for size in sizes:
        epochs.append(units[place : place + size])
        place += size
    return units[: len(sizes)], epochs


def _adaptive(
    mechanism: Mechanism, what: Run, total: NoisyTotal | None
) -> tuple[Measurements, Matrix]:
    selecting, measuring = adaptive_units(mechanism, what.workload, what.budget)
    measured = what.checkpoint.measurements()
    epochs = what.checkpoint.epochs()
    done = _measured_epochs(what, measured, epochs)
    what.check([f"epoch {epoch + 1}: select" for epoch in range(len(epochs))], "epochs")
    what.check([f"epoch {epoch + 1}: measure" for epoch in range(done)], "measurements")
    table: Matrix | None = None
    for epoch in range(max(done - 1, 0), len(selecting)):
        table = what.begin() if epoch == 0 else what.checkpoint.table(epoch - 1)
        if table is None:
            raise MeasurementError(f"the table of epoch {epoch} is gone: the run cannot go on")
        if epoch >= done:
            if epoch < len(epochs):  # selected, kept, and not measured yet
                chosen = Selection(tuple(epochs[epoch]), what.noise(2 * epoch).private)
            else:
                size = len(measuring[epoch])
                chosen = _select(what, table, epochs, size, epoch, selecting[epoch], total)
                epochs = [*epochs, list(chosen.groups)]
                step = f"epoch {epoch + 1}: select"
                what.checkpoint.keep_epochs(epochs, partial(what.keep, step))
            new = measure(
                what.exact(),
                chosen,
                measuring[epoch],
                accountant=what.pay(f"epoch {epoch + 1}: measure"),
                noise=what.noise(2 * epoch + 1),
                neighbours=what.neighbours,
                rows=total,
            )
            measured = new if measured is None else measured + new
            step = f"epoch {epoch + 1}: measure"
            what.checkpoint.keep_measurements(measured, partial(what.keep, step))
        assert measured is not None
        made = what.checkpoint.table(epoch)
        if made is None:
            made = what.project(measured, table, epoch)
            what.checkpoint.keep_table(epoch, made)
        table = made
    assert measured is not None
    assert table is not None
    return measured, table


def _measured_epochs(what: Run, total: Measurements | None, epochs: list[list[int]]) -> int:
    """How many epochs were measured; groups are kept before they are, so one may be left.

    What does not add up is refused: to measure again what was measured would be to draw twice
    under one charge.
    """
    groups = [group for epoch in epochs for group in epoch]
    known = range(what.workload.num_groups)
    measured = 0 if total is None else total.workload.num_groups
    done = len(epochs)
    if measured < len(groups):
        done -= 1
    if (
        len(set(groups)) < len(groups)
        or any(group not in known for group in groups)
        or sum(map(len, epochs[:done])) != measured
        or (total is None and what.checkpoint.table(0) is not None)
    ):
        raise MeasurementError("the epochs, the measurements and the tables do not fit together")
    return done


def _select(
    what: Run,
    table: Matrix,
    epochs: list[list[int]],
    k: int,
    epoch: int,
    units: int,
    total: NoisyTotal | None,
) -> Selection:
    """The groups that a table answers worst, of those not measured yet."""
    measured = {group for each in epochs for group in each}
    candidates = [group for group in range(what.workload.num_groups) if group not in measured]
    candidates = _fitting(what, sorted(measured), candidates)
    exact = what.exact()
    return select_groups(
        exact,
        count(what.workload, table) / len(table),
        exact.rows if total is None else total.rows,
        candidates,
        k,
        units,
        accountant=what.pay(f"epoch {epoch + 1}: select"),
        noise=what.noise(2 * epoch),
        neighbours=what.neighbours,
    )


def _fitting(what: Run, measured: list[int], candidates: list[int]) -> list[int]:
    """The groups that a table can be made of together with those that were measured."""
    if what.misfit is None:
        return candidates
    reasons = {group: what.misfit([*measured, group]) for group in candidates}
    fitting = [group for group in candidates if reasons[group] is None]
    if not fitting:
        raise SearchError(
            f"none of the {len(candidates):,} groups that are left can be added to the "
            f"{len(measured):,} that were measured: {reasons[candidates[0]]}. Take fewer epochs"
        )
    return fitting
