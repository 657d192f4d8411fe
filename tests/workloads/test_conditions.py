"""Conditions: the words of a query are SQL that a database can run."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Categorical,
    Encoder,
    Schema,
    exact_counts,
    workloads,
)
from tests.strategies import examples, sql_workloads


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


@pytest.mark.parametrize("name", ["null", "order", "true", "select", "end", "Default"])
def test_names_that_are_words_of_sql(name: str) -> None:
    schema = Schema([Categorical(name, values=("a", "b"))])
    query = workloads.categorical_marginals(schema, 1).query(0)
    with duckdb.connect() as connection:
        connection.register("t", pa.table({name: ["a", "b", "a"]}))
        assert connection.sql(f"SELECT count(*) FROM t WHERE {query}").fetchall() == [(2,)]
