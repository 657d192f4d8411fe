"""Mechanisms by their names: what they spend, what that comes to, and how they run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from private_gsd.errors import BudgetError, MeasurementError
from private_gsd.mechanisms.adaptive import adaptive_units, run_adaptive
from private_gsd.mechanisms.aim import expect_aim, run_aim
from private_gsd.mechanisms.base import Expected
from private_gsd.mechanisms.candidates import AT_ONCE, SELECTIVE
from private_gsd.mechanisms.mst import expect_mst, run_mst
from private_gsd.mechanisms.one_shot import plan_of, run_one_shot
from private_gsd.privacy.measuring import NoisyTotal, release_total
from private_gsd.privacy.noise import selection_scale

if TYPE_CHECKING:
    from private_gsd.mechanisms.base import Mechanism, Outcome, Run
    from private_gsd.privacy.budget import Conversion, RhoBudget
    from private_gsd.workloads import Neighbours, Workload

# The share of the budget that measuring the number of rows gets, where it is not public.
COUNTING = 0.02
# The number of that step; those of the epochs are counted from 0.
COUNTING_STEP = 2**31


def run(mechanism: Mechanism, what: Run) -> Outcome:
    """Spend the budget, and make a table of what was measured."""
    counting, rest = count_and_rest(what.budget, what.neighbours)
    total = _count_rows(what, counting)
    what = replace(what, budget=rest)
    if mechanism.name in AT_ONCE:
        return run_one_shot(mechanism, what, total)
    if mechanism.name == "adaptive":
        return run_adaptive(mechanism, what, total)
    return run_mst(what, total) if mechanism.name == "mst" else run_aim(what, total)


def conversion_of(name: str) -> Conversion:
    """How ρ that a mechanism spends is best stated: less ε where all its noise is Gaussian."""
    return "gaussian" if name in ("auto", *AT_ONCE) else "tight"


def check_noise(conversion: str, name: str, where: str = "the budget has") -> None:
    """Refuse a mechanism of which the conversion does not hold.

    Args:
        conversion: From ρ to ε.
        name: The mechanism.
        where: What has the conversion, in words.
    """
    if conversion == "gaussian" and conversion_of(name) != "gaussian":
        raise BudgetError(
            f"{where} the conversion 'gaussian', which is of Gaussian noise alone, and the "
            f"mechanism {name!r} selects with other noise; use one-shot or layered, or, for a "
            "table of which nothing was released yet, a ledger with the conversion 'tight'"
        )


def planned_units(
    mechanism: Mechanism,
    workload: Workload,
    budget: RhoBudget,
    neighbours: Neighbours = "replace-one",
) -> int:
    """All that a run will spend.

    Args:
        mechanism: How.
        workload: What may be measured (see ``measurable``).
        budget: The budget.
        neighbours: Which tables count as neighbours.
    """
    if mechanism.name in SELECTIVE:
        expected(mechanism, workload, workload, budget, neighbours)  # a budget too small says so
        return budget.units
    counting, rest = count_and_rest(budget, neighbours)
    if mechanism.name in AT_ONCE:
        return counting + sum(plan_of(mechanism, workload, rest, neighbours).units)
    selecting, measuring = adaptive_units(mechanism, workload, rest)
    return counting + sum(selecting) + sum(map(sum, measuring))


def expected(
    mechanism: Mechanism,
    workload: Workload,
    asked: Workload,
    budget: RhoBudget,
    neighbours: Neighbours = "replace-one",
) -> Expected:
    """What a mechanism would do with a budget, as far as that is known before.

    Args:
        mechanism: How.
        workload: What may be measured (see ``measurable``).
        asked: The questions.
        budget: The budget.
        neighbours: Which tables count as neighbours.
    """
    _, rest = count_and_rest(budget, neighbours)
    if mechanism.name in AT_ONCE:
        return Expected(plan_of(mechanism, workload, rest, neighbours).units, 1, 0.0)
    if mechanism.name == "mst":
        return expect_mst(workload, rest, neighbours)
    if mechanism.name == "aim":
        return expect_aim(workload, asked, rest, neighbours)
    selecting, measuring = adaptive_units(mechanism, workload, rest)
    scale = selection_scale(selecting[0], len(measuring[0]))
    return Expected([measuring[0][0]] * workload.num_groups, len(selecting), scale)


def count_and_rest(budget: RhoBudget, neighbours: Neighbours) -> tuple[int, RhoBudget]:
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
