"""Numbers and moments are rounded and printed with sensible digits."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Date, Datetime, Integer, Real
from private_gsd.evaluation.metrics.number_formats import FINENESS, format_of
from private_gsd.schema import Column

AGE = Integer("age", lower=0, upper=120)
RENT = Real("rent", lower=0, upper=1e4, decimals=1)
ANY = Real("any", lower=-1e300, upper=1e300)


def moments(resolution: str) -> Datetime:
    return Datetime(
        "moment",
        lower=dt.datetime(1900, 1, 1),
        upper=dt.datetime(2100, 1, 1),
        resolution=resolution,
    )


def days(resolution: str) -> Date:
    return Date("day", lower=dt.date(1900, 1, 1), upper=dt.date(2100, 1, 1), resolution=resolution)


@pytest.mark.parametrize(
    ("column", "spread", "value", "text"),
    [
        (AGE, 22.0, 38.5172, "38.52"),
        (AGE, 22.0, 37.0, "37"),
        (AGE, 22.0, 37.001, "37.00"),
        (AGE, 30_000.0, 31_234.5, "31,230"),
        (AGE, 0.0, 7.0, "7"),
        (AGE, None, 7.0, "7"),
        (RENT, 400.0, 812.25, "812.2"),
        (RENT, 7.0, 32.5, "32.5"),
        (RENT, 7.0, 32.5123, "32.512"),
        (ANY, 1e-20, 3e-20, "3e-20"),
        (ANY, 1e200, 1.5e200, "1.5e+200"),
        (ANY, 2.0, -0.0001, "0.000"),
        (ANY, None, 0.1, "0.1"),
    ],
)
def test_numbers(column: Column, spread: float | None, value: float, text: str) -> None:
    assert format_of(column, spread).place(value) == text
    assert format_of(column, spread).spread(value) == text


@pytest.mark.parametrize(
    ("spread", "value", "text"),
    [
        (22.0, 1.5, "+1.50"),
        (22.0, -1.0, "-1"),
        (22.0, 0.001, "0"),
        (22.0, 0.999, "+1.00"),
        (None, 0.0, "0"),
    ],
)
def test_differences_of_numbers_have_a_sign(spread: float | None, value: float, text: str) -> None:
    assert format_of(AGE, spread).difference(value) == text


@pytest.mark.parametrize(
    ("column", "spread", "value", "place", "difference"),
    [
        (days("day"), 8000.0, 18262.4, "2020-01-01", "+18,262.4 days"),
        (days("day"), 0.0, 18262.0, "2020-01-01", "+18,262.0 days"),
        (days("month"), 8.0, 600.2, "2020-01", "+600.2 months"),
        (days("year"), 8.0, 50.2, "2020", "+50.2 years"),
        (moments("second"), 2e8, 86400 * 18262.4, "2020-01-01", "+18,262.4 days"),
        (moments("second"), 2e6, 86400 * 18262.5, "2020-01-01 12:00", "+18,262.5 days"),
        (moments("second"), 50.0, 45.0, "1970-01-01 00:00:45", "+45.0 seconds"),
        (moments("second"), 50_000.0, 7200.0, "1970-01-01 02:00:00", "+2.0 hours"),
        (moments("hour"), 3.0, 2.2, "1970-01-01 02:00", "+2.2 hours"),
        (
            moments("microsecond"),
            2e3,
            1500.0,
            "1970-01-01 00:00:00.001500",
            "+1,500.0 microseconds",
        ),
        (moments("day"), 3.0, 2.2, "1970-01-03", "+2.2 days"),
    ],
)
def test_moments(
    column: Date | Datetime, spread: float, value: float, place: str, difference: str
) -> None:
    form = format_of(column, spread)
    assert form.place(value) == place
    assert form.difference(value) == difference
    assert form.difference(-value) == difference.replace("+", "-")
    assert form.spread(value) == difference[1:]
    assert form.difference(0.0) == "0"


COLUMNS = [ANY, AGE, RENT, days("day"), days("month"), moments("second"), moments("hour")]


@given(
    st.sampled_from(COLUMNS),
    st.floats(1e-3, 1e9),
    st.floats(-1e9, 1e9),
)
def test_rounding_changes_little_and_nothing_the_second_time(
    column: Column, spread: float, value: float
) -> None:
    form = format_of(column, spread)
    rounded = form.rounded(value)
    unit = 1.0 if isinstance(column, Date | Datetime) else 0.0
    slack = 1e-15 * abs(value)
    assert abs(rounded - value) <= max(unit, spread / FINENESS) / 2 * (1 + 1e-9) + slack
    assert form.rounded(rounded) == pytest.approx(rounded, rel=1e-15)
    if unit:
        assert form.place(rounded) == form.place(value)
    else:
        assert float(form.place(value).replace(",", "")) == pytest.approx(rounded, rel=1e-9)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(5e-324, 1e308))
def test_all_floats_are_printed(value: float, spread: float) -> None:
    form = format_of(ANY, spread)
    assert np.isfinite(form.rounded(value))
    for text in (form.place(value), form.spread(abs(value)), form.difference(value)):
        assert 0 < len(text) < 40
        assert "nan" not in text
