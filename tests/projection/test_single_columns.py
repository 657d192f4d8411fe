"""Single columns: their shares by all marginals, and tables in which they are independent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Categorical, Integer, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.measurements.level_estimates import on_simplex
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.domain import columns_of, random_table
from private_gsd.projection.single_columns import (
    column_shares,
    independent_table,
    quotas,
)
from private_gsd.workloads import Workload
from private_gsd.workloads.layout import marginal_tables

SCHEMA = Schema(
    [
        Categorical("a", values=range(3)),
        Integer("b", lower=0, upper=99, nullable=True),
        Real("c", lower=0, upper=1),
        Categorical("d", values=range(4), nullable=True),
    ]
)


def people(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Columns that depend on each other."""
    first = rng.choice(3, rows, p=[0.7, 0.2, 0.1])
    second = np.where(rng.random(rows) < 0.3, np.nan, 20 + 10 * first + rng.integers(0, 20, rows))
    return np.column_stack([first, second, rng.random(rows) ** 3, rng.integers(0, 3, rows)])


def answers(workload: Workload, table: np.ndarray, scale: float, seed: int = 0) -> Measurements:
    """Answers with noise of one scale for all groups."""
    counts = count(workload, np.asfortranarray(table)).astype(np.float64)
    counts += scale * np.random.default_rng(seed).standard_normal(len(counts))
    groups = workload.num_groups
    scales = np.full(groups, max(scale, 0.01))
    return Measurements(workload, counts, scales, len(table), ("",) * groups, private=False)


def shares(measured: Measurements) -> dict[int, np.ndarray]:
    workload = measured.workload
    return column_shares(measured, Atoms.of(workload.schema, marginal_tables(workload)))


def uniform(rows: int, seed: int = 0) -> np.ndarray:
    return random_table(columns_of(SCHEMA, [np.empty(0)] * len(SCHEMA)), rows, seed)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_shares_without_noise_are_those_of_the_table(order: int) -> None:
    table = people(1000, np.random.default_rng(0))
    workload = workloads.categorical_marginals(SCHEMA, min(order, 2))
    workload += workloads.tree_marginals(SCHEMA, order, 3)
    found = shares(answers(workload, table, 0.0))
    expected = np.bincount(table[:, 0].astype(int), minlength=3) / 1000
    assert found[0] == pytest.approx(expected, abs=2e-3)
    expected = np.bincount(table[:, 3].astype(int), minlength=5) / 1000
    assert found[3] == pytest.approx(expected, abs=2e-3)
    assert found[2] == pytest.approx(np.histogram(table[:, 2], 8, (0, 1))[0] / 1000, abs=2e-3)
    assert found[1][-1] == pytest.approx(np.isnan(table[:, 1]).mean(), abs=2e-3)


def test_the_least_squares_are_those_of_a_matrix() -> None:
    """The levels of a tree, against NumPy's least squares."""
    table = people(1000, np.random.default_rng(1))
    workload = workloads.tree_marginals(SCHEMA.select(["c"]), 1, 3)
    measured = answers(workload, table[:, [2]], 3.0)
    rows = [np.repeat(np.eye(2**level), 2 ** (3 - level), axis=1) for level in (1, 2, 3)]
    rows.append(np.full((1, 8), 100.0))  # the sum, without noise
    targets = np.append(measured.shares, 100.0)
    expected = np.linalg.lstsq(np.concatenate(rows), targets, rcond=None)[0]
    assert shares(measured)[0] == pytest.approx(on_simplex(expected), abs=1e-3)


def test_all_tables_of_a_column_count() -> None:
    """The mean of the sums of many pairs is better than any of them."""
    schema = Schema([Categorical(f"c{place}", values=range(4)) for place in range(10)])
    table = np.random.default_rng(0).choice(4, (2000, 10), p=[0.4, 0.3, 0.2, 0.1]).astype(float)
    found = shares(answers(workloads.categorical_marginals(schema, 2), table, 20.0))
    errors = [
        np.abs(found[place] - np.bincount(table[:, place].astype(int)) / 2000).mean()
        for place in range(10)
    ]
    assert np.mean(errors) < 0.008  # one sum of four cells has an error of 0.016


def test_ranges_with_gaps_leave_the_rest_uniform() -> None:
    workload = workloads.range_marginals(SCHEMA, {"c": [(0.1, 0.2), (0.4, 0.6)]})
    table = people(1000, np.random.default_rng(0))
    found = shares(answers(workload, table, 0.0))
    assert list(found) == [2]
    number = table[:, 2]
    inside = [((number >= a) & (number < b)).mean() for a, b in ((0.1, 0.2), (0.4, 0.6))]
    assert found[2][[1, 3]] == pytest.approx(inside, abs=2e-3)
    rest = found[2][[0, 2, 4]]
    assert rest.sum() == pytest.approx(1 - sum(inside), abs=4e-3)
    assert rest[1] > 0.1  # wider atoms have more


def test_answers_that_make_no_sense_give_shares() -> None:
    workload = workloads.categorical_marginals(SCHEMA, 2) + workloads.tree_marginals(SCHEMA, 1, 3)
    groups = workload.num_groups
    for value in (-1e300, 0.0, 1e300):
        counts, scales = np.full(workload.size, value), np.full(groups, 1e-300)
        measured = Measurements(workload, counts, scales, 5, ("",) * groups, private=False)
        for each in shares(measured).values():
            assert each.min() >= 0
            assert each.sum() == pytest.approx(1)


def test_columns_are_independent_and_have_their_quotas() -> None:
    """Columns that depend on each other, of which only single ones were measured."""
    table = people(2000, np.random.default_rng(0))
    measured = answers(workloads.categorical_marginals(SCHEMA, 1), table, 0.0)
    start = uniform(5000)
    made = independent_table(measured, start, np.random.default_rng(1))
    np.testing.assert_array_equal(made[:, 1:3], start[:, 1:3])  # in no marginal
    expected = np.bincount(table[:, 0].astype(int)) / 2000 * 5000
    assert np.abs(np.bincount(made[:, 0].astype(int)) - expected).max() < 6
    both = np.histogram2d(made[:, 0], np.nan_to_num(made[:, 3], nan=4), bins=(3, 5))[0] / 5000
    product = np.outer(both.sum(axis=1), both.sum(axis=0))
    assert np.abs(both - product).max() < 0.015


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.integers(0, 1000))
def test_probabilities_and_quotas(numbers: list[float], rows: int) -> None:
    found = on_simplex(np.array(numbers))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    taken = quotas(found, rows)
    assert taken.sum() == rows
    assert np.abs(taken - found * rows).max() < 1 + 1e-6
