"""A plan spends the budget, no more, and states the noise that is then drawn."""

from __future__ import annotations

import pytest

from private_gsd import datasets, exact_counts, workloads
from private_gsd.errors import BudgetError
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.allocation import plan_one_shot
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import InsecureSeededNoise, gaussian_scale

SCHEMA = datasets.census_schema()
WORKLOAD = workloads.categorical_marginals(SCHEMA, 2) + workloads.tree_marginals(SCHEMA, 2)
BUDGET = RhoBudget.from_epsilon(1, 1e-9)


def test_equal_noise_is_the_gaussian_mechanism_on_one_vector() -> None:
    plan = plan_one_shot(WORKLOAD, BUDGET)
    together = gaussian_scale(WORKLOAD.squared_sensitivities().sum(), BUDGET.units, "zcdp")
    for share in plan.shares:
        assert share.scale == pytest.approx(together, rel=1e-6)
    assert 0 <= BUDGET.units - sum(plan.units) <= 2 * len(plan.units)


def test_equal_budget() -> None:
    plan = plan_one_shot(WORKLOAD, BUDGET, allocation="equal-budget")
    assert max(plan.units) - min(plan.units) <= 1
    assert plan.shares[-1].scale > plan.shares[0].scale  # trees are more sensitive


def test_add_remove_needs_less_noise() -> None:
    one = plan_one_shot(WORKLOAD, BUDGET).shares[0].scale
    two = plan_one_shot(WORKLOAD, BUDGET, neighbours="add-remove").shares[0].scale
    assert one / two == pytest.approx(2**0.5)


def test_what_is_planned_is_what_is_measured_and_charged() -> None:
    plan = plan_one_shot(WORKLOAD, BUDGET)
    accountant = LocalAccountant(BUDGET)
    measured = measure(
        exact_counts(WORKLOAD, datasets.census(500)),
        range(WORKLOAD.num_groups),
        plan.units,
        accountant=accountant,
        noise=InsecureSeededNoise(0),
    )
    assert measured.scales.tolist() == [share.scale for share in plan.shares]
    assert accountant.spent == sum(plan.units)


def test_a_plan_reads_well() -> None:
    text = plan_one_shot(WORKLOAD, BUDGET).describe(limit=3)
    assert text.startswith("rho = 0.01497 (epsilon = 1 at delta = 1e-09), replace-one neighbours")
    assert "region x" in text
    assert text.endswith(f"... and {WORKLOAD.num_groups - 3:,} more")


def test_allocations_have_names() -> None:
    with pytest.raises(BudgetError, match="'equal-noise' or 'equal-budget', not 'fair'"):
        plan_one_shot(WORKLOAD, BUDGET, allocation="fair")  # type: ignore[arg-type]
