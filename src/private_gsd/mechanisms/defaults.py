"""Choice: questions, mechanism and rows, where the user names none; and what fits together.

The rules look at public facts alone: the schema, the budget and the number of rows. All of them
compare the noise that measuring everything at once would put on a count with the number of rows.
The measurements behind them are in docs/results.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.mechanisms import (
    AT_ONCE,
    SELECTIVE,
    Mechanism,
    is_picky,
    measurable,
    plan_of,
    single_columns,
)
from private_gsd.privacy.allocation import plan_one_shot
from private_gsd.projection import projector_of
from private_gsd.schema import Discrete
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.projection import Projector
    from private_gsd.schema import Schema
    from private_gsd.workloads import Workload

# Triples are asked where the noise on theirs is at most this share of the rows, and where there are
# not so many that a search takes long.
CLEAR = 0.02
MAX_TRIPLES = 1000
MAX_TRIPLE_CELLS = 2**20
# Pairs are given up for single columns where the noise on theirs is more than this share.
DROWNED = 0.2
# A synthetic table has so many rows within one standard deviation of the noise, within bounds: with
# fewer, what the noise left is lost in whole rows. Four times the rows of Adult's triples at ε = 1
# have 8 % less error.
ROWS_PER_NOISE = 60
ROWS = 5000, 20_000


def choose_specs(schema: Schema, budget: RhoBudget, rows: int) -> list[str]:
    """Names of the workload: single columns, pairs or triples, as the budget allows.

    >>> from private_gsd import datasets
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> schema, budget = datasets.census_schema(), RhoBudget.from_epsilon(1, delta=1e-9)
    >>> [choose_specs(schema, budget, rows)[0] for rows in (1000, 10_000, 100_000)]
    ['categorical:1', 'categorical:2', 'categorical:3']
    """
    if few_triples(schema):
        triples = default_specs(schema, 3)
        if noise_share(workload_of(schema, triples), budget, rows) <= CLEAR:
            return triples
    pairs = default_specs(schema, 2)
    drowned = noise_share(workload_of(schema, pairs), budget, rows) > DROWNED
    return default_specs(schema, 1) if drowned else pairs


def choose_mechanism(workload: Workload) -> Mechanism:
    """One-shot, or layered where marginals of three columns or more are asked.

    >>> from private_gsd import datasets
    >>> from private_gsd.workloads import categorical_marginals
    >>> schema = datasets.census_schema()
    >>> [choose_mechanism(categorical_marginals(schema, k)).name for k in (2, 3)]
    ['one-shot', 'layered']
    """
    layered = Mechanism(name="layered")
    more = measurable(layered, workload) is not workload
    return layered if more else Mechanism(name="one-shot")


def choose_rows(
    mechanism: Mechanism, workload: Workload, budget: RhoBudget, people: int | None
) -> int:
    """How many synthetic rows: more where there is less noise.

    >>> from private_gsd import datasets
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> from private_gsd.workloads import categorical_marginals
    >>> pairs = categorical_marginals(datasets.census_schema(), 2)
    >>> budget = RhoBudget.from_epsilon(1, delta=1e-9)
    >>> [choose_rows(Mechanism(), pairs, budget, people) for people in (5000, 20_000, 10**6)]
    [5000, 15000, 20000]

    Args:
        mechanism: How the budget is spent.
        workload: The questions.
        budget: What there is to spend.
        people: The number of rows of the table; None where it is private.
    """
    if people is None or mechanism.name not in AT_ONCE:
        return ROWS[0]
    measured = measurable(mechanism, workload)
    scales = [share.scale for share in plan_of(mechanism, measured, budget).shares]
    noise = float((scales / measured.units).min()) / people
    return int(np.clip(round(ROWS_PER_NOISE / noise, -3), *ROWS))


def check_fits(
    projector: str, workload: Workload, mechanism: Mechanism, outside: Workload | None = None
) -> None:
    """Refuse what a projector could not make a table of, before anything is spent.

    Args:
        projector: Its name and settings.
        workload: What may be measured.
        mechanism: What selects of it.
        outside: What was measured elsewhere, and is used as well.
    """
    chosen = projector_of(projector)
    if chosen.name != "gsd" and workload.schema.constraints:
        raise WorkloadError(
            f"projector {projector!r} does not keep a schema's rules; use 'gsd', or leave them out"
        )
    if mechanism.name in SELECTIVE:
        _check_parts(chosen, workload, mechanism, outside)
        return
    own = workload
    workload = workload if outside is None else workload + outside
    if mechanism.name == "adaptive" and not chosen.limited:
        # The largest groups that may be selected: whatever is, is no larger.
        most = min(mechanism.epochs * mechanism.groups, workload.num_groups)
        largest = np.sort(np.argsort(-workload.group_sizes, kind="stable")[:most])
        reason = chosen.why_infeasible(workload.select(largest))
        if reason is not None:
            raise WorkloadError(f"{reason}. Ask less, take fewer epochs, or another projector")
        return
    if mechanism.name == "adaptive" and chosen.limited and mechanism.groups > 1:
        # A part of what fits need not fit: they are tried one by one.
        raise WorkloadError(f"the projector {chosen.name!r} takes one group an epoch; say groups=1")
    everything = chosen.why_infeasible(workload)
    if everything is None:
        return
    if mechanism.name in AT_ONCE:
        raise WorkloadError(
            f"{everything}. Ask less, use the adaptive mechanism, which selects some of it, or "
            "another projector"
        )
    each = [own.select([group]) for group in range(own.num_groups)]
    reasons = [chosen.why_infeasible(one if outside is None else one + outside) for one in each]
    if all(reasons):
        raise WorkloadError(f"no marginal alone is small enough: {reasons[0]}")


def _check_parts(
    projector: Projector, workload: Workload, mechanism: Mechanism, outside: Workload | None
) -> None:
    """Refuse where not even all columns fit, or for MST no pair with them."""
    columns = single_columns(workload)

    def why_infeasible(groups: list[int]) -> str | None:
        asked = workload.select(groups)
        return projector.why_infeasible(asked if outside is None else asked + outside)

    reason = why_infeasible(list(range(columns)))
    if reason is None and mechanism.name == "mst" and is_picky(projector, mechanism, workload):
        for pair in range(columns, workload.num_groups):
            reason = why_infeasible([*range(columns), pair])
            if reason is None:
                break
    if reason is not None:
        raise WorkloadError(f"{reason}. Ask less, or use another projector")


def noise_share(workload: Workload, budget: RhoBudget, rows: int) -> float:
    """The noise of a one-shot measurement on a count, as a share of the rows."""
    scales = [share.scale for share in plan_one_shot(workload, budget).shares]
    return float((scales / workload.units).max()) / rows


def few_triples(schema: Schema) -> bool:
    """Whether the triples of discrete columns are few and small enough to ask by default."""
    sizes = [
        len(column.values) + column.nullable for column in schema if isinstance(column, Discrete)
    ]
    # The cells of all pairs and triples, column by column.
    ones = pairs = triples = 0
    for size in sizes:
        triples += pairs * size
        pairs += ones * size
        ones += size
    return 0 < math.comb(len(sizes), 3) <= MAX_TRIPLES and triples <= MAX_TRIPLE_CELLS
