"""The domain: atoms that hold values, and random tables that cover it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Integer, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.projection.domain import random_table
from private_gsd.projection.objective import Objective
from tests.projection.families import begun, measured
from tests.strategies import examples, sql_workloads

pytestmark = pytest.mark.worker("large")


def test_atoms_without_a_value_are_barred() -> None:
    """Cuts between two steps of a grid make atoms that no value is in."""
    schema = Schema([Integer("n", lower=0, upper=3), Real("x", lower=0, upper=1, decimals=1)])
    workload = workloads.tree_marginals(schema, sets=[["n"], ["x"]], depth=5)
    objective, state = begun(workload, 40, 1)
    columns = objective.problem.columns
    barred = np.isinf(columns.base_scores)
    for place in range(len(barred)):
        assert barred[place] == (columns.firsts[place] > columns.lasts[place])
    assert barred.sum() == 32 - 11
    assert {float(value) for value in state.values[:, 0]} == {0.0, 1.0, 2.0, 3.0}
    assert {round(value * 10) / 10 for value in state.values[:, 1]} == set(state.values[:, 1])


def test_cuts_that_rounding_puts_beside_the_grid() -> None:
    """The next number after 1.7 is more than 1.7, though ten times it is 17."""
    cut = float(np.nextafter(1.7, np.inf))
    assert np.ceil(cut * 10) == 17
    schema = Schema([Real("x", lower=0, upper=2, decimals=1)])
    workload = workloads.range_marginals(schema, {"x": [(0.0, cut), (cut, 2.0)]})
    columns = Objective(measured(workload, np.random.default_rng(0)), "equal").problem.columns
    assert columns.lasts.tolist() == [17, 20]
    assert columns.firsts.tolist() == [0, 18]


@given(st.data())
def test_random_tables_are_of_the_domain_and_cover_it(data: st.DataObject) -> None:
    schema, _ = data.draw(examples())
    workload = data.draw(sql_workloads(schema))
    objective = Objective(measured(workload, np.random.default_rng(0)), "equal")
    columns = objective.problem.columns
    table = random_table(columns, 300, data.draw(st.integers(0, 2**63 - 1)))
    count(workload, table, threads=1)  # refuses what is outside
    for position, column in enumerate(schema):
        null = np.isnan(table[:, position])
        atoms = slice(columns.starts[position], columns.starts[position + 1])
        values = int((columns.firsts[atoms] <= columns.lasts[atoms]).sum())  # null among them
        expected = 300 / values if column.nullable else 0
        # Six standard deviations of a binomial number, and what a small number needs beyond them.
        assert abs(null.sum() - expected) <= 6 * math.sqrt(expected) + 6 * column.nullable
        assert not column.nullable or null.any() or expected < 25
        if not isinstance(column, Real):
            assert (table[~null, position] == np.rint(table[~null, position])).all()
        elif column.decimals is not None:
            values = table[~null, position]
            np.testing.assert_array_equal(values, np.round(values, column.decimals) + 0.0)
