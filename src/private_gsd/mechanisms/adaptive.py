"""Adaptive: select the groups that the table so far answers worst, measure them, project; again.

The paper's Algorithm 2. Where a projector cannot take every group (a graphical model grows), only
those are selected that it can take with what was measured. If none is left the run ends there, with
the table it has, and what the other epochs would have spent is not spent.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, MeasurementError, SearchError
from private_gsd.measurements.measurements import measure
from private_gsd.mechanisms.base import EndedEarlyWarning, Outcome
from private_gsd.privacy.measuring import Selection, select_groups

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Mechanism, Run
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.privacy.measuring import NoisyTotal
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

# The part of the budget that selecting gets, where the rest is for measuring.
SPLITS: dict[str, tuple[int, int]] = {"half": (1, 1), "tenth": (1, 9)}


def adaptive_units(
    mechanism: Mechanism, workload: Workload, budget: RhoBudget
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


def run_adaptive(mechanism: Mechanism, what: Run, total: NoisyTotal | None) -> Outcome:
    """Go through the epochs, from the first that is not done."""
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
                candidates = _fitting(what, epochs)
                if not candidates:
                    left = sum(selecting[epoch:]) + sum(map(sum, measuring[epoch:]))
                    return Outcome(_some(measured), table, left)
                size = len(measuring[epoch])
                chosen = _select(what, table, candidates, size, epoch, selecting[epoch], total)
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
        made = what.checkpoint.table(epoch)
        if made is None:
            made = what.project(_some(measured), table, epoch)
            what.checkpoint.keep_table(epoch, made)
        table = made
    if table is None:
        raise MeasurementError("there are no epochs, and so there is no table")
    return Outcome(_some(measured), table)


def _some(measured: Measurements | None) -> Measurements:
    """What was measured; before the end of the first epoch there is nothing."""
    if measured is None:
        raise MeasurementError("nothing was measured yet")
    return measured


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
    candidates: list[int],
    k: int,
    epoch: int,
    units: int,
    total: NoisyTotal | None,
) -> Selection:
    """The groups that a table answers worst."""
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


def _fitting(what: Run, epochs: list[list[int]]) -> list[int]:
    """The groups not measured yet, that a table can be made of together with those that were."""
    measured = {group for each in epochs for group in each}
    candidates = [group for group in range(what.workload.num_groups) if group not in measured]
    if what.why_infeasible is None:
        return candidates
    reasons = {group: what.why_infeasible([*sorted(measured), group]) for group in candidates}
    fitting = [group for group in candidates if reasons[group] is None]
    if not fitting:
        words = (
            f"none of the {len(candidates):,} groups that are left can be added to the "
            f"{len(measured):,} that were measured: {reasons[candidates[0]]}"
        )
        if not measured:
            raise SearchError(words)
        warnings.warn(
            f"the run ended after {len(epochs)} epochs and gave back what it had not spent; "
            f"{words}. Take fewer epochs",
            EndedEarlyWarning,
            stacklevel=2,
        )
    return fitting
