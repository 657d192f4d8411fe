"""Workloads of every family on one schema, and measurements of them, for tests of the search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from private_gsd import Boolean, Categorical, Date, Integer, Real, Schema, workloads
from private_gsd.kernels.edits import State
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.domain import random_table
from private_gsd.projection.objective import Objective
from private_gsd.workloads import Workload
from tests.workloads.random_sql import predicates_of

SCHEMA = Schema(
    [
        Categorical("job", values=["a", "b", "c", "d", "e"], nullable=True),
        Boolean("owner"),
        Categorical("code", values=tuple(range(11))),
        Integer("age", lower=0, upper=99),
        Real("pay", lower=-10, upper=1000, decimals=1, nullable=True),
        Real("share", lower=0, upper=1),
        Date("day", lower="2020-01-01", upper="2024-12-31", nullable=True),  # type: ignore[arg-type]
    ]
)

FAMILIES: dict[str, Callable[[], Workload]] = {
    "one-way": lambda: workloads.categorical_marginals(SCHEMA, 1),
    "two-way": lambda: workloads.categorical_marginals(SCHEMA, 2),
    "three-way": lambda: workloads.categorical_marginals(SCHEMA, 3),
    "trees": lambda: workloads.tree_marginals(SCHEMA, 2, 4),
    "trees of two numbers": lambda: workloads.tree_marginals(
        SCHEMA, sets=[["age", "pay"], ["share", "day"]], depth=3, levels="all"
    ),
    "ranges with gaps": lambda: workloads.range_marginals(
        SCHEMA, {"age": [(0, 17), (10, 30), (65, 80)], "pay": [(0, 5.5)], "job": ...}
    ),
    "prefixes": lambda: workloads.random_prefixes(SCHEMA, 60, seed=1),
    "four conditions": lambda: workloads.random_prefixes(SCHEMA, 40, seed=2, k=4),
    "halfspaces": lambda: workloads.random_halfspaces(SCHEMA, 45, seed=3),
    "predicates": lambda: workloads.predicates(SCHEMA, predicates_of(SCHEMA, 80, 4, compared=0)),
    "compared numbers": lambda: workloads.predicates(
        SCHEMA, predicates_of(SCHEMA, 80, 5, compared=0.4)
    ),
}

FAMILIES["all of them"] = lambda: sum(
    (make() for name, make in list(FAMILIES.items())[1:-1]), FAMILIES["one-way"]()
)


def measured(workload: Workload, rng: np.random.Generator, rows: int = 500) -> Measurements:
    """Answers that nobody gave: any number will do."""
    return Measurements(
        workload,
        rng.normal(rows / 5, rows, workload.size),
        rng.uniform(0.5, 20, workload.num_groups),
        rows,
        ("",) * workload.num_groups,
        private=False,
    )


def begun(
    workload: Workload, rows: int, seed: int, weights: Any = "inverse-variance"
) -> tuple[Objective, State]:
    rng = np.random.default_rng(seed)
    objective = Objective(measured(workload, rng), weights)
    table = random_table(objective.problem.columns, rows, seed)
    return objective, objective.state(table)
