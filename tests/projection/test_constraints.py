"""Rules in the search: every row of every table keeps them, whichever way it was made."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import GeneticSearch, Measurements, Schema, evolve, workloads
from private_gsd.counting.exact import count
from private_gsd.data.encoding import Encoder
from private_gsd.errors import ProjectionError
from private_gsd.projection.constraints import broken_rules, first_table
from private_gsd.projection.genetic.algorithm_1 import Algorithm1
from private_gsd.projection.objective import Objective
from private_gsd.projection.watch import Watch
from private_gsd.sql.rules import rules_of
from private_gsd.workloads import Workload
from tests.sql.people import rows_of
from tests.sql.test_rules import WARD, ruled
from tests.workloads.random_sql import predicates_of

pytestmark = pytest.mark.worker("large")

RULES = (
    "NOT (age < 15 AND marital = 'married')",
    "discharge >= admit",
    "total = a + b",
    "marital <> 'widowed' OR age > 40 AND a > 9000",
)
SCHEMA = ruled(*RULES)


def measured(workload: Workload, table: Any, sigma: float = 5.0, seed: int = 0) -> Measurements:
    counts = count(workload, np.asfortranarray(table)).astype(np.float64)
    counts += np.random.default_rng(seed).normal(0, sigma, counts.shape)
    groups = workload.num_groups
    scales = np.full(groups, sigma)
    return Measurements(workload, counts, scales, len(table), ("",) * groups, False)


def asked(schema: Schema) -> Workload:
    return workloads.tree_marginals(schema, 2, 3)


def target() -> Any:
    """A table that keeps the rules, and is nothing like a random one."""
    return _target().copy()


@cache
def _target() -> Any:
    table = first_table(SCHEMA, 4000, 7)
    table[:, 0] = np.minimum(table[:, 0] // 2 + 16, 120)
    table[:, 2] //= 4
    table[:, 4] = table[:, 2] + table[:, 3]
    table[:, 8] = np.minimum(table[:, 7] + 10, 20088)
    table[:, 1] = np.where(table[:, 1] == 2, 1, table[:, 1])
    assert broken_rules(SCHEMA, table) == {}
    return table


def kept(schema: Schema, matrix: Any) -> bool:
    """By our kernels, by the slow twin, and by DuckDB on the decoded rows."""
    rules = rules_of(schema)
    some = matrix[:200].tolist()
    assert not any(rules.broken(row) for row in some)
    table = pa.Table.from_batches([Encoder(schema).decode(np.asfortranarray(matrix))])
    with duckdb.connect() as connection:
        connection.register("rows", table)
        broken = " OR ".join(f"NOT ({rule})" for rule in schema.constraints)
        [(found,)] = connection.execute(f"SELECT count(*) FROM rows WHERE {broken}").fetchall()
    assert found == 0
    return broken_rules(schema, matrix) == {}


def test_random_tables_keep_the_rules_and_are_not_all_alike() -> None:
    table = first_table(SCHEMA, 3000, 1)
    assert kept(SCHEMA, table)
    again = first_table(SCHEMA, 3000, 1)
    np.testing.assert_array_equal(table, again)
    assert len(np.unique(table[:, 2])) > 400
    assert len(np.unique(table[:, 7])) > 400
    assert 5 < np.isnan(table[:, 8]).mean() * 100 < 80


@pytest.mark.parametrize("rows", [400, pytest.param(9000, marks=pytest.mark.slow)])
def test_the_fast_search_keeps_rules_and_still_fits(rows: int) -> None:
    real = target()
    measurements = measured(asked(SCHEMA), real)
    config = GeneticSearch(rows=rows, denoise=False)
    found = evolve(measurements, config, seed=3)
    assert kept(SCHEMA, found.matrix)
    free = Schema(SCHEMA.columns)
    other = evolve(measured(asked(free), real), config, seed=3)
    assert broken_rules(SCHEMA, other.matrix)  # without rules they would not hold
    exact = count(asked(SCHEMA), np.asfortranarray(real)) / len(real)
    mine = np.abs(count(asked(SCHEMA), found.matrix) / rows - exact)
    theirs = np.abs(count(asked(free), other.matrix) / rows - exact)
    assert mine.mean() < 1.5 * theirs.mean() + 1e-4
    again = evolve(measurements, config, seed=3, threads=1)
    np.testing.assert_array_equal(again.matrix, found.matrix)


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(1, 1), (3, 4)])
def test_algorithm_1_keeps_rules(rates: tuple[int, int]) -> None:
    config = GeneticSearch.paper(
        rows=60, generations=400, elites=3, mutation_rate=rates[0], crossover_rate=rates[1]
    )
    measurements = measured(asked(SCHEMA), target())
    found = evolve(measurements, config, seed=1)
    assert kept(SCHEMA, found.matrix)
    assert found.history[-1].loss < 0.9 * Objective(measurements, "equal").share_loss(
        _first_loss(measurements, config), 60
    )


def _first_loss(measurements: Measurements, config: GeneticSearch) -> float:
    objective = Objective(measurements, "equal")
    search = Algorithm1(objective, config, 60, 1, Watch())
    return min(
        objective.loss(objective.state(table)) for table in search.first_tables(measurements, None)
    )


@pytest.mark.slow
def test_the_search_for_functions_keeps_rules() -> None:
    workload = asked(SCHEMA) + workloads.functions(SCHEMA, {"odd": lambda rows: rows["a"] % 2 == 1})
    found = evolve(measured(workload, target()), GeneticSearch(rows=100, generations=5), seed=1)
    assert kept(SCHEMA, found.matrix)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_random_rules_are_kept(seed: int) -> None:
    """Whatever the rules are, as long as a row that keeps them is known."""
    row = rows_of(WARD, 1, seed).tolist()[0]
    texts = predicates_of(WARD, 12, seed % 2**31, compared=0.4)
    mine = [text for text in texts if not rules_of(ruled(text)).broken(row)][:3]
    schema = ruled(*mine)
    try:
        measurements = measured(workloads.tree_marginals(schema, 2, 2), target(), 50.0)
        found = evolve(measurements, GeneticSearch(rows=40, generations=4), seed=seed)
    except Exception as error:
        assert "in a long search" in str(error)
        return
    assert broken_rules(schema, found.matrix) == {}
    rules = rules_of(schema)
    assert not any(rules.broken(each) for each in found.matrix.tolist())


def test_a_start_that_breaks_a_rule_is_refused() -> None:
    start = first_table(SCHEMA, 50, 1)
    start[3, 4] = 19_999
    with pytest.raises(ProjectionError, match=r"start: 1 rows break the rule 'total = a \+ b'"):
        evolve(measured(asked(SCHEMA), target()), GeneticSearch(rows=50), start=start)
