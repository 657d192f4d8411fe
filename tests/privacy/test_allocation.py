"""An allocation spends the budget, no more, and states the noise that is then drawn."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import datasets, exact_counts, workloads
from private_gsd.measurements.measurements import measure
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.allocation import allocate, group_units
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.noise import InsecureSeededNoise, gaussian_scale

SCHEMA = datasets.census_schema()
WORKLOAD = workloads.categorical_marginals(SCHEMA, 2) + workloads.tree_marginals(SCHEMA, 2)
BUDGET = RhoBudget.from_epsilon(1, 1e-9)


def test_equal_noise_is_the_gaussian_mechanism_on_one_vector() -> None:
    allocation = allocate(WORKLOAD, BUDGET)
    together = gaussian_scale(WORKLOAD.squared_sensitivities().sum(), BUDGET.units, "zcdp")
    for group in allocation.groups:
        assert group.scale == pytest.approx(together, rel=1e-6)
    assert 0 <= BUDGET.units - sum(allocation.units) <= 2 * len(allocation.units)


def test_add_remove_needs_less_noise() -> None:
    one = allocate(WORKLOAD, BUDGET).groups[0].scale
    two = allocate(WORKLOAD, BUDGET, neighbours="add-remove").groups[0].scale
    assert one / two == pytest.approx(2**0.5)


def test_what_is_allocated_is_what_is_measured_and_charged() -> None:
    allocation = allocate(WORKLOAD, BUDGET)
    accountant = LocalAccountant(BUDGET)
    measured = measure(
        exact_counts(WORKLOAD, datasets.census(500)),
        range(WORKLOAD.num_groups),
        allocation.units,
        accountant=accountant,
        noise=InsecureSeededNoise(0),
    )
    assert measured.scales.tolist() == [group.scale for group in allocation.groups]
    assert accountant.spent == sum(allocation.units)


def test_an_allocation_reads_well() -> None:
    text = allocate(WORKLOAD, BUDGET).describe(limit=3)
    assert text.startswith("rho = 0.01497 (epsilon = 1 at delta = 1e-09), replace-one neighbours")
    assert "region x" in text
    assert text.endswith(f"... and {WORKLOAD.num_groups - 3:,} more")


def test_layers_get_their_fraction_and_one_noise_each() -> None:
    """Where there is but one layer, it gets all."""
    some = np.arange(WORKLOAD.num_groups) < 20
    found = group_units(WORKLOAD, BUDGET, "replace-one", (some, 0.25))
    units = np.array(found, dtype=float)
    assert units[some].sum() / units.sum() == pytest.approx(0.25)
    squares = WORKLOAD.squared_sensitivities().tolist()
    scales = np.array(
        [gaussian_scale(square, each, "zcdp") for square, each in zip(squares, found, strict=True)]
    )
    for layer in (some, ~some):
        assert scales[layer].max() == pytest.approx(scales[layer].min(), rel=1e-6)
    everything = np.ones(WORKLOAD.num_groups, dtype=np.bool_)
    alone = group_units(WORKLOAD, BUDGET, "replace-one", (everything, 0.25))
    assert alone == allocate(WORKLOAD, BUDGET).units
