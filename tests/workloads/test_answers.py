"""Every family's counts equal those of a slow twin, and of DuckDB running the query's own words."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Encoder, exact_counts, workloads
from private_gsd.counting.exact import count
from private_gsd.schema import Discrete, Numeric, Real
from private_gsd.workloads import Conjunctions, Halfspaces, Workload
from tests.strategies import examples, sql_workloads
from tests.workloads import twins


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


@pytest.mark.parametrize("k", [2, 3, 4])
@given(st.data())
def test_prefixes(k: int, data: st.DataObject) -> None:
    schema, matrix = data.draw(examples(discrete=1, numeric=k - 1))
    workload = workloads.random_prefixes(schema, 30, seed=data.draw(st.integers(0, 9)), k=k)
    [family] = workload.families
    assert isinstance(family, Conjunctions)
    # Thresholds that are values themselves: the comparison is strict.
    places = data.draw(st.lists(st.integers(0, len(matrix) - 1), min_size=30, max_size=30))
    at_values = matrix[np.array(places)[:, None], family.numbers]
    thresholds = np.where(np.isnan(at_values), family.thresholds, at_values)
    family = Conjunctions(schema, family.category, family.value, family.numbers, thresholds)
    workload = Workload(schema, (family,))
    assert count(workload, matrix).tolist() == twins.conjunctions(family, matrix)


@given(st.data())
def test_halfspaces(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples())
    workload = workloads.random_halfspaces(schema, 40, seed=data.draw(st.integers(0, 9)))
    [family] = workload.families
    assert isinstance(family, Halfspaces)
    assert count(workload, matrix).tolist() == twins.halfspaces(family, matrix)


@given(st.data())
def test_duckdb_counts_the_same(data: st.DataObject) -> None:
    """The words of each query, run by a database on the decoded table, give the same count."""
    schema, matrix = data.draw(examples())
    workload = data.draw(sql_workloads(schema))
    table = pa.Table.from_batches([Encoder(schema).decode(matrix)])
    asked = list(range(workload.size))
    if len(asked) > 300:
        asked = data.draw(st.lists(st.sampled_from(asked), min_size=300, max_size=300))
    filters = ", ".join(f"count(*) FILTER (WHERE {workload.query(index)})" for index in asked)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", table)
        [row] = connection.sql(f"SELECT {filters} FROM t").fetchall()
    exact = exact_counts(workload, table, threads=1)
    assert list(row) == exact.counts[asked].tolist()


@given(st.data())
def test_selected_groups_keep_their_answers(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples())
    workload = data.draw(sql_workloads(schema)) + workloads.random_halfspaces(schema, 600)
    chosen = sorted(
        data.draw(st.sets(st.integers(0, workload.num_groups - 1), min_size=1, max_size=9))
    )
    counts = count(workload, matrix)
    expected = [
        counts[workload.offsets[group] : workload.offsets[group + 1]].tolist() for group in chosen
    ]
    selected = workload.select(chosen)
    assert count(selected, matrix).tolist() == [value for part in expected for value in part]
    assert [selected.describe(group) for group in range(len(chosen))] == [
        workload.describe(group) for group in chosen
    ]
