"""Defaults: workload, mechanism and number of rows, where the user names none.

The rules look at public facts alone: the schema, the budget and the number of records. All of them
compare the noise that measuring everything at once would put on a count with the number of records.
docs/results.md has the measurements behind them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.mechanisms.base import Task, noise_scales
from private_gsd.mechanisms.candidates import of_fewest_columns, scopes_of
from private_gsd.mechanisms.cut_marginals import check_conditions
from private_gsd.mechanisms.joint_last import MOST_CELLS, MOST_COLUMNS, JointLast
from private_gsd.mechanisms.numbers_first import FRACTION, NumbersFirst, num_fine, num_levels
from private_gsd.mechanisms.one_shot import Layered, OneShot
from private_gsd.mechanisms.strongest_pairs import MEASURING, StrongestPairs
from private_gsd.schema import Discrete
from private_gsd.workloads.specs import default_specs, workload_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.knowledge import KnowledgeOf
    from private_gsd.mechanisms.base import Mechanism
    from private_gsd.privacy.budget import RhoBudget
    from private_gsd.projection import Projector
    from private_gsd.schema import Schema
    from private_gsd.workloads import Workload

# Triples are measured by default where their noise is at most this fraction of the records, and
# where they are few enough for a quick projection.
MAX_NOISE_OF_TRIPLES = 0.02
MAX_TRIPLES = 1000
MAX_TRIPLE_CELLS = 2**20
# Single columns are measured in place of pairs where the noise of pairs is more than this fraction.
MAX_NOISE_OF_PAIRS = 0.2
# Pairs are selected where there are more than this many, and the noise on all of them would be
# more than this fraction of the records; where a pair has more cells than this, and fewer records
# in each than noise; and always where there are more pairs, or cells of pairs, than this.
FEW_PAIRS = 300
MAX_NOISE_OF_ALL_PAIRS = 0.004
MANY_CELLS = 2**14
MAX_PAIRS = 5000
MAX_PAIR_CELLS = 2**22
# As many pairs are selected as get this much noise, as a fraction of the records, within bounds;
# the upper one is this multiple of the number of columns.
NOISE_OF_PAIRS = 0.001
MOST_PAIRS_PER_COLUMN = 10
# The number of rows that are fitted is this, divided by the least noise as a fraction of the
# records, within the bounds of ROWS. With fewer rows, rounding to whole rows exceeds the noise.
ROWS_PER_NOISE = 60
ROWS = 5000, 20_000
# Most rows of a synthetic table where the user names no number.
MOST_DEFAULT_ROWS = 100_000


def choose_specs(schema: Schema, budget: RhoBudget, n_records: int) -> list[str]:
    """Names of the workload: single columns, pairs or triples, as the budget allows.

    >>> from private_gsd import datasets
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> schema, budget = datasets.census_schema(), RhoBudget.from_epsilon(1, delta=1e-9)
    >>> [choose_specs(schema, budget, n)[0] for n in (500, 10_000, 100_000)]
    ['categorical:1', 'categorical:2', 'categorical:3']
    """
    if few_triples(schema):
        triples = default_specs(schema, 3)
        if noise_share(workload_of(schema, triples), budget, n_records) <= MAX_NOISE_OF_TRIPLES:
            return triples
    pairs = default_specs(schema, 2)
    drowned = noise_share(workload_of(schema, pairs), budget, n_records) > MAX_NOISE_OF_PAIRS
    return default_specs(schema, 1) if drowned else pairs


def too_many_pairs(schema: Schema) -> bool:
    """Whether a table has more pairs, or more cells of pairs, than can be measured."""
    sizes = [len(column.values) for column in schema if isinstance(column, Discrete)]
    cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    return math.comb(len(schema), 2) > MAX_PAIRS or cells > MAX_PAIR_CELLS


def drowns_pairs(schema: Schema, budget: RhoBudget, n_records: int) -> bool:
    """Whether noise on all pairs hides too much: of many columns, or of many categories.

    >>> from private_gsd import datasets
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> drowns_pairs(datasets.census_schema(), RhoBudget.from_epsilon(1, delta=1e-9), 1000)
    False

    Args:
        schema: The schema.
        budget: What there is to spend.
        n_records: The number of records of the table.
    """
    if too_many_pairs(schema):
        return True
    sizes = sorted(len(column.values) for column in schema if isinstance(column, Discrete))
    pairs = math.comb(len(schema), 2)
    # A pair of discrete columns has one table, another has a coarse and a fine one.
    tables = 2 * pairs - math.comb(len(sizes), 2)
    left = 1 - FRACTION if len(sizes) < len(schema) else 1.0
    noise = math.sqrt(tables / (left * budget.rho))
    largest = math.prod(sizes[-2:]) if len(sizes) > 1 else 0
    if largest > MANY_CELLS and n_records < noise * largest:
        return True
    return pairs > FEW_PAIRS and noise > MAX_NOISE_OF_ALL_PAIRS * n_records


def choose_pairs(schema: Schema, budget: RhoBudget, n_records: int) -> StrongestPairs:
    """How many of the strongest pairs are measured: more where there is less noise.

    >>> from private_gsd import datasets
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> schema, budget = datasets.census_schema(), RhoBudget.from_epsilon(1, delta=1e-9)
    >>> [choose_pairs(schema, budget, n).pairs_per_column for n in (10_000, 10**5, 10**6)]
    [3, 4, 10]

    Args:
        schema: The schema.
        budget: What there is to spend.
        n_records: The number of records of the table.
    """
    least = StrongestPairs().pairs_per_column
    affordable = MEASURING * budget.rho * (NOISE_OF_PAIRS * n_records) ** 2
    number = int(np.clip(affordable / len(schema), least, MOST_PAIRS_PER_COLUMN))
    return StrongestPairs(pairs_per_column=number)


def choose_joint(target: Workload, task: Task) -> JointLast | None:
    """The joint table of all columns beside a target workload; None where it is not worth it.

    Its cells are counted by the public number of records of the task. Where that is private, the
    mechanism decides when it was measured.

    >>> from private_gsd import Categorical, Schema
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> schema = Schema([Categorical(name, values=[0, 1, 2]) for name in "abcd"])
    >>> target = workload_of(schema, ["categorical:2"])
    >>> budget = RhoBudget.from_epsilon(1, delta=1e-9)
    >>> tasks = [Task(target, target, budget, n_records=n) for n in (50, 10_000)]
    >>> [found and found.cells for found in (choose_joint(target, task) for task in tasks)]
    [None, 257]

    Args:
        target: The target workload.
        task: What is to be done with the target workload.
    """
    schema = target.schema
    if not 2 < len(schema) <= MOST_COLUMNS or all(len(scope) < 2 for scope in scopes_of(target)):
        return None
    mechanism = JointLast(first=choose_mechanism(target))
    if mechanism.candidates(target).group_sizes[-1] > MOST_CELLS:
        return None
    if task.n_records is None:
        return mechanism
    left, _ = task.budget.split([1 - FRACTION, FRACTION])
    numbers = any(not isinstance(column, Discrete) for column in schema)
    budget = replace(task.budget, units=left) if numbers else task.budget
    found = replace(task, workload=mechanism.candidates(target), budget=budget)
    if mechanism.plan(found).joint is None:
        return None
    return replace(mechanism, cells=max(1, mechanism.affordable(found, task.n_records)[1]))


def choose_mechanism(target: Workload) -> Mechanism:
    """One-shot, or layered where marginals of three columns or more are asked.

    >>> from private_gsd import datasets
    >>> from private_gsd.workloads import categorical_marginals
    >>> schema = datasets.census_schema()
    >>> [choose_mechanism(categorical_marginals(schema, k)).name for k in (2, 3)]
    ['one-shot', 'layered']
    """
    layered = Layered()
    return OneShot() if layered.candidates(target) is target else layered


def numbers_first(mechanism: Mechanism, target: Workload) -> Mechanism:
    """A mechanism after fine histograms of the numeric columns, where there are any.

    Where single columns alone follow, a level of a histogram gets half of what a column gets.

    >>> from private_gsd import datasets
    >>> target = workload_of(datasets.census_schema(), ["categorical:2", "tree:2"])
    >>> numbers_first(Layered(), target).name
    'numbers-first'

    Args:
        mechanism: The mechanism.
        target: The target workload.
    """
    schema = target.schema
    discrete = sum(isinstance(column, Discrete) for column in schema)
    if discrete == len(schema) or isinstance(mechanism, NumbersFirst):
        return mechanism
    alone = all(len(scope) == 1 for scope in scopes_of(target))
    if discrete and alone and not mechanism.needs_single_columns:
        levels = num_levels(schema)
        return NumbersFirst(mechanism, levels / (levels + 2 * discrete))
    return NumbersFirst(mechanism)


def choose_rows(
    mechanism: Mechanism, target: Workload, budget: RhoBudget, n_records: int | None
) -> int:
    """The number of rows that are fitted: more where there is less noise.

    A synthetic table of more rows is a fitted one with new rows.

    >>> from private_gsd import datasets
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> from private_gsd.workloads import categorical_marginals
    >>> pairs = categorical_marginals(datasets.census_schema(), 2)
    >>> budget = RhoBudget.from_epsilon(1, delta=1e-9)
    >>> [choose_rows(OneShot(), pairs, budget, n) for n in (5000, 20_000, 10**6)]
    [5000, 15000, 20000]

    Args:
        mechanism: The mechanism.
        target: The target workload.
        budget: What there is to spend.
        n_records: The number of records of the table; None where it is private.
    """
    if n_records is None:
        return ROWS[0]
    workload = mechanism.candidates(target)
    task = Task(workload, target, budget, n_records=n_records)
    plan = mechanism.plan(task)
    if plan.pairs is not None:
        noise = plan.pairs.noise / n_records
    elif plan.selection_noise:
        return ROWS[0]
    else:
        noise = float(_marginal_noise(mechanism, task, of_pairs=True).min()) / n_records
    return int(np.clip(round(ROWS_PER_NOISE / noise, -3), *ROWS))


def default_rows(fitted: int, n_records: int) -> int:
    """The number of synthetic rows: as many as there are records, up to a bound.

    >>> [default_rows(5000, n) for n in (800, 50_000, 10**7)]
    [5000, 50000, 100000]

    Args:
        fitted: The number of rows that are fitted, and the least number of rows.
        n_records: The number of records, which is public or was measured.
    """
    return max(fitted, min(n_records, MOST_DEFAULT_ROWS))


def check_projector(
    projector: Projector, mechanism: Mechanism, workload: Workload, external: Workload | None = None
) -> None:
    """Refuse what a projector could make no table of, before anything is spent.

    Args:
        projector: The projector.
        mechanism: The mechanism that selects of the candidate queries.
        workload: The candidate queries.
        external: The queries of external measurements, which are used as well.
    """
    if workload.schema.constraints and not projector.keeps_rules:
        raise WorkloadError(
            f"projector {projector.name!r} does not keep a schema's rules; use 'gsd', or leave "
            "them out"
        )
    mechanism.check(projector, workload, external)


def check_knowledge(knowledge: KnowledgeOf, mechanism: Mechanism, candidates: Workload) -> None:
    """Refuse derived statistics that may not follow from what is measured.

    Args:
        knowledge: What is known beside the measurements.
        mechanism: The mechanism that selects of the candidate queries.
        candidates: The candidate queries.
    """
    certain = mechanism.always_measured(candidates)
    knowledge.check(certain)
    if isinstance(mechanism, NumbersFirst):
        check_conditions(knowledge, certain)


def noise_share(target: Workload, budget: RhoBudget, n_records: int) -> float:
    """The noise on a count if all of a workload is measured, as a share of the records."""
    mechanism = numbers_first(OneShot(), target)
    workload = mechanism.candidates(target)
    task = Task(workload, target, budget)
    return float(_marginal_noise(mechanism, task).max()) / n_records


def _marginal_noise(
    mechanism: Mechanism, task: Task, *, of_pairs: bool = False
) -> NDArray[np.float64]:
    """The noise on a count of each group; histograms count only where there is nothing else."""
    scales = noise_scales(task, mechanism.plan(task).units) / task.workload.max_contributions
    first, groups = num_fine(task.workload), len(scales)
    if first == groups:
        return scales
    rest = task.workload.select(range(first, groups))
    return scales[first:][of_fewest_columns(rest)] if of_pairs else scales[first:]


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
