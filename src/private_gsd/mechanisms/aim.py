"""AIM: all columns, and then in rounds whatever promises most beyond the noise that it would have.

After McKenna, Mullins, Sheldon and Miklau, "AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data" (2022). Candidates are the questions and all their parts. A
round selects one by the exponential mechanism, measures it with the Gaussian, and projects all that
was measured anew. The score of candidate r is

    w_r · (‖M_r(D) - M_r(D')‖₁ - √(2/π) · σ_r · n_r)

with D' the table so far, σ_r the noise that r would get, n_r its cells, and w_r = Σ |r ∩ s| over
the questions s: how much of what is asked it has a part in. A candidate may be measured again.

There are at most T = 16 d rounds for d columns. A round has a T-th of the budget, a tenth of it for
selecting; where the table's answers to what was measured moved by no more than noise would move
them, the next round has four times as much (σ is halved, ε doubled). A round that would leave less
than another one gets all that is left: the whole budget is spent, to the last unit. What would make
a projector's model larger than the part of its size that goes with the part of the budget spent is
left out; a single column never is.

The papers' M_r(D') are a graphical model's own answers. Here they are those of the table that the
projector made, so that any projector will do; a table of few rows adds its own coarseness.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, MeasurementError
from private_gsd.measurements.measurements import measure
from private_gsd.mechanisms.base import Expected, Outcome
from private_gsd.mechanisms.candidates import scopes_of, single_columns
from private_gsd.mechanisms.mst import FIRST, equal_noise, measured_columns
from private_gsd.privacy.measuring import LARGEST_WEIGHT, Selection, select_by_distance
from private_gsd.privacy.noise import gaussian_scale, selection_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Run
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.privacy.measuring import NoisyTotal
    from private_gsd.workloads import Neighbours, Workload

    Matrix = NDArray[np.float64]

ROUNDS = 16
# One part of a round's budget in so many selects.
SELECTING = 10


def run_aim(what: Run, total: NoisyTotal | None) -> Outcome:
    """Measure columns, then go through the rounds, from the first that is not done."""
    columns, selecting, measuring = first_round(what.workload, what.budget)
    measured = measured_columns(what, total, columns)
    epochs = what.checkpoint.epochs()
    done = _done(what, measured, epochs)
    spent = columns
    for number in range(1, done + 1):
        selecting, measuring = _paid(what, number, "select"), _paid(what, number, "measure")
        spent += selecting + measuring
    table = _made(what, measured, done)
    while spent < what.budget.units:
        number = done + 1
        if done and _moved_little(what, measured, epochs[done - 1][0], table, done):
            selecting, measuring = 4 * selecting, 4 * measuring
        left = what.budget.units - spent
        if left < 2 * (selecting + measuring):
            selecting = max(left // SELECTING, 1)
            measuring = left - selecting
        spent += selecting + measuring
        if done < len(epochs):  # selected, kept, and not measured yet
            chosen = Selection(tuple(epochs[done]), what.noise(2 * number).private)
        else:
            candidates = _fitting(what, epochs, spent / what.budget.units)
            chosen = _select(what, total, table, candidates, number, selecting, measuring)
            epochs = [*epochs, list(chosen.groups)]
            step = partial(what.keep, _step(number, "select"))
            what.checkpoint.keep_epochs(epochs, step)
        new = measure(
            what.exact(),
            chosen,
            [measuring],
            accountant=what.pay(_step(number, "measure")),
            noise=what.noise(2 * number + 1),
            neighbours=what.neighbours,
            rows=total,
        )
        measured = measured + new
        step = partial(what.keep, _step(number, "measure"))
        what.checkpoint.keep_measurements(measured, step)
        done = number
        table = _made(what, measured, done)
    return Outcome(measured, table)


def expect_aim(
    workload: Workload, asked: Workload, budget: RhoBudget, neighbours: Neighbours
) -> Expected:
    """What columns get, and each candidate if the first round selects it."""
    number = single_columns(workload)
    columns, selecting, measuring = first_round(workload, budget)
    weights = weights_of(workload, asked)
    squares = np.maximum(workload.squared_sensitivities(neighbours), 1)
    bounds = [weight * int(square) for weight, square in zip(weights, squares, strict=True)]
    return Expected(
        equal_noise(workload, budget, columns, list(range(number)), neighbours)
        + [measuring] * (workload.num_groups - number),
        1 + (budget.units - columns) // (selecting + measuring),
        selection_scale(selecting, 1, max(bounds)) / max(weights),
    )


def first_round(workload: Workload, budget: RhoBudget) -> tuple[int, int, int]:
    """What all columns get together, and what selecting and measuring get in the first round."""
    number = single_columns(workload)
    each = budget.units // (ROUNDS * number)
    selecting = each // SELECTING
    if selecting < 1:
        raise BudgetError(f"the budget is too small for {ROUNDS * number:,} rounds")
    return number * (each - selecting), selecting, each - selecting


def weights_of(workload: Workload, asked: Workload) -> list[int]:
    """For each candidate, how many columns it shares with the questions, all together."""
    times = Counter(scopes_of(asked))
    weights = [
        sum(number * len(set(scope) & set(other)) for other, number in times.items())
        for scope in scopes_of(workload)
    ]
    common = math.gcd(*weights)
    largest = max(weights) // common
    # Only with very many questions: weights are then rounded, which privacy does not notice.
    return [max(1, w // common * LARGEST_WEIGHT // max(largest, LARGEST_WEIGHT)) for w in weights]


def _step(number: int, what: str) -> str:
    return f"round {number}: {what}"


def _paid(what: Run, number: int, step: str) -> int:
    paid = what.paid(_step(number, step))
    if paid is None:
        raise MeasurementError(f"nobody has paid for round {number}, which was measured")
    return paid


def _done(what: Run, measured: Measurements, epochs: list[list[int]]) -> int:
    """How many rounds were measured; what was selected is kept before, so that one may be left."""
    done = measured.workload.num_groups - single_columns(what.workload)
    if done not in (len(epochs), len(epochs) - 1) or any(
        len(epoch) != 1 or epoch[0] not in range(what.workload.num_groups) for epoch in epochs
    ):
        raise MeasurementError("the rounds and the measurements do not fit together")
    what.check([_step(number + 1, "select") for number in range(len(epochs))], "epochs")
    rounds = [_step(number + 1, "measure") for number in range(done)]
    what.check([FIRST, *rounds], "measurements")
    return done


def _made(what: Run, measured: Measurements, done: int) -> Matrix:
    """The table of a round, as it was or made now from the one before."""
    table = what.checkpoint.table(done)
    if table is None:
        before = what.checkpoint.table(done - 1) if done else None
        if done and before is None:
            raise MeasurementError(f"the table of round {done - 1} is gone: the run cannot go on")
        table = what.project(measured, before, done)
        what.checkpoint.keep_table(done, table)
    return table


def _moved_little(what: Run, measured: Measurements, group: int, table: Matrix, done: int) -> bool:
    """Whether a round moved the answers to what it measured by no more than its noise would."""
    before = what.checkpoint.table(done - 1)
    if before is None:
        raise MeasurementError(f"the table of round {done - 1} is gone: the run cannot go on")
    asked = what.workload.select([group])
    now, then = (count(asked, each) / len(each) for each in (table, before))
    moved = float(np.abs(now - then).sum()) * measured.rows
    return moved <= math.sqrt(2 / math.pi) * float(measured.scales[-1]) * asked.size


def _select(
    what: Run,
    total: NoisyTotal | None,
    table: Matrix,
    candidates: list[int],
    number: int,
    selecting: int,
    measuring: int,
) -> Selection:
    """The candidate that promises most beyond the noise that measuring it would have."""
    workload = what.workload
    squares = workload.squared_sensitivities(what.neighbours)
    how = what.budget.conversion
    scales = {each: gaussian_scale(float(each) or 1.0, measuring, how) for each in set(squares)}
    noise = [scales[squares[group]] * int(workload.group_sizes[group]) for group in candidates]
    weights = weights_of(workload, workload if what.asked is None else what.asked)
    exact = what.exact()
    return select_by_distance(
        exact,
        count(workload, table) / len(table),
        exact.rows if total is None else total.rows,
        candidates,
        1,
        selecting,
        weights=[weights[group] for group in candidates],
        penalties=[math.sqrt(2 / math.pi) * each for each in noise],
        accountant=what.pay(_step(number, "select")),
        noise=what.noise(2 * number),
        neighbours=what.neighbours,
    )


def _fitting(what: Run, epochs: list[list[int]], share: float) -> list[int]:
    """The candidates with which a model stays small enough for the part of the budget spent."""
    everything = range(what.workload.num_groups)
    if what.why_infeasible is None:
        return list(everything)
    singles = range(single_columns(what.workload))
    scopes = scopes_of(what.workload)
    known = sorted({*singles, *(group for (group,) in epochs)})
    # What joins no columns that were not joined makes no model larger: single columns were measured
    # first, as finely as anything cuts them.
    joined = {pair for group in known for pair in combinations(scopes[group], 2)}
    return [
        group
        for group in everything
        if joined.issuperset(combinations(scopes[group], 2))
        or what.why_infeasible([*known, group], share) is None
    ]
