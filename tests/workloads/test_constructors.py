"""What the constructors make, and what they refuse."""

from __future__ import annotations

import datetime as dt
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
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
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.workloads import SkippedWarning
from private_gsd.workloads.joint_tables import cover
from private_gsd.workloads.serialisation import dump_workload, load_workload

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
            assert part.sum() == len(workload.families[0].marginals[group].tables)


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
    with pytest.raises(WorkloadError, match="these columns have 1,050,739,900 marginals"):
        workloads.categorical_marginals(wide, 4)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: workloads.categorical_marginals(SCHEMA, 3),
        "k must be a whole number from 1 to 2, not 3",
    ),
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
    (
        lambda: workloads.tree_marginals(SCHEMA, 2, categorical=2),
        "categorical must be a whole number from 0 to 1",
    ),
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
    (
        lambda: workloads.random_prefixes(SCHEMA, 5, k=1),
        "k must be a whole number from 2 to 6, not 1",
    ),
    (lambda: workloads.random_prefixes(SCHEMA, 5, k=6), "need a discrete and 5 numeric columns"),
    (lambda: workloads.random_halfspaces(SCHEMA, -5), "count must be"),
    (lambda: workloads.categorical_marginals(SCHEMA, 0), "from 1 to 2, not 0"),
    (lambda: workloads.categorical_marginals(SCHEMA, True), "not True"),
    (lambda: workloads.categorical_marginals(SCHEMA, columns=["sex", "sex"]), "each column once"),
    (lambda: workloads.categorical_marginals(SCHEMA, max_cells="5"), "max_cells must be"),  # type: ignore[arg-type]
    (lambda: workloads.range_marginals(SCHEMA, {}), "no column was given"),
    (lambda: workloads.range_marginals(SCHEMA, {"age": [(0.5, 3)]}), "whole numbers, not 0.5"),
    (
        lambda: workloads.range_marginals(
            SCHEMA, {"seen": [("2020-02-01T00:00:00Z", "2020-03-01")]}
        ),
        "are dates, not",
    ),
    (lambda: workloads.tree_marginals(SCHEMA, 6), "1 discrete and 5 numeric columns are needed"),
    (lambda: workloads.random_prefixes(SCHEMA, 5, seed=-1), "seed must be a whole number from 0"),
    (lambda: workloads.random_halfspaces(SCHEMA, 5, seed=None), "seed must be"),  # type: ignore[arg-type]
    (lambda: workloads.random_halfspaces(SCHEMA, 5, seed=1.5), "seed must be"),  # type: ignore[arg-type]
    (
        lambda: workloads.categorical_marginals(SCHEMA, 1).select(np.array([False, True])),
        "by their numbers",
    ),
    (lambda: workloads.categorical_marginals(SCHEMA, 1).select([0.9]), "by their numbers"),  # type: ignore[list-item]
    (lambda: workloads.categorical_marginals(SCHEMA, 1).sensitivity([-1]), "groups 0 to 1 only"),
    (
        lambda: workloads.categorical_marginals(SCHEMA, 1).sensitivity(np.array([True, False])),
        "by their numbers",
    ),
    (lambda: workloads.categorical_marginals(SCHEMA, 1).select([0, 0]), "given twice"),
    (lambda: workloads.categorical_marginals(SCHEMA, 1).select([]), "some of the groups 0 to 1"),
    (
        lambda: workloads.categorical_marginals(SCHEMA, 1).select([2]),
        "there are groups 0 to 1 only",
    ),
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


def reals(number: int) -> list[Real]:
    return [Real(f"x{i}", lower=0, upper=1) for i in range(number)]


def test_fine_cuts_of_one_group_are_not_forced_on_others() -> None:
    """A tree of 14 levels beside trees of pairs: the pairs are counted in their own cells."""
    schema = Schema(reals(2))
    workload = workloads.tree_marginals(schema, 1, 14) + workloads.tree_marginals(
        schema, 2, 5, categorical=0
    )
    [family] = workload.families
    assert family._joint.size <= 2 * 2**14 + 4096 * 2  # type: ignore[attr-defined]
    matrix = np.random.default_rng(0).random((500, 2))
    pairs = workloads.tree_marginals(schema, 2, 5, categorical=0)
    np.testing.assert_array_equal(count(workload, matrix)[-pairs.size :], count(pairs, matrix))


def test_tables_that_could_only_be_counted_in_too_many_cells() -> None:
    schema = Schema(reals(20))
    with pytest.raises(WorkloadError, match="would be counted in 3,486,784,401 cells"):
        workloads.range_marginals(schema, {column.name: [(0.25, 0.75)] for column in schema})


LARGE: list[tuple[Schema, Callable[[Schema], Any], str]] = [
    (Schema(reals(600)), lambda s: workloads.tree_marginals(s, 1, 14), "19,659,600 cells"),
    (
        Schema([Categorical(f"c{i}", values=range(20_000)) for i in range(10)]),
        lambda s: workloads.categorical_marginals(s, 2),
        "18,000,000,000 cells",
    ),
    (
        Schema([*(Boolean(f"b{i}") for i in range(100)), *reals(100)]),
        lambda s: workloads.tree_marginals(s, 4, 2, categorical=2),
        "24,502,500 marginals",
    ),
    (
        Schema(reals(6)),
        lambda s: workloads.tree_marginals(s, 6, 14, categorical=0, levels="all"),
        "cells, more than",
    ),
    (
        Schema([Categorical("c", values=range(100_000))]),
        lambda s: workloads.random_halfspaces(s, 256),
        "100,000 dimensions",
    ),
]


@pytest.mark.parametrize(("schema", "make", "message"), LARGE, ids=[each[2] for each in LARGE])
def test_refusals_need_no_memory(
    schema: Schema, make: Callable[[Schema], Any], message: str
) -> None:
    """Sizes are known before anything of that size is made: none of this takes 10 MB."""
    tracemalloc.start()
    try:
        with pytest.raises(WorkloadError, match=message):
            make(schema)
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()


def test_no_discrete_column() -> None:
    with pytest.raises(WorkloadError, match="no categorical or boolean column"):
        workloads.categorical_marginals(Schema(reals(2)), 1)
    with pytest.raises(WorkloadError, match="a column set is empty"):
        workloads.categorical_marginals(SCHEMA, sets=[()])


def test_all_skipped_sets_are_told() -> None:
    schema = Schema([Categorical(f"c{i}", values=range(50)) for i in range(20)] + [Boolean("b")])
    with pytest.warns(SkippedWarning) as caught:
        workloads.categorical_marginals(schema, 2, max_cells=200)
    warning = caught[0].message
    assert isinstance(warning, SkippedWarning)
    assert len(warning.sets) == 190
    assert ("c0", "c19") in warning.sets


def test_many_sets_are_planned_in_bounded_tries() -> None:
    schema = Schema([Boolean(f"b{i}") for i in range(45)])
    workload = workloads.categorical_marginals(schema, 3)
    matrix = np.random.default_rng(0).integers(0, 2, (50, 45)).astype(float)
    assert count(workload, matrix).sum() == 50 * workload.num_groups


def test_many_overlapping_ranges_share_their_sums() -> None:
    schema = Schema(reals(2))
    intervals = [(i / 4000, 0.5 + i / 4000) for i in range(1, 121)]
    workload = workloads.range_marginals(schema, {"x0": intervals, "x1": intervals})
    matrix = np.random.default_rng(0).random((40, 2))
    counts = count(workload, matrix)
    for index in range(0, workload.size, 997):
        low, high = (float(word.split()[2]) for word in workload.query(index).split(" AND ")[:2])
        assert "x0" in workload.query(index)
        inside = (matrix[:, 0] >= low) & (matrix[:, 0] < high)
        assert counts[index] <= inside.sum()


def test_ranges_of_moments() -> None:
    schema = Schema(
        [
            Datetime(
                "d",
                lower=dt.datetime(2020, 1, 1),
                upper=dt.datetime(2021, 1, 1),
                timezone="America/New_York",
                resolution="hour",
            )
        ]
    )
    noon = ("2020-06-01T12:00:00-04:00", "2020-06-01T13:00:00-04:00")
    month = (dt.date(2020, 6, 1), dt.date(2020, 6, 30))
    workload = workloads.range_marginals(schema, {"d": [noon, month]})
    assert sorted(workload.query(index) for index in range(2)) == [
        "(\"d\" AT TIME ZONE 'America/New_York') >= TIMESTAMP '2020-06-01 00:00:00.000000' AND "
        "(\"d\" AT TIME ZONE 'America/New_York') < TIMESTAMP '2020-07-01 00:00:00.000000'",
        "(\"d\" AT TIME ZONE 'America/New_York') >= TIMESTAMP '2020-06-01 12:00:00.000000' AND "
        "(\"d\" AT TIME ZONE 'America/New_York') < TIMESTAMP '2020-06-01 14:00:00.000000'",
    ]


@pytest.mark.parametrize("name", ["null", "order", "true", "select", "end", "Default"])
def test_names_that_are_words_of_sql(name: str) -> None:
    schema = Schema([Categorical(name, values=("a", "b"))])
    query = workloads.categorical_marginals(schema, 1).query(0)
    with duckdb.connect() as connection:
        connection.register("t", pa.table({name: ["a", "b", "a"]}))
        assert connection.sql(f"SELECT count(*) FROM t WHERE {query}").fetchall() == [(2,)]


def test_numpy_numbers_will_do() -> None:
    assert workloads.categorical_marginals(SCHEMA, np.int64(2)).num_groups == 1  # type: ignore[arg-type]
    assert workloads.random_prefixes(SCHEMA, np.int32(3)).size == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("category", "value", "number", "threshold", "message"),
    [
        (0, 3, 1, 1.0, "values"),  # the null of a column that has none
        (0, -1, 1, 1.0, "values"),
        (1, 0, 1, 1.0, "columns"),
        (0, 0, 0, 1.0, "columns"),
        (0, 0, 2, 1.0, "a column's position"),
        (0, 0, 1, math.inf, "thresholds"),
    ],
)
def test_conjunctions_that_a_kernel_could_not_count(
    category: int, value: int, number: int, threshold: float, message: str
) -> None:
    schema = Schema([Categorical("a", values=range(3)), Integer("n", lower=0, upper=1)])
    with pytest.raises(WorkloadError, match=f"the queries are not sound: {message}"):
        workloads.Conjunctions(
            schema,
            np.array([category]),
            np.array([value]),
            np.array([[number]]),
            np.array([[threshold]]),
        )


@pytest.mark.parametrize("span", [2**-52, 2**-51, 2**-50, 2**-48])
def test_trees_of_spans_that_hardly_hold_a_number(span: float) -> None:
    """No two cuts are the same number, so that a saved workload can be loaded."""
    schema = Schema([Real("x", lower=1.0, upper=1 + span)])
    workload = workloads.tree_marginals(schema, k=1, depth=14)
    families, arrays = dump_workload(workload)
    assert load_workload(schema, families, arrays).size == workload.size
