"""Marginals: their counts are those of a slow twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Real,
    Schema,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.schema import Discrete, Numeric
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import discrete_feature, joined_feature
from private_gsd.workloads.marginals import Marginal
from private_gsd.workloads.serialisation import dump_workload, load_workload
from tests.strategies import examples
from tests.workloads import twins
from tests.workloads.test_marginal_constructors import SCHEMA, reals


@pytest.mark.parametrize("k", [1, 2, 3])
@given(st.data())
def test_categorical_marginals(k: int, data: st.DataObject) -> None:
    schema, matrix = data.draw(examples(discrete=k))
    workload = workloads.categorical_marginals(schema, k)
    assert count(workload, matrix).tolist() == twins.categorical(schema, matrix, k)


@given(st.data())
def test_tree_marginals(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples(discrete=1, numeric=1))
    depth = data.draw(st.integers(1, 5))
    workload = workloads.tree_marginals(schema, 2, depth)
    expected = []
    for category in (column for column in schema if isinstance(column, Discrete)):
        for number in (column for column in schema if isinstance(column, Numeric)):
            levels = len(
                workloads.tree_marginals(schema, sets=[(number.name,)], depth=depth)
                .families[0]
                .marginals[0]
                .tables
            )
            for level in range(1, levels + 1):
                expected += twins.crossed(
                    [
                        twins.value_masks(schema, matrix, category.name),
                        twins.level_masks(schema, matrix, number.name, level),
                    ]
                )
    assert count(workload, matrix).tolist() == expected


@pytest.mark.parametrize("levels", ["same", "all"])
@given(st.data())
def test_trees_of_two_numbers(levels: Any, data: st.DataObject) -> None:
    schema, matrix = data.draw(examples(reals=2))
    reals = [column for column in schema if isinstance(column, Real)]
    names = [column.name for column in reals[:2]]
    workload = workloads.tree_marginals(schema, sets=[names], depth=3, levels=levels)
    pairs = (
        [(level, level) for level in (1, 2, 3)]
        if levels == "same"
        else [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)]
    )
    expected = []
    for first, second in pairs:
        expected += twins.crossed(
            [
                twins.level_masks(schema, matrix, names[0], first),
                twins.level_masks(schema, matrix, names[1], second),
            ]
        )
    assert count(workload, matrix).tolist() == expected
    assert workload.sensitivity() == pytest.approx(np.sqrt(2 * len(pairs)))


def test_values_on_the_upper_bound_are_counted() -> None:
    matrix = np.array([[0.0, 0.0, 99.0, 10.0, 11322.0, 1609372800.0]])
    for workload in (
        workloads.tree_marginals(SCHEMA, 1, 5),
        workloads.range_marginals(SCHEMA, {"age": [(0, 98), (99, 99)], "pay": [(0, 9), (9, 10)]}),
    ):
        counts = count(workload, matrix)
        for group in range(workload.num_groups):
            part = counts[workload.offsets[group] : workload.offsets[group + 1]]
            assert part.sum() == len(workload.families[0].marginals[group].tables)


def test_tables_that_could_only_be_counted_in_too_many_cells() -> None:
    schema = Schema(reals(20))
    with pytest.raises(WorkloadError, match="would be counted in 3,486,784,401 cells"):
        workloads.range_marginals(schema, {column.name: [(0.25, 0.75)] for column in schema})


@pytest.mark.parametrize("span", [2**-52, 2**-51, 2**-50, 2**-48])
def test_trees_of_spans_that_hardly_hold_a_number(span: float) -> None:
    """No two cuts are the same number, so that a saved workload can be loaded."""
    schema = Schema([Real("x", lower=1.0, upper=1 + span)])
    workload = workloads.tree_marginals(schema, k=1, depth=14)
    families, arrays = dump_workload(workload)
    assert load_workload(schema, families, arrays).size == workload.size


@given(st.data())
def test_joined_categories(data: st.DataObject) -> None:
    """The counts of the full marginal, summed; also beside a marginal of all categories."""
    schema, matrix = data.draw(examples(discrete=2))
    one, other = [p for p, column in enumerate(schema) if isinstance(column, Discrete)][:2]
    full = discrete_feature(schema, one), discrete_feature(schema, other)
    number = st.integers(0, 2)
    joined = [
        joined_feature(each, data.draw(st.lists(number, min_size=n, max_size=n)))
        for each in full
        for n in [len(each.segments)]
    ]
    cells = [feature.cells_of_atoms(np.empty(0)) for feature in joined]
    table = count(Workload(schema, (Marginals(schema, [Marginal((full,))]),)), matrix)
    expected = np.zeros((joined[0].size, joined[1].size), dtype=np.int64)
    np.add.at(
        expected, np.ix_(cells[0], cells[1]), table.reshape([feature.size for feature in full])
    )
    groups = [
        Marginal(((joined[0], joined[1]),)),
        Marginal((full,)),
        Marginal(((joined[0], full[1]), (full[0], joined[1]))),
        Marginal(((joined[1],),)),
    ]
    workload = Workload(schema, (Marginals(schema, groups),))
    again, _ = load_workload(schema, *dump_workload(workload)), None
    for some in (workload, again):
        found = count(some, matrix)
        begin, end = workload.offsets[:2]
        assert found[begin:end].tolist() == expected.ravel().tolist()
        begin, end = workload.offsets[3:5]
        assert found[begin:end].tolist() == expected.sum(axis=0).tolist()
        half = np.zeros((joined[0].size, full[1].size), dtype=np.int64)
        np.add.at(half, cells[0], table.reshape([feature.size for feature in full]))
        begin = int(workload.offsets[2])
        assert found[begin : begin + half.size].tolist() == half.ravel().tolist()
