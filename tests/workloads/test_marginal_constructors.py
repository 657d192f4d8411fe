"""Constructors of marginals: what they make, and what they refuse."""

from __future__ import annotations

import datetime as dt
import tracemalloc
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
    workloads,
)
from private_gsd.errors import WorkloadError
from private_gsd.workloads import SkippedWarning

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


def reals(number: int) -> list[Real]:
    return [Real(f"x{i}", lower=0, upper=1) for i in range(number)]


def test_the_workload_counts_of_the_paper() -> None:
    """The table of workloads in the paper's appendix."""
    schemas = [paper_schema(*columns) for columns in PAPER.values()]
    two = [workloads.categorical_marginals(schema, 2).num_groups for schema in schemas]
    three = [workloads.categorical_marginals(schema, 3).num_groups for schema in schemas]
    trees = [workloads.tree_marginals(schema, 2).num_groups for schema in schemas]
    assert two == [136, 136, 120, 36, 91]
    assert three == [680, 680, 560, 84, 364]
    assert trees == [68, 34, 16, 18, 28]


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
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        make()
    assert message in str(error.value)


def test_no_discrete_column() -> None:
    with pytest.raises(WorkloadError, match="no categorical or boolean column"):
        workloads.categorical_marginals(Schema(reals(2)), 1)
    with pytest.raises(WorkloadError, match="a column set is empty"):
        workloads.categorical_marginals(SCHEMA, sets=[()])


def test_all_skipped_sets_are_named() -> None:
    schema = Schema([Categorical(f"c{i}", values=range(50)) for i in range(20)] + [Boolean("b")])
    with pytest.warns(SkippedWarning) as caught:
        workloads.categorical_marginals(schema, 2, max_cells=200)
    warning = caught[0].message
    assert isinstance(warning, SkippedWarning)
    assert len(warning.sets) == 190
    assert ("c0", "c19") in warning.sets


def test_numpy_numbers_will_do() -> None:
    assert workloads.categorical_marginals(SCHEMA, np.int64(2)).num_groups == 1  # type: ignore[arg-type]
    assert workloads.random_prefixes(SCHEMA, np.int32(3)).size == 3  # type: ignore[arg-type]


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
