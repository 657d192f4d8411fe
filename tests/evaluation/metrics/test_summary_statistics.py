"""Summary statistics agree with pandas, and are there for odd columns, too."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import private_gsd as gsd
from private_gsd import Boolean, Categorical, Date, Datetime, Integer, Real, Schema
from private_gsd.evaluation import evaluate, evaluation_page
from private_gsd.evaluation.metrics import summary_statistics
from private_gsd.evaluation.metrics.summary_statistics import (
    GROUP_ROWS,
    MONTHS,
    PERCENTILES,
    WEEKDAYS,
    compare_statistics,
)
from tests.evaluation.tables import check_page, matrix_of, sample_of

if TYPE_CHECKING:
    from private_gsd.evaluation.metrics.numeric_pairs import ComparedStatistic

SCHEMA = Schema(
    [
        Categorical("sex", values=["f", "m", "x"], nullable=True),
        Boolean("flag"),
        Categorical("town", values=[f"town {number}" for number in range(13)]),
        Integer("age", lower=0, upper=100, nullable=True),
        Real("pay", lower=-100, upper=1e5, decimals=2),
        Date("born", lower=dt.date(1900, 1, 1), upper=dt.date(2020, 1, 1), nullable=True),
        Datetime("seen", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2022, 1, 1)),
    ]
)
NUMERIC = ("age", "pay", "born", "seen")


def table(rows: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Encoded rows, with spikes and nulls."""
    rng = np.random.default_rng(seed)

    def holes(values: Any, share: float) -> Any:
        return np.where(rng.random(rows) < share, np.nan, values)

    age = np.where(rng.random(rows) < 0.2, 40, rng.integers(0, 101, rows))
    pay = np.where(rng.random(rows) < 0.3, 0, rng.lognormal(7, 1, rows).round(2))
    return matrix_of(
        holes(rng.integers(0, 3, rows), 0.1),
        rng.integers(0, 2, rows),
        rng.integers(0, 13, rows),
        holes(age, 0.15),
        pay,
        holes(rng.integers(-20_000, 18_000, rows), 0.2),
        rng.integers(1_577_836_800, 1_640_000_000, rows),
    )


def frame_of(matrix: np.ndarray[Any, np.dtype[np.float64]]) -> pd.DataFrame:
    frame = pd.DataFrame(matrix, columns=list(SCHEMA.names))
    frame["sex"] = frame["sex"].map({0: "f", 1: "m", 2: "x"}).fillna("null")
    frame["flag"] = frame["flag"].map({0: "False", 1: "True"})
    return frame


ROWS = table(900, 0), table(500, 1)
FRAMES = [frame_of(each) for each in ROWS]
FOUND = compare_statistics(SCHEMA, *(sample_of(each) for each in ROWS))
BY_NAME = {column.name: column for column in FOUND.columns}


def pairs_of(shares: tuple[ComparedStatistic, ...]) -> dict[str, tuple[Any, Any]]:
    return {each.name: (each.real, each.synthetic) for each in shares}


@pytest.mark.parametrize("name", NUMERIC)
def test_numbers_of_columns_are_those_of_pandas(name: str) -> None:
    numbers = pairs_of(BY_NAME[name].numbers)
    assert list(numbers) == ["mean", "standard deviation", *PERCENTILES]
    for place, frame in enumerate(FRAMES):
        column = frame[name]
        assert numbers["mean"][place] == pytest.approx(column.mean())
        assert numbers["standard deviation"][place] == pytest.approx(column.std())
        for percentile, at in PERCENTILES.items():
            slack = max(FRAMES[0][name].std() / 1000, 1.0 if name in ("born", "seen") else 0)
            assert numbers[percentile][place] == pytest.approx(column.quantile(at), abs=slack)


@pytest.mark.parametrize("name", NUMERIC)
def test_shares_of_values_are_those_of_pandas(name: str) -> None:
    column = BY_NAME[name]
    nulls = [float(frame[name].isna().mean()) for frame in FRAMES]
    if SCHEMA[name].nullable:
        assert column.nulls is not None
        assert [column.nulls.real, column.nulls.synthetic] == pytest.approx(nulls)
    else:
        assert column.nulls is None
    counts = [frame[name].value_counts() / len(frame) for frame in FRAMES]
    common = sorted({value for each in counts for value in each[each >= 0.02].index})
    expected = {
        f"{value:,.2f}" if name == "pay" else f"{value:,.0f}": tuple(
            pytest.approx(each.get(value, 0)) for each in counts
        )
        for value in common
    }
    assert pairs_of(column.values) == expected
    reals = [each.real for each in column.values]
    assert reals == sorted(reals, key=lambda share: -(share or 0))


def test_shares_of_zeros() -> None:
    for name in ("age", "pay"):
        zeros = BY_NAME[name].zeros
        assert zeros is not None
        expected = [float((frame[name] == 0).mean()) for frame in FRAMES]
        assert [zeros.real, zeros.synthetic] == pytest.approx(expected)
    assert BY_NAME["born"].zeros is BY_NAME["seen"].zeros is None
    above = Schema([Integer("n", lower=1, upper=9)])
    rows = sample_of(matrix_of([1, 2, 3]))
    assert compare_statistics(above, rows, rows).columns[0].zeros is None


@pytest.mark.parametrize(("name", "unit"), [("born", "D"), ("seen", "s")])
def test_weekdays_and_months_are_those_of_pandas(name: str, unit: Literal["D", "s"]) -> None:
    days = [pd.to_datetime(frame[name].dropna(), unit=unit, origin="unix").dt for frame in FRAMES]
    for names, found, expected in (
        (WEEKDAYS, BY_NAME[name].weekdays, [each.day_name() for each in days]),
        (MONTHS, BY_NAME[name].months, [each.month_name() for each in days]),
    ):
        assert tuple(each.name for each in found) == names
        for each in found:
            shares = [float((labels == each.name).mean()) for labels in expected]
            assert [each.real, each.synthetic] == pytest.approx(shares)
    assert BY_NAME["age"].weekdays == BY_NAME["age"].months == ()


def test_groups_are_those_of_pandas() -> None:
    found = {(group.column, group.by, group.value): group for group in FOUND.groups}
    assert len(found) == len(FOUND.groups) == len(NUMERIC) * (4 + 2)
    for by in ("sex", "flag"):
        for name in NUMERIC:
            expected = [
                frame.groupby(by)[name].agg(["mean", "median", "count"]) for frame in FRAMES
            ]
            for value in expected[0].index:
                group = found[name, by, str(value)]
                one, two = (each.loc[value] for each in expected)
                assert group.rows == (one["count"], two["count"])
                assert group.mean[1:3] == pytest.approx((one["mean"], two["mean"]))
                slack = max(FRAMES[0][name].std() / 1000, 1.0)
                medians = pytest.approx((one["median"], two["median"]), abs=slack)
                assert group.median[1:3] == medians
                spread = FRAMES[0][name].std()
                assert group.mean.standardised == pytest.approx(
                    (two["mean"] - one["mean"]) / spread
                )


def test_groups_with_the_largest_differences_come_first() -> None:
    sizes = [abs(group.mean.standardised or 0) for group in FOUND.groups]
    assert sizes == sorted(sizes, reverse=True)
    assert len({round(size, 12) for size in sizes}) > 1


def test_errors_are_means_of_sizes() -> None:
    def size(values: list[float | None]) -> float:
        return float(np.mean([abs(value) for value in values if value is not None]))

    means = [column.numbers[0] for column in FOUND.columns]
    groups = [group.mean for group in FOUND.groups]
    assert FOUND.errors.relative == pytest.approx(size([each.relative for each in means]))
    assert FOUND.errors.standardised == pytest.approx(size([each.standardised for each in means]))
    assert FOUND.errors.group_relative == pytest.approx(size([each.relative for each in groups]))
    assert FOUND.errors.group_standardised == pytest.approx(
        size([each.standardised for each in groups])
    )
    # Dates have no natural zero.
    assert [each.relative is None for each in means] == [False, False, True, True]


def test_identical_tables_differ_in_nothing() -> None:
    same = sample_of(ROWS[0])
    found = compare_statistics(SCHEMA, same, same)
    assert list(found.errors) == [0, 0, 0, 0]
    for column in found.columns:
        for each in (*column.numbers, *column.values, *column.weekdays, *column.months):
            assert each.difference == 0
            assert each.texts[2] == "0"
    assert all(group.mean.difference == group.median.difference == 0 for group in found.groups)


def test_dates_are_printed_as_dates() -> None:
    schema = SCHEMA.select(["born"])
    rows = sample_of(matrix_of([18_000, 18_001, 18_002]))
    [column] = compare_statistics(schema, rows, rows).columns
    texts = {each.name: each.texts[0] for each in column.numbers}
    assert texts["mean"] == texts["median"] == "2019-04-15"
    assert texts["standard deviation"] == "1.0 days"


@pytest.mark.parametrize(
    ("resolution", "weekdays", "months"), [("day", 7, 12), ("month", 0, 12), ("year", 0, 0)]
)
def test_coarse_dates_have_no_weekdays(resolution: str, weekdays: int, months: int) -> None:
    bounds = dt.date(1950, 1, 1), dt.date(2050, 1, 1)
    schema = Schema([Date("when", lower=bounds[0], upper=bounds[1], resolution=resolution)])
    rows = sample_of(matrix_of([3, 4, 5, 17]))
    [column] = compare_statistics(schema, rows, rows).columns
    assert (len(column.weekdays), len(column.months)) == (weekdays, months)
    if resolution == "month":
        assert [each.real for each in column.months][3:6] == [0.25, 0.25, 0.5]


@given(st.data())
def test_any_rows_give_finite_figures(data: st.DataObject) -> None:
    schema = Schema(
        [
            Boolean("flag", nullable=True),
            Integer("n", lower=-5, upper=5, nullable=True),
            Real("x", lower=-1e307, upper=1e308, nullable=True),
            Date("d", lower=dt.date(1, 1, 1), upper=dt.date(9999, 1, 1), nullable=True),
        ]
    )
    null = st.just(np.nan)
    row = st.tuples(
        st.sampled_from([0.0, 1.0]) | null,
        st.integers(-5, 5).map(float) | null,
        st.floats(-1e307, 1e308) | null,
        st.integers(-700_000, 2_900_000).map(float) | null,
    )
    tables = [
        sample_of(np.array(data.draw(st.lists(row, max_size=25)), float).reshape(-1, 4))
        for _ in range(2)
    ]
    found = compare_statistics(schema, *tables)
    assert len(found.columns) == 3
    for column in found.columns:
        everything = (*column.numbers, *column.values, *column.weekdays, *column.months)
        numbers = [number for each in everything for number in each[1:6] if number is not None]
        assert np.isfinite(numbers).all()
        for shares in (column.weekdays, column.months):
            if shares:
                assert sum(each.real or 0 for each in shares) == pytest.approx(1)
                assert sum(each.synthetic or 0 for each in shares) == pytest.approx(1)
    for group in found.groups:
        assert group.rows[0] >= GROUP_ROWS
        assert (group.rows[1] == 0) == (group.mean.synthetic is None)
    assert found.missing == sum(group.rows[1] == 0 for group in found.groups)


def test_odd_columns_are_evaluated_and_reported() -> None:
    schema = Schema(
        [
            Real("empty", lower=0, upper=1, nullable=True),
            Integer("still", lower=0, upper=100),
            Real("whole", lower=0, upper=10),
            Date("day", lower=dt.date(2020, 1, 1), upper=dt.date(2021, 1, 1), nullable=True),
            Datetime("moment", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2021, 1, 1)),
            Boolean("flag"),
        ]
    )
    rng = np.random.default_rng(0)

    def rows(number: int) -> pa.Table:
        moments = dt.datetime(2020, 1, 1)
        return pa.table(
            {
                "empty": pa.nulls(number, pa.float64()),
                "still": [7] * number,
                "whole": rng.integers(0, 11, number).astype(float),
                "day": pa.nulls(number, pa.date32()),
                "moment": [moments + dt.timedelta(hours=int(n)) for n in range(number)],
                "flag": rng.random(number) < 0.5,
            }
        )

    for real, synthetic in ((60, 40), (60, 1), (1, 60), (1, 1)):
        found = evaluate(rows(synthetic), rows(real), schema=schema, targets=[])
        empty, still, whole, day, moment = found.statistics.columns
        assert all(each.real is each.synthetic is None for each in empty.numbers)
        assert (empty.nulls is not None) and empty.nulls[1:3] == (1, 1)
        assert still.numbers[0][1:6] == (7, 7, 0, 0, None)
        assert still.numbers[1].real == (0 if real > 1 else None)
        assert day.weekdays == day.months == ()
        assert len(moment.weekdays) == 7
        assert all("." not in each.name for each in whole.values)
        json.loads(found.json())
        check_page(evaluation_page(found))


def test_a_group_without_synthetic_rows_is_named_first() -> None:
    schema = Schema([Boolean("flag"), Integer("n", lower=0, upper=9)])
    real = sample_of(matrix_of(np.arange(40) % 2, np.arange(40) % 7))
    synthetic = sample_of(matrix_of(np.zeros(40), np.arange(40) % 7))
    found = compare_statistics(schema, real, synthetic)
    assert found.missing == 1
    first = found.groups[0]
    assert (first.name, first.rows) == ("n, flag = True", (20, 0))
    assert first.mean.synthetic is None
    assert found.errors.group_relative == abs(found.groups[1].mean.relative or 0)


def test_small_groups_are_left_out() -> None:
    schema = Schema([Boolean("flag"), Integer("n", lower=0, upper=9)])
    flags = np.arange(50) < GROUP_ROWS - 1
    rows = sample_of(matrix_of(flags, np.arange(50) % 7))
    assert [group.value for group in compare_statistics(schema, rows, rows).groups] == ["False"]


def test_a_constant_real_column_has_no_unit() -> None:
    """A mean that differs from a constant is far off, however little it differs."""
    schema = Schema([Boolean("flag"), Real("x", lower=0, upper=9), Real("y", lower=0, upper=9)])
    flags = np.arange(40) % 2
    real = sample_of(matrix_of(flags, np.full(40, 2.0), np.arange(40) % 5))
    synthetic = sample_of(matrix_of(flags, np.full(40, 2.5), np.arange(40) % 4))
    found = compare_statistics(schema, real, synthetic)
    assert {group.column for group in found.groups[:2]} == {"x"}
    assert found.groups[0].mean.standardised is None
    assert found.groups[0].mean.relative == 0.25


def test_many_columns_make_groups_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_statistics, "COLUMNS", 4)
    rows = [sample_of(each) for each in ROWS]
    found = compare_statistics(SCHEMA, *rows)
    assert found.left_out == 3
    assert {group.column for group in found.groups} == {"age"}
    assert len(found.columns) == len(NUMERIC)


def test_tables_without_numbers_have_no_statistics() -> None:
    schema = Schema([Boolean("flag")])
    rows = sample_of(matrix_of([0, 1]))
    found = compare_statistics(schema, rows, rows)
    assert (found.columns, found.groups, found.errors) == ((), (), (None,) * 4)


def test_nulls_are_counted_over_all_rows() -> None:
    """The sample has no say in the share of nulls."""
    schema = Schema([Integer("n", lower=0, upper=9, nullable=True)])
    table = pa.table({"n": [None] * 700 + [1] * 300})
    found = gsd.evaluate(table, table, schema=schema, sample=100)
    nulls = found.statistics.columns[0].nulls
    assert nulls is not None
    assert (nulls.real, nulls.synthetic) == (0.7, 0.7)
