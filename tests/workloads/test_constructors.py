"""What the constructors make, and what they refuse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from private_gsd import (
    Boolean,
    Categorical,
    Date,
    Datetime,
    Integer,
    Real,
    Schema,
    datasets,
    workloads,
)
from private_gsd.answering import count
from private_gsd.errors import WorkloadError
from private_gsd.workloads import SkippedWarning
from private_gsd.workloads.tables import cover

SCHEMA = Schema(
    [
        Categorical("sex", values=("f", "m")),
        Boolean("veteran", nullable=True),
        Integer("age", lower=0, upper=99),
        Real("pay", lower=0, upper=10, nullable=True),
        Date("born", lower=dt.date(2000, 1, 1), upper=dt.date(2000, 12, 31)),
        Datetime("seen", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2020, 12, 31)),
    ]
)
# The columns of the paper's data: how many are categorical and how many numeric.
PAPER = {
    "mobility": (17, 4),
    "coverage": (17, 2),
    "employment": (16, 1),
    "income": (9, 2),
    "travel": (14, 2),
}


def paper_schema(categorical: int, numeric: int) -> Schema:
    return Schema(
        [
            *(Categorical(f"c{i}", values=("a", "b", "c")) for i in range(categorical)),
            *(Real(f"n{i}", lower=0, upper=1) for i in range(numeric)),
        ]
    )


def test_the_workload_counts_of_the_paper() -> None:
    """The table of workloads in the paper's appendix."""
    schemas = [paper_schema(*columns) for columns in PAPER.values()]
    two = [workloads.categorical_marginals(schema, 2).num_groups for schema in schemas]
    three = [workloads.categorical_marginals(schema, 3).num_groups for schema in schemas]
    trees = [workloads.tree_marginals(schema, 2).num_groups for schema in schemas]
    assert two == [136, 136, 120, 36, 91]
    assert three == [680, 680, 560, 84, 364]
    assert trees == [68, 34, 16, 18, 28]


def test_sizes_and_layout() -> None:
    workload = workloads.categorical_marginals(SCHEMA, 2)
    assert workload.size == 2 * 3
    assert workload.group_sizes.tolist() == [6]
    assert workload.query(0) == "sex = 'f' AND veteran = FALSE"
    assert workload.query(5) == "sex = 'm' AND veteran IS NULL"
    trees = workloads.tree_marginals(SCHEMA, sets=[("pay", "sex")], depth=2)
    assert trees.size == 2 * (2 + 1) + 2 * (4 + 1)
    assert trees.query(0) == "pay < 5.0 AND sex = 'f'"
    assert trees.query(2) == "pay >= 5.0 AND sex = 'f'"
    assert trees.query(4) == "pay IS NULL AND sex = 'f'"
    assert trees.query(trees.size - 1) == "pay IS NULL AND sex = 'm'"
    assert trees.describe(0) == "pay x sex"
    both = workload + trees
    assert both.offsets.tolist() == [0, 6, 22]
    assert both.query(6) == trees.query(0)
    assert repr(both) == "<Workload of 22 queries in 2 groups: marginals>"
    for index in (-1, 22):
        with pytest.raises(IndexError, match="no query"):
            both.query(index)
    with pytest.raises(IndexError, match="no group 2; there are 2"):
        both.describe(2)


def test_dates_take_part() -> None:
    trees = workloads.tree_marginals(SCHEMA, sets=[("born",), ("seen",)], depth=1)
    assert [trees.query(index) for index in range(4)] == [
        "born < DATE '2000-07-02'",
        "born >= DATE '2000-07-02'",
        "seen < TIMESTAMP '2020-07-01 12:00:00.000000'",
        "seen >= TIMESTAMP '2020-07-01 12:00:00.000000'",
    ]


def test_ranges_of_whole_numbers_and_dates_include_both_ends() -> None:
    workload = workloads.range_marginals(
        SCHEMA, {"age": [(0, 17), (18, 64)], "born": [("2000-01-01", dt.date(2000, 1, 31))]}, k=1
    )
    assert [workload.query(index) for index in range(3)] == [
        "age < 18",
        "age >= 18 AND age < 65",
        "born < DATE '2000-02-01'",
    ]
    reals = workloads.range_marginals(SCHEMA, {"pay": [(0, 5), (5, 10), (2.5, 7.5)]})
    assert [reals.query(index) for index in range(reals.size)] == [
        "pay < 5.0",
        "pay >= 5.0",
        "pay IS NULL",
        "pay >= 2.5 AND pay < 7.5",
        "pay IS NULL",
    ]


def test_values_on_the_upper_bound_are_counted() -> None:
    matrix = np.array([[0.0, 0.0, 99.0, 10.0, 11322.0, 1609372800.0]])
    for workload in (
        workloads.tree_marginals(SCHEMA, 1, 5),
        workloads.range_marginals(SCHEMA, {"age": [(0, 98), (99, 99)], "pay": [(0, 9), (9, 10)]}),
    ):
        counts = count(workload, matrix)
        for group in range(workload.num_groups):
            part = counts[workload.offsets[group] : workload.offsets[group + 1]]
            assert part.sum() == len(workload.families[0].groups[group].tables)  # type: ignore[attr-defined]


@pytest.mark.parametrize("values", [["f"], ["f", "m", "x"]])
def test_different_schemas_cannot_be_joined(values: list[str]) -> None:
    other = Schema([Categorical("sex", values=values), Boolean("veteran")])
    with pytest.raises(WorkloadError, match="different schemas"):
        workloads.categorical_marginals(SCHEMA, 1) + workloads.categorical_marginals(other, 1)


def test_only_workloads_can_be_added() -> None:
    with pytest.raises(TypeError):
        workloads.categorical_marginals(SCHEMA, 1) + 3


def test_the_guard_on_size() -> None:
    """Refused before anything is allocated, with the largest sets named."""
    big = Schema([Categorical(f"c{i}", values=tuple(range(3000))) for i in range(4)])
    with pytest.raises(WorkloadError) as error:
        workloads.categorical_marginals(big, 2)
    assert "54,000,000 cells, more than the 16,777,216 allowed" in str(error.value)
    assert "c0 x c1 (9,000,000 cells)" in str(error.value)
    mixed = Schema([*big, Categorical("small", values=("a", "b")), Boolean("flag")])
    with pytest.warns(SkippedWarning, match=r"left out 6 column sets.*c0 x c1 \(9,000,000 cells\)"):
        workload = workloads.categorical_marginals(mixed, 2, max_cells=10_000)
    assert workload.num_groups == 9
    with pytest.warns(SkippedWarning), pytest.raises(WorkloadError, match="no column set is left"):
        workloads.categorical_marginals(big, 2, max_cells=10)
    wide = Schema([Boolean(f"b{i}") for i in range(400)])
    with pytest.raises(WorkloadError, match="400 columns have 1,050,739,900 4-way marginals"):
        workloads.categorical_marginals(wide, 4)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: workloads.categorical_marginals(SCHEMA, 3), "from 1 to the 2 discrete columns, not 3"),
    (lambda: workloads.categorical_marginals(SCHEMA, -1), "not -1"),
    (lambda: workloads.categorical_marginals(SCHEMA, 1.5), "not 1.5"),  # type: ignore[arg-type]
    (lambda: workloads.categorical_marginals(SCHEMA, sets=[("age",)]), "'age' is integer, not cat"),
    (lambda: workloads.categorical_marginals(SCHEMA, sets=[("sx",)]), "did you mean 'sex'"),
    (lambda: workloads.categorical_marginals(SCHEMA, sets=["sex"]), "a list of names, not 'sex'"),
    (lambda: workloads.categorical_marginals(SCHEMA, sets=[("sex", "sex")]), "each column once"),
    (lambda: workloads.categorical_marginals(SCHEMA, sets=[]), "no column set was chosen"),
    (lambda: workloads.categorical_marginals(SCHEMA, columns=["x"]), "no column 'x'"),
    (lambda: workloads.tree_marginals(SCHEMA, depth=0), "depth must be a whole number from 1 to"),
    (lambda: workloads.tree_marginals(SCHEMA, depth=99), "depth must be"),
    (lambda: workloads.tree_marginals(SCHEMA, levels="some"), "'same' or 'all', not 'some'"),  # type: ignore[arg-type]
    (lambda: workloads.tree_marginals(SCHEMA, 2, categorical=2), "at least one numeric column"),
    (lambda: workloads.tree_marginals(SCHEMA, sets=[("sex",)]), "needs a numeric column"),
    (lambda: workloads.range_marginals(SCHEMA, {"sex": [(0, 1)]}), "is categorical: give ..."),
    (lambda: workloads.range_marginals(SCHEMA, {"age": ...}), "give a list of intervals"),
    (lambda: workloads.range_marginals(SCHEMA, {"age": []}), "the list of intervals is empty"),
    (lambda: workloads.range_marginals(SCHEMA, {"age": [5]}), "a pair (lower, upper), not 5"),  # type: ignore[list-item]
    (lambda: workloads.range_marginals(SCHEMA, {"age": [(9, 5)]}), "interval (9, 5) is empty"),
    (lambda: workloads.range_marginals(SCHEMA, {"pay": [(5, 5)]}), "interval (5, 5) is empty"),
    (lambda: workloads.range_marginals(SCHEMA, {"age": [(0, 200)]}), "leaves the domain, 0 to 99"),
    (lambda: workloads.range_marginals(SCHEMA, {"age": [("a", 2)]}), "are numbers, not 'a'"),
    (lambda: workloads.range_marginals(SCHEMA, {"born": [(1, 2)]}), "are dates, not 1"),
    (lambda: workloads.range_marginals(SCHEMA, {"age": [(0, 5), (0, 5)]}), "given twice"),
    (lambda: workloads.range_marginals(SCHEMA, {"born": [("x", "y")]}), "are dates, not 'x'"),
    (lambda: workloads.range_marginals(SCHEMA, {"agee": ...}), "did you mean 'age'"),
    (lambda: workloads.random_prefixes(SCHEMA, 0), "count must be a whole number from 1"),
    (lambda: workloads.random_prefixes(SCHEMA, 2**30), "count must be"),
    (lambda: workloads.random_prefixes(SCHEMA, 5, k=1), "k must be a whole number of at least 2"),
    (lambda: workloads.random_prefixes(SCHEMA, 5, k=6), "need a discrete and 5 numeric columns"),
    (lambda: workloads.random_halfspaces(SCHEMA, -5), "count must be"),
    (lambda: workloads.categorical_marginals(SCHEMA, 1).select([0, 0]), "selected twice"),
    (lambda: workloads.categorical_marginals(SCHEMA, 1).select([]), "some of the groups 0 to 1"),
    (lambda: workloads.categorical_marginals(SCHEMA, 1).select([2]), "some of the groups 0 to 1"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        make()
    assert message in str(error.value)


def test_random_queries_are_as_the_paper_draws_them() -> None:
    schema = datasets.census_schema()
    [family] = workloads.random_prefixes(schema, 50_000, seed=1).families
    discrete = [p for p, column in enumerate(schema) if hasattr(column, "values")]
    # Each discrete column, each value, each pair of numbers is drawn without preference: counts
    # stay within six standard deviations of their expectation.
    counts = np.bincount(family.category, minlength=len(schema))[discrete]  # type: ignore[attr-defined]
    expected = 50_000 / len(discrete)
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)
    assert (family.numbers[:, 0] != family.numbers[:, 1]).all()  # type: ignore[attr-defined]
    income = schema.names.index("income")
    cuts = family.thresholds[family.numbers == income]  # type: ignore[attr-defined]
    assert abs(cuts.mean() - 995_000) < 6 * 2_010_000 / np.sqrt(12 * len(cuts))
    nulls = family.value[family.category == schema.names.index("veteran")] == 2  # type: ignore[attr-defined]
    assert abs(nulls.mean() - 1 / 3) < 6 * np.sqrt(2 / 9 / len(nulls))
    [planes] = workloads.random_halfspaces(schema, 20_000, seed=1).families
    coefficients, thresholds = planes.parameters(np.arange(20_000))  # type: ignore[attr-defined]
    assert coefficients.shape == (planes.dimensions, 20_000)  # type: ignore[attr-defined]
    assert coefficients.var() == pytest.approx(1 / len(schema), rel=0.01)
    assert thresholds.var() == pytest.approx(1, rel=0.05)


def test_seeds_give_the_same_queries_and_counts_are_prefixes() -> None:
    schema = datasets.census_schema()
    one, two = (workloads.random_halfspaces(schema, count, seed=4) for count in (10, 700))
    first, second = one.families[0], two.families[0]
    for mine, theirs in zip(
        first.parameters(np.arange(10)),  # type: ignore[attr-defined]
        second.parameters(np.arange(10)),  # type: ignore[attr-defined]
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)
    prefixes = [workloads.random_prefixes(schema, 5, seed=seed).query(0) for seed in (1, 1, 2)]
    assert prefixes[0] == prefixes[1] != prefixes[2]


def test_cover() -> None:
    sets = [(0, 1), (1, 2), (0, 2), (2, 3)]
    joints, which = cover(sets, [2, 2, 2, 100], 64)
    assert joints == [(0, 1, 2), (2, 3)]
    assert which == [0, 0, 0, 1]
    joints, which = cover([(0, 3), (3, 0)], [2, 2, 2, 100], 10)
    assert joints == [(0, 3)]
    assert which == [0, 0]
