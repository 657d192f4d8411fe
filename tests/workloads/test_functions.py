"""Functions: any predicate of a row as a query, if it judges rows one at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Boolean, Categorical, Date, Encoder, Integer, Real, Schema, workloads
from private_gsd.counting.exact import count, exact_counts
from private_gsd.errors import ProjectionError, WorkloadError
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.workloads.functions import Rows
from tests.strategies import matrices, schemas

SCHEMA = Schema(
    [
        Categorical("job", values=["cook", "smith", "clerk"], nullable=True),
        Boolean("owner"),
        Integer("age", lower=0, upper=99),
        Real("pay", lower=0, upper=1000, nullable=True),
        Date("since", lower=dt.date(2000, 1, 1), upper=dt.date(2020, 12, 31), nullable=True),
    ]
)
TESTS: dict[str, Callable[[Any], Any]] = {
    "no cook": lambda rows: rows["job"] != "cook",
    "null job": lambda rows: np.array([job is None for job in rows["job"]]),
    "owner": lambda rows: rows["owner"].astype(bool),
    "paid by age": lambda rows: rows["pay"] > 10 * rows["age"],
    "long": lambda rows: rows["since"] < np.datetime64("2010-01-01"),
}
ROWS = np.array(
    [
        [0, 1, 30, 301, 0],
        [1, 0, 30, 299, 20000],
        [np.nan, 1, 0, np.nan, np.nan],
        [2, 1, 99, 1000, 11000],
    ],
    dtype=np.float64,
)
ROWS[0, 4] = 10957  # the first of 2000, in days since 1970
ROWS[1, 4] = 18000


def test_counts() -> None:
    workload = workloads.functions(SCHEMA, TESTS)
    assert count(workload, ROWS).tolist() == [3, 1, 3, 2, 2]
    assert workload.group_sizes.tolist() == [1] * 5
    assert workload.squared_sensitivities().tolist() == [1] * 5
    assert workload.describe(3) == "function 'paid by age'"
    assert workload.query(0) == "function 'no cook'"
    assert count(workload.select([3, 1]), ROWS).tolist() == [1, 2]
    table = Encoder(SCHEMA).decode(ROWS)
    assert exact_counts(workload, table).counts.tolist() == [3, 1, 3, 2, 2]


@given(st.data())
def test_rows_show_what_the_table_holds(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    matrix = data.draw(matrices(schema))
    rows = Rows(schema, matrix)
    decoded = Encoder(schema).decode(matrix)
    assert (len(rows), rows.size, list(rows)) == (len(schema), len(matrix), list(schema.names))
    for column in schema:
        shown = rows[column.name]
        held = decoded.column(column.name).to_pylist()
        for one, other in zip(shown.tolist(), held, strict=True):
            if other is None:
                assert one is None or one != one
            elif not isinstance(other, dt.date):
                assert one == pytest.approx(other, abs=0.5e-4)


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ({}, "give some functions by their names"),
        ([len], "give some functions by their names"),
        ({"x": 3}, "give functions by their names; 'x' is 3"),
        ({1: len}, "give functions by their names; 1 is"),
        ({"x": lambda rows: rows["age"]}, "'x' must give an array with a true or false for each"),
        ({"x": lambda rows: rows["age"][:3] > 1}, "for 200 rows it gave bool of shape .3,."),
        ({"x": lambda rows: True}, "for 200 rows it gave bool"),
        ({"x": lambda rows: np.squeeze(rows["age"] > 3)}, "for 1 rows it gave bool of shape .."),
        (
            {"x": lambda rows: np.ma.masked_greater(rows["age"], 3) > 1},
            "for 200 rows it gave MaskedArray",
        ),
        ({"x": lambda rows: rows["agee"] > 1}, "no column 'agee' in the schema .did you mean"),
        (
            {"x": lambda rows: rows["age"] > rows["age"].mean()},
            "'x' judges a row by other rows, or not always alike",
        ),
        ({"x": lambda rows: np.arange(rows.size) % 2 == 0}, "'x' judges a row by other rows"),
        ({"x": lambda rows: np.random.default_rng().random(rows.size) < 0.5}, "not always alike"),
    ],
)
def test_what_is_refused(tests: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        workloads.functions(SCHEMA, tests)


def test_mistakes_show_before_any_data_is_seen() -> None:
    with pytest.raises(ZeroDivisionError):
        workloads.functions(SCHEMA, {"x": lambda rows: 1 / 0})


@pytest.mark.parametrize("wrong", ["raise", "shape"])
def test_a_failure_on_the_data_does_not_show_them(wrong: str) -> None:
    """Neither what it says, nor of which kind it is, nor how many rows there were."""

    def test(rows: Any) -> Any:
        if (rows["age"] == 77).any() and rows.size == 3:
            if wrong == "shape":
                return rows["age"][rows["age"] == 77] > 1
            raise ValueError(f"secret {rows['age']}")
        return rows["age"] > 3

    workload = workloads.functions(SCHEMA, {"x": test})
    secret = ROWS[:3].copy()
    secret[0, 2] = 77
    with pytest.raises(WorkloadError) as caught:
        count(workload, secret, threads=1)
    assert str(caught.value) == (
        "function 'x' failed, or did not give a true or false for each row; "
        "try it on rows of your own"
    )
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def measured(workload: workloads.Workload, counts: list[float], rows: int) -> Measurements:
    groups = workload.num_groups
    return Measurements(
        workload,
        np.array(counts, dtype=np.float64),
        np.full(groups, 0.01),
        rows,
        ("",) * groups,
        private=False,
    )


def test_they_cannot_be_saved(tmp_path: Path) -> None:
    measurements = measured(workloads.functions(SCHEMA, TESTS), [1.0] * 5, 10)
    with pytest.raises(WorkloadError, match="Python functions cannot be saved"):
        measurements.save(tmp_path)


def test_a_search_for_them_alone_and_with_others() -> None:
    functions = workloads.functions(SCHEMA, TESTS)
    alone = evolve(measured(functions, [60, 10, 50, 20, 80], 100), GeneticSearch(rows=100))
    assert alone.loss == 0
    assert count(functions, alone.matrix).tolist() == [60, 10, 50, 20, 80]
    both = functions + workloads.categorical_marginals(SCHEMA, 2)
    table = alone.matrix
    again = measured(both, count(both, table).astype(float).tolist(), 100)
    reports: list[float] = []
    config = GeneticSearch(rows=100)
    mixed = evolve(again, config, seed=3, progress=lambda what, done, total: reports.append(done))
    assert reports[-1] == mixed.generations
    answers = count(both, mixed.matrix)
    assert np.abs(answers - again.counts).max() <= 3
    expected = float(((again.shares - answers / 100) ** 2 / again.variances).sum())
    assert mixed.loss == pytest.approx(expected, rel=1e-9)
    np.testing.assert_array_equal(mixed.matrix, evolve(again, config, seed=3).matrix)


def test_algorithm_1_has_none() -> None:
    measurements = measured(workloads.functions(SCHEMA, TESTS), [1.0] * 5, 10)
    with pytest.raises(ProjectionError, match="Algorithm 1 has no queries that are functions"):
        evolve(measurements, GeneticSearch.paper())
