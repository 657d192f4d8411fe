"""The layout: queries and groups keep their numbers, and each query is laid out once."""

from __future__ import annotations

import pytest

from private_gsd import Boolean, Integer, Schema, workloads
from private_gsd.errors import WorkloadError
from private_gsd.workloads import Functions
from private_gsd.workloads.layout import QueryLayout, marginal_tables

SCHEMA = Schema([Boolean("a"), Boolean("b"), Integer("age", lower=0, upper=99)])
OLD = workloads.functions(SCHEMA, {"old": lambda rows: rows["age"] > 60})


def test_queries_have_their_numbers_in_the_workload() -> None:
    workload = (
        workloads.sums(SCHEMA)
        + workloads.categorical_marginals(SCHEMA, 1)
        + workloads.random_prefixes(SCHEMA, 3, k=2)
        + OLD
        + workloads.random_halfspaces(SCHEMA, 2)
        + workloads.predicates(SCHEMA, ["age < 3", ["a", "NOT a"]])
        + workloads.tree_marginals(SCHEMA, 1, 2)
    )
    layout = QueryLayout.of(workload.families)
    assert [each.query for each in layout.sums] == [0]
    assert [(each.query, each.group) for each in layout.tables] == [
        (1, 1),
        (3, 2),
        (14, 11),
        (16, 11),
    ]
    assert [each.query for each in layout.conjunctions] == [5]
    assert [(each.query, each.size) for each in layout.functions] == [(8, 1)]
    assert [(each.query, each.size) for each in layout.halfspaces] == [(9, 2)]
    assert [query for query, _ in layout.conditions] == [11, 12, 13]
    assert layout.size == workload.size == 20
    assert marginal_tables(workload) == layout.tables
    assert len(layout.forms) == 6
    assert QueryLayout.of(OLD.families).forms == {"functions"}


class Nothing(Functions):
    """Lays out none of its queries."""

    def lay_out(self, layout: QueryLayout) -> None:
        pass


def test_a_layout_without_some_queries_is_refused() -> None:
    family = Nothing(SCHEMA, {"old": lambda rows: rows["age"] > 60})
    with pytest.raises(WorkloadError, match="functions must lay out each of their queries once"):
        QueryLayout.of([family])
