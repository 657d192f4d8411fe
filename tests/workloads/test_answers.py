"""Every family's counts equal those of a slow twin, and of DuckDB running the query's own words."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Encoder, Schema, answer, workloads
from private_gsd.answering import count
from private_gsd.schema import Discrete, Integer, Numeric, Real
from private_gsd.workloads import Conjunctions, Halfspaces, Workload
from tests.strategies import DISCRETE, NUMERIC, columns, encoded_values
from tests.workloads import twins


@st.composite
def examples(
    draw: st.DrawFn, discrete: int = 0, numeric: int = 0, reals: int = 0, max_rows: int = 40
) -> tuple[Schema, NDArray[np.float64]]:
    """A schema with at least so many columns, and rows, values on the cuts among them."""
    kinds: list[tuple[str, ...]] = [DISCRETE] * discrete + [NUMERIC] * numeric + [("real",)] * reals
    kinds += [DISCRETE + NUMERIC] * draw(st.integers(0 if kinds else 1, 2))
    order = draw(st.permutations(range(len(kinds))))
    schema = Schema([draw(columns(f"c{place}", kinds[place])) for place in order])
    rows = draw(st.integers(1, max_rows))
    drawn = []
    for column in schema:
        values = encoded_values(column)
        if isinstance(column, Real):
            low, high = column.bounds
            cuts = [low + (high - low) * (cut / 32) for cut in range(33)]
            values = values | st.sampled_from([min(max(cut, low), high) for cut in cuts])
        drawn.append(draw(st.lists(values, min_size=rows, max_size=rows)))
    return schema, np.array(drawn, dtype=np.float64).T.reshape(rows, len(schema))


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
                .groups[0]  # type: ignore[attr-defined]
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


@st.composite
def any_workload(draw: st.DrawFn, schema: Schema) -> Workload:
    """A workload of all families that SQL can say."""
    discrete = [column.name for column in schema if isinstance(column, Discrete)]
    numeric = [column for column in schema if isinstance(column, Numeric)]
    found = [workloads.categorical_marginals(schema, k) for k in range(1, len(discrete) + 1)]
    ranges: dict[str, Any] = dict.fromkeys(discrete[:1], ...)
    for column in numeric:
        found.append(workloads.tree_marginals(schema, sets=[[column.name, *discrete[:1]]], depth=3))
        if isinstance(column, Integer | Real):
            between = (
                st.integers(column.lower, column.upper)
                if isinstance(column, Integer)
                else st.floats(column.lower, column.upper)
            )
            pairs = st.tuples(between, between).map(sorted).filter(lambda pair: pair[0] < pair[1])
            ranges[column.name] = draw(
                st.lists(pairs.map(tuple), min_size=1, max_size=4, unique=True)
            )
    if ranges:
        found.append(workloads.range_marginals(schema, ranges))
    if discrete and numeric:
        found.append(workloads.random_prefixes(schema, 20, seed=3, k=2))
    order = draw(st.permutations(found))
    total = order[0]
    for each in order[1:]:
        total = total + each
    return total


@given(st.data())
def test_duckdb_counts_the_same(data: st.DataObject) -> None:
    """The words of each query, run by a database on the decoded table, give the same count."""
    schema, matrix = data.draw(examples())
    workload = data.draw(any_workload(schema))
    table = pa.Table.from_batches([Encoder(schema).decode(matrix)])
    asked = list(range(workload.size))
    if len(asked) > 300:
        asked = data.draw(st.lists(st.sampled_from(asked), min_size=300, max_size=300))
    filters = ", ".join(f"count(*) FILTER (WHERE {workload.query(index)})" for index in asked)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", table)
        [row] = connection.sql(f"SELECT {filters} FROM t").fetchall()
    exact = answer(workload, table, threads=1)
    assert list(row) == exact.counts[asked].tolist()


@given(st.data())
def test_selected_groups_keep_their_answers(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples())
    workload = data.draw(any_workload(schema)) + workloads.random_halfspaces(schema, 600)
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
