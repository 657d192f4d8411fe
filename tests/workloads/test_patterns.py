"""Patterns: classes by their definition, against whole numbers and dates of Python."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Categorical, Date, Datetime, Integer, Real, Schema
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.schema import Numeric
from private_gsd.workloads import Workload
from private_gsd.workloads.patterns import Pattern, Patterns, patterns_of
from private_gsd.workloads.serialisation import dump_workload, load_workload
from tests.strategies import columns, encoded_values

Vector = NDArray[np.float64]

# How many units of a resolution there are in a second.
PER_SECOND = {"second": 1, "millisecond": 1000, "microsecond": 1_000_000}


def moments(resolution: str, years: int = 8) -> Datetime:
    return Datetime(
        "x",
        lower=dt.datetime(1967, 5, 1),
        upper=dt.datetime(1967 + years, 5, 1),
        resolution=resolution,
        nullable=True,
    )


COLUMNS: list[Numeric] = [
    Integer("x", lower=0, upper=1_000_000),
    Integer("x", lower=-20_000, upper=2000, nullable=True),
    Integer("x", lower=-(2**53) + 1, upper=2**53 - 1),
    Real("x", lower=-500, upper=50_000, decimals=2),
    Real("x", lower=0, upper=5000, decimals=0, nullable=True),
    Real("x", lower=-1, upper=1, decimals=6),
    Real("x", lower=0, upper=1),
    Real("x", lower=-3e6, upper=7e9, nullable=True),
    Real("x", lower=1e-9, upper=3e-9),
    Date("x", lower=dt.date(1905, 2, 3), upper=dt.date(2031, 1, 1), nullable=True),
    Date("x", lower=dt.date(1600, 1, 1), upper=dt.date(2500, 1, 1)),
    *(moments(resolution) for resolution in PER_SECOND),
]


def of(column: Numeric) -> Patterns:
    """All patterns of a column."""
    schema = Schema([column])
    return Patterns(schema, patterns_of(schema))


def divides(pattern: Pattern, column: Numeric, value: float) -> int:
    """The class of roundness of a value, by whole numbers and fractions of Python."""
    if isinstance(column, Datetime):
        step, second = int(value), PER_SECOND[column.resolution]
        numbers = [10**power for power in range(7) if 10**power < second]
        numbers += [second * each for each in (1, 60, 300, 900, 1800, 3600, 86_400)]
    elif isinstance(column, Integer):
        step, numbers = int(value), ones_and_fives(int(column.upper) - int(column.lower))
    else:
        assert isinstance(column, Real)
        if column.decimals is not None:
            step = int(Decimal(repr(value)).scaleb(column.decimals))
            span = Decimal(repr(column.upper)) - Decimal(repr(column.lower))
            numbers = ones_and_fives(int(span.scaleb(column.decimals)))
        else:
            grid = pattern.grid
            place = value * grid.per_one
            near = abs(place - round(place)) < 1e-6 + 4e-16 * abs(place)
            step = round(place) if near else math.floor(place)
            numbers = [10**power for power in range(16) if 2 * 10**power <= grid.last - grid.first]
    return max(number for number, each in enumerate(numbers) if step % each == 0)


def ones_and_fives(span: int) -> list[int]:
    """1, 5, 10, 50, 100, … up to half of a span."""
    found = [each * 10**power for power in range(17) for each in (1, 5)]
    return [each for each in found if 2 * each <= span]


def day_of(column: Numeric, value: float) -> dt.date:
    """The day of an encoded value."""
    if isinstance(column, Date):
        return dt.date(1970, 1, 1) + dt.timedelta(days=int(value))
    assert isinstance(column, Datetime)
    micro = int(value) * (1_000_000 // PER_SECOND[column.resolution])
    return (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micro)).date()


def class_of(pattern: Pattern, column: Numeric, value: float) -> int:
    """The class of a value, by definition."""
    if math.isnan(value):
        return pattern.num_classes
    if pattern.kind == "round":
        return divides(pattern, column, value)
    day = day_of(column, value)
    return day.weekday() if pattern.kind == "weekday" else day.month - 1


@st.composite
def values_of(draw: st.DrawFn, column: Numeric) -> Vector:
    """Values of a column, many of them round, and 0, both bounds and null among them."""
    low, high = column.bounds
    found = draw(st.lists(encoded_values(column), min_size=1, max_size=20))
    if not isinstance(column, Real):
        powers = st.integers(0, 12).map(lambda power: 10**power) | st.sampled_from([3600, 86_400])
        factors = st.integers(-2000, 2000)
        found += [float(a * b) for a, b in draw(st.lists(st.tuples(powers, factors)))]
    elif column.decimals is not None:
        places = st.integers(-column.decimals, 3)
        found += [
            float(Decimal(a).scaleb(b))
            for a, b in draw(st.lists(st.tuples(st.integers(-200, 200), places)))
        ]
    kept = [each for each in [*found, 0.0] if math.isnan(each) or low <= each <= high]
    return np.array([*kept, low, high])


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@given(data=st.data())
def test_classes_are_those_of_the_definition(column: Numeric, data: Any) -> None:
    """And what is counted is how many rows each class has."""
    family = of(column)
    values = data.draw(values_of(column))
    expected = []
    for pattern in family.patterns:
        mine = [class_of(pattern, column, value) for value in values.tolist()]
        assert pattern.cells(values).tolist() == mine
        expected += np.bincount(mine, minlength=pattern.size).tolist()
    workload = Workload(family.schema, (family,))
    assert count(workload, values[:, None], threads=1).tolist() == expected
    assert family.met(values[:, None]).sum(axis=0).tolist() == expected


@given(data=st.data())
def test_every_row_is_in_exactly_one_class_of_each_pattern(data: Any) -> None:
    """Of any column that there may be."""
    column = data.draw(columns("x", ("integer", "real", "date", "datetime")))
    family = of(column)
    values = np.array(data.draw(st.lists(encoded_values(column), min_size=1, max_size=20)))
    for pattern in family.patterns:
        classes = pattern.cells(values)
        assert ((classes >= 0) & (classes < pattern.size)).all()
        np.testing.assert_array_equal(classes == pattern.num_classes, np.isnan(values))
    if family.patterns:
        met = family.met(values[:, None])
        ends = family.group_sizes.cumsum()
        for first, last in zip(ends - family.group_sizes, ends, strict=True):
            assert (met[:, first:last].sum(axis=1) == 1).all()


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@given(data=st.data())
def test_a_row_changes_no_more_than_the_sensitivity(column: Numeric, data: Any) -> None:
    family = of(column)
    workload = Workload(family.schema, (family,))
    values = data.draw(values_of(column))
    other = values.copy()
    other[0] = data.draw(encoded_values(column))
    for neighbours, pair in (("replace-one", other), ("add-remove", values[1:])):
        changes = count(workload, values[:, None]) - count(workload, pair[:, None])
        squares = np.add.reduceat(changes**2, workload.offsets[:-1])
        assert (squares <= family.squared_sensitivities(neighbours)).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_the_sensitivity_is_attained(column: Numeric) -> None:
    """By a row that moves from one class to another, and by a row that comes."""
    family = of(column)
    low, high = column.bounds
    values = np.linspace(low, high, 1000) if isinstance(column, Real) else np.arange(low, low + 99)
    for number, pattern in enumerate(family.patterns):
        workload = Workload(family.schema, (family.select(np.array([number])),))
        classes = pattern.cells(values)
        if len(set(classes.tolist())) == 1:  # the first moments are of one day
            values = np.array([low + (high - low) * each // 99 for each in range(99)])
            classes = pattern.cells(values)
        one = values[0]
        other = values[classes != classes[0]][0]
        for neighbours, tables in (
            ("replace-one", ([one, one], [one, other])),
            ("add-remove", ([one], [one, other])),
        ):
            before, after = (count(workload, np.array(each)[:, None]) for each in tables)
            square = ((after - before) ** 2).sum()
            assert square == workload.squared_sensitivities(neighbours)[0]  # type: ignore[arg-type]


@given(days=st.lists(st.dates(dt.date(1600, 1, 1), dt.date(2500, 1, 1)), min_size=1))
def test_weekdays_and_months_are_those_of_the_calendar(days: list[dt.date]) -> None:
    """Before 1970 too, and in leap years."""
    family = of(COLUMNS[10])
    week, month = family.patterns
    steps = np.array([(day - dt.date(1970, 1, 1)).days for day in days])
    assert week.classes(steps).tolist() == [day.weekday() for day in days]
    assert month.classes(steps).tolist() == [day.month - 1 for day in days]


@pytest.mark.parametrize("resolution", PER_SECOND)
@given(data=st.data())
def test_days_of_moments_are_those_of_the_calendar(resolution: str, data: Any) -> None:
    column = moments(resolution)
    drawn = data.draw(st.lists(st.datetimes(column.lower, column.upper), min_size=1))
    # The last moment of a day before 1970, which a division towards 0 would move.
    drawn.append(dt.datetime(1968, 2, 29, 23, 59, 59))
    units = np.array(drawn, dtype="datetime64[us]").astype(f"datetime64[{column.unit}]")
    _, week, month = of(column).patterns
    values = units.astype(np.int64).astype(np.float64)
    assert week.cells(values).tolist() == [each.weekday() for each in drawn]
    assert month.cells(values).tolist() == [each.month - 1 for each in drawn]


def test_round_numbers_each_divide_the_next() -> None:
    for column in COLUMNS:
        for pattern in of(column).patterns:
            if pattern.kind == "round":
                assert pattern.divisors[0] == 1
                for one, other in zip(pattern.divisors, pattern.divisors[1:], strict=False):
                    assert other % one == 0
                    assert other > one


def test_words() -> None:
    schema = Schema(
        [
            Integer("pay", lower=0, upper=5000, nullable=True),
            Real("rate", lower=0, upper=100, decimals=2),
            Date("day", lower=dt.date(2000, 1, 1), upper=dt.date(2004, 1, 1)),
        ]
    )
    family = Patterns(schema, patterns_of(schema))
    assert [family.describe(group) for group in range(4)] == [
        "pay (how round)",
        "rate (how round)",
        "day (weekdays)",
        "day (months)",
    ]
    assert [family.query(0, cell) for cell in (0, 1, 6, 7)] == [
        "pay is a multiple of 1, no more",
        "pay is a multiple of 5, no more",
        "pay is a multiple of 1000, no more",
        "pay is null",
    ]
    assert family.query(1, 1) == "rate is a multiple of 0.05, no more"
    assert [family.query(2, 0), family.query(2, 6)] == [
        "weekday of day is 1",
        "weekday of day is 7",
    ]
    assert family.query(3, 11) == "month of day is 12"


def test_a_saved_family_is_the_same() -> None:
    for column in COLUMNS:
        family = of(column)
        documents, arrays = dump_workload(Workload(family.schema, (family,)))
        assert not arrays
        [again] = load_workload(family.schema, json.loads(json.dumps(documents)), {}).families
        assert isinstance(again, Patterns)
        assert again.patterns == family.patterns
        assert dump_workload(Workload(family.schema, (again,)))[0] == documents


@pytest.mark.parametrize(
    "patterns",
    [
        [],
        [[2, "round"]],
        [[-1, "round"]],
        [[0, "round"]],  # a text
        [[1, "weekday"]],  # a number
        [[1, "century"]],
        [[1]],
        [[1, "round", "round"]],
        [[1, "round"], [1, "month"]],
        [[1.0, "round"]],
        [[True, "round"]],
        [["x", "round"]],
        [[[1], "round"]],
        [1],
        "round",
    ],
    ids=repr,
)
def test_bad_documents_are_refused(patterns: Any) -> None:
    schema = Schema([Categorical("a", values=["x"]), Integer("n", lower=0, upper=5000)])
    with pytest.raises(WorkloadError, match="not sound: patterns"):
        load_workload(schema, [{"family": "patterns", "patterns": patterns}], {})


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        (Integer("x", lower=0, upper=999), []),
        (Integer("x", lower=0, upper=1000), ["round"]),
        (Integer("x", lower=-500, upper=500), ["round"]),
        (Real("x", lower=0, upper=99.9, decimals=1), []),
        (Real("x", lower=0, upper=100, decimals=1), ["round"]),
        (Real("x", lower=0, upper=1e-300), []),
        (Real("x", lower=0, upper=1), ["round"]),
        (Date("x", lower=dt.date(2000, 1, 1), upper=dt.date(2000, 2, 29)), []),
        (Date("x", lower=dt.date(2000, 1, 1), upper=dt.date(2000, 3, 1)), ["weekday"]),
        (Date("x", lower=dt.date(2000, 1, 1), upper=dt.date(2002, 3, 10)), ["weekday"]),
        (Date("x", lower=dt.date(2000, 1, 1), upper=dt.date(2002, 3, 11)), ["weekday", "month"]),
        (
            Datetime("x", lower=dt.datetime(2000, 1, 1), upper=dt.datetime(2000, 2, 29, 23)),
            ["round"],
        ),
        (
            Datetime("x", lower=dt.datetime(2000, 1, 1), upper=dt.datetime(2000, 3, 1)),
            ["round", "weekday"],
        ),
        (
            Datetime("x", lower=dt.datetime(2000, 1, 1, 1), upper=dt.datetime(2000, 1, 1, 1, 16)),
            [],
        ),
        (Categorical("x", values=[str(value) for value in range(2000)]), []),
    ],
    ids=repr,
)
def test_which_patterns_a_column_may_have(column: Any, kinds: list[str]) -> None:
    assert [pattern.kind for pattern in patterns_of(Schema([column]))] == kinds


@pytest.mark.parametrize(("resolution", "kinds"), [("month", ["month"]), ("year", [])])
def test_dates_by_month_or_year_have_no_weekdays(resolution: str, kinds: list[str]) -> None:
    """Their steps are no days."""
    column = Date("x", lower=dt.date(1800, 1, 1), upper=dt.date(2020, 1, 1), resolution=resolution)
    assert [pattern.kind for pattern in patterns_of(Schema([column]))] == kinds


def test_months_of_a_date_by_month() -> None:
    column = Date("x", lower=dt.date(1960, 3, 1), upper=dt.date(2020, 1, 1), resolution="month")
    [pattern] = patterns_of(Schema([column]))
    months = np.array([-118, -1, 0, 11, 12, 600])  # since January 1970
    assert pattern.classes(months).tolist() == [2, 11, 0, 11, 0, 0]


@pytest.mark.parametrize(
    ("resolution", "divisors"),
    [("minute", (1, 5, 15, 30, 60, 1440)), ("hour", (1, 24))],
)
def test_moments_by_minute_or_hour_are_round_by_the_clock(
    resolution: str, divisors: tuple[int, ...]
) -> None:
    column = Datetime(
        "x", lower=dt.datetime(2000, 1, 1), upper=dt.datetime(2003, 1, 1), resolution=resolution
    )
    found = patterns_of(Schema([column]))
    assert [pattern.kind for pattern in found] == ["round", "weekday", "month"]
    assert found[0].divisors == divisors
    per_day = divisors[-1]
    days = np.arange(400) * per_day + per_day // 2
    expected = [(dt.date(1970, 1, 1) + dt.timedelta(day)).weekday() for day in range(400)]
    assert found[1].classes(days).tolist() == expected


def test_moments_by_day_are_like_dates() -> None:
    column = Datetime(
        "x", lower=dt.datetime(2000, 1, 1), upper=dt.datetime(2003, 1, 1), resolution="day"
    )
    assert [each.kind for each in patterns_of(Schema([column]))] == ["weekday", "month"]
