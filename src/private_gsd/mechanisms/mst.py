"""MST: all columns, and the pairs of a maximum spanning tree that is selected privately.

After McKenna, Miklau and Sheldon, "Winning the NIST Contest" (2021). A third of the budget measures
every column that the questions ask of, with the same noise; a third selects pairs, one by one, by
the exponential mechanism; a third measures these. A pair's score is the L1 distance, in rows,
between its true marginal and the one that it would have if its columns were independent, with the
shares that were measured; pairs that would close a cycle are left out, so that d - 1 pairs make a
tree. What is measured is then projected, once. With the projector "pgm" it is MST.

Rare values of a column are not joined to one, as the winner of the contest did it: the domain stays
the schema's. What a projector could not take with what was selected (``why_infeasible``, public) is
left out too; if pairs run out, the tree is smaller, and measuring gets what selecting did not
spend.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import MeasurementError, of_kind
from private_gsd.measurements.measurements import measure
from private_gsd.mechanisms.base import Expected, Outcome
from private_gsd.mechanisms.candidates import scopes_of, single_columns
from private_gsd.privacy.measuring import Selection, select_by_distance
from private_gsd.privacy.noise import selection_scale
from private_gsd.projection.denoising.chow_liu import Trees
from private_gsd.workloads import Marginals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.mechanisms.base import Run
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.privacy.measuring import NoisyTotal
    from private_gsd.workloads import Neighbours, Workload

FIRST = "columns: measure"
LAST = "pairs: measure"


def run_mst(what: Run, total: NoisyTotal | None) -> Outcome:
    """Measure columns, select a tree, measure its pairs, project."""
    measured = measured_columns(what, total, what.budget.units // 3)
    number = single_columns(what.workload)
    epochs = what.checkpoint.epochs()
    if any(len(epoch) != 1 for epoch in epochs):
        raise MeasurementError("the pairs that were selected are no tree")
    chosen = [group for (group,) in epochs]
    what.check([_step(place) for place in range(len(chosen))], "epochs")
    if measured.workload.num_groups == number:
        what.check([FIRST], "measurements")
        chosen = _select_tree(what, total, measured, chosen)
        columns, selecting = columns_and_selecting(what.workload, what.budget)
        rest = what.budget.units - columns - len(chosen) * selecting
        pairs = measure(
            what.exact(),
            Selection(tuple(chosen), what.noise(1).private),
            equal_noise(what.workload, what.budget, rest, chosen, what.neighbours),
            accountant=what.pay(LAST),
            noise=what.noise(len(what.workload.group_sizes)),
            neighbours=what.neighbours,
            rows=total,
        )
        measured = measured + pairs
        what.checkpoint.keep_measurements(measured, partial(what.keep, LAST))
    elif measured.workload.num_groups == number + len(chosen):
        what.check([FIRST, LAST], "measurements")
    else:
        raise MeasurementError("the pairs and the measurements do not fit together")
    table = what.checkpoint.table(0)
    if table is None:
        table = what.project(measured, None, 0)
        what.checkpoint.keep_table(0, table)
    return Outcome(measured, table)


def expect_mst(workload: Workload, budget: RhoBudget, neighbours: Neighbours) -> Expected:
    """What columns get, and each pair if it is selected."""
    number = single_columns(workload)
    columns, selecting = columns_and_selecting(workload, budget)
    singles = list(range(number))
    edges = tree_size(workload)
    rest = (budget.units - columns - edges * selecting) // edges
    squares = workload.squared_sensitivities(neighbours)
    return Expected(
        equal_noise(workload, budget, columns, singles, neighbours)
        + [rest] * (workload.num_groups - number),
        1,
        selection_scale(selecting, 1, int(max(squares[number:].max(), 1))),
    )


def measured_columns(what: Run, total: NoisyTotal | None, units: int) -> Measurements:
    """All single columns, measured with the same noise, or as they were; what AIM begins with."""
    measured = what.checkpoint.measurements()
    if measured is not None:
        if what.paid(FIRST) != units:
            raise MeasurementError("the measurements were not paid for as this run would pay")
        return measured
    if what.checkpoint.epochs() or what.checkpoint.table(0) is not None:
        raise MeasurementError("the measurements are gone, and what was made of them is there")
    singles = list(range(single_columns(what.workload)))
    measured = measure(
        what.exact(),
        singles,
        equal_noise(what.workload, what.budget, units, singles, what.neighbours),
        accountant=what.pay(FIRST),
        noise=what.noise(0),
        neighbours=what.neighbours,
        rows=total,
    )
    what.checkpoint.keep_measurements(measured, partial(what.keep, FIRST))
    return measured


def equal_noise(
    workload: Workload,
    budget: RhoBudget,
    units: int,
    groups: Sequence[int],
    neighbours: Neighbours,
) -> list[int]:
    """All of some units for some groups, so that their counts get the same noise."""
    squares = workload.squared_sensitivities(neighbours)[list(groups)]
    parts = replace(budget, units=units).split(np.where(squares > 0, squares, 1.0).tolist())
    parts[-1] += units - sum(parts)  # what rounding down has left
    return parts


def columns_and_selecting(workload: Workload, budget: RhoBudget) -> tuple[int, int]:
    """What all columns get together, and what each selection gets."""
    edges = tree_size(workload)
    columns = budget.units // 3
    replace(budget, units=columns).split([1.0] * edges)  # a budget too small says so
    return columns, columns // edges


def tree_size(workload: Workload) -> int:
    """How many pairs a spanning tree has, or a forest where the pairs do not join all columns."""
    trees = Trees()
    return sum(trees.join(scope) for scope in scopes_of(workload) if len(scope) == 2)


def _step(place: int) -> str:
    return f"pair {place + 1}: select"


def _select_tree(
    what: Run, total: NoisyTotal | None, measured: Measurements, chosen: list[int]
) -> list[int]:
    """Select pairs until they join all columns, each kept before the next is selected."""
    workload = what.workload
    scopes = scopes_of(workload)
    number = single_columns(workload)
    _, selecting = columns_and_selecting(workload, what.budget)
    shares = independent_shares(workload, measured)
    trees = Trees()
    for group in chosen:
        if group not in range(number, workload.num_groups) or not trees.join(scopes[group]):
            raise MeasurementError("the pairs that were selected are no tree")
    while True:
        candidates = [g for g in range(number, workload.num_groups) if trees.apart(scopes[g])]
        if what.why_infeasible is not None:
            known = [*range(number), *chosen]
            candidates = [g for g in candidates if what.why_infeasible([*known, g]) is None]
        if not candidates:
            if not chosen:
                raise MeasurementError("no pair of columns can be added to the columns")
            return chosen
        exact = what.exact()
        place = len(chosen)
        selection = select_by_distance(
            exact,
            shares,
            exact.rows if total is None else total.rows,
            candidates,
            1,
            selecting,
            accountant=what.pay(_step(place)),
            noise=what.noise(1 + place),
            neighbours=what.neighbours,
        )
        chosen = [*chosen, *selection.groups]
        trees.join(scopes[chosen[-1]])
        epochs = [[group] for group in chosen]
        what.checkpoint.keep_epochs(epochs, partial(what.keep, _step(place)))


def independent_shares(workload: Workload, measured: Measurements) -> NDArray[np.float64]:
    """What all queries would be if columns were independent, with the shares that were measured."""
    family = of_kind(Marginals, measured.workload.families[0])
    noisy = {}
    for group, begin in zip(family.groups, measured.workload.offsets.tolist(), strict=False):
        ends = np.cumsum([0, *(table[0].size for table in group.tables)]) + begin
        for (feature,), (first, last) in zip(group.tables, pairwise(ends.tolist()), strict=True):
            noisy[feature] = nearest_chances(measured.shares[first:last], whole=not feature.has_gap)
    found = []
    questions = of_kind(Marginals, workload.families[0])
    for group in questions.groups:
        for table in group.tables:
            product = np.ones(1)
            for feature in table:
                product = np.multiply.outer(product, noisy[feature])
            found.append(product.ravel())
    return np.minimum(np.concatenate(found), 1.0)


def nearest_chances(shares: NDArray[np.float64], *, whole: bool) -> NDArray[np.float64]:
    """The chances nearest to noisy shares: none below 0, together 1, or where not whole at most."""
    clipped = np.maximum(shares, 0.0)
    if not whole and clipped.sum() <= 1:
        return clipped
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(shares) + 1)
    last = np.flatnonzero(ordered > excess)[-1]
    chances: NDArray[np.float64] = np.maximum(shares - excess[last], 0.0)
    return chances
