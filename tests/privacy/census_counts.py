"""Exact counts of a small census, and a witness of what is charged and drawn for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from private_gsd import (
    datasets,
    exact_counts,
    workloads,
)
from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import Conversion, RhoBudget

SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "income"])
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 2)
    + workloads.tree_marginals(SCHEMA, 2)
    + workloads.random_prefixes(SCHEMA, 20)
)
EXACT = exact_counts(WORKLOAD, datasets.census(2000).select(SCHEMA.names))
BUDGET = RhoBudget.from_epsilon(1, 1e-9)


class Watch:
    """Records what happened in which order; an accountant and a noise source at once."""

    private = True
    conversion: Conversion = "zcdp"

    def __init__(self, refuse: bool = False) -> None:
        self.events: list[Any] = []
        self.refuse = refuse

    def charge(self, units: int, mechanism: str, groups: Any, neighbours: str) -> str:
        if self.refuse:
            raise BudgetError("no")
        self.events.append(("charge", units, mechanism, tuple(groups), neighbours))
        return "7"

    def gaussian(self, counts: np.ndarray, scale: float) -> np.ndarray:
        self.events.append(("noise", scale, len(counts)))
        return counts

    def top_k(self, scores: np.ndarray, k: int, scale: float) -> list[int]:
        self.events.append(("select", scores.tolist(), k, scale))
        return list(range(k))
