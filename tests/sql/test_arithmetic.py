"""Arithmetic: the numbers in the text of a predicate."""

from __future__ import annotations

import pytest

from private_gsd.errors import WorkloadError
from private_gsd.measurements.derived_statistics import Statistic
from private_gsd.sql.parsing import parse_predicate
from tests.sql.people import SCHEMA


@pytest.mark.parametrize("number", ["1e", "1e+", "1E-", "11e9.5", "-1e", "(1e)", "1e * 2"])
def test_numbers_that_are_none(number: str) -> None:
    for text in (
        *(f"age < {number}", f"code = {number}", f"pay + age > {number}", f"{number} < 3"),
        *(f"age BETWEEN {number} AND 3", f"code IN (3, {number})", f"coalesce(age, {number}) = 1"),
        *(f"seen > begun + {number}", f"abs({number}) = age"),
    ):
        with pytest.raises(WorkloadError):
            parse_predicate(SCHEMA, text)
        for statistic in (f"mean(age) WHERE {text}", f"share({text})"):
            with pytest.raises(WorkloadError):
                Statistic.read(SCHEMA, statistic)
    with pytest.raises(WorkloadError, match=r"at character 7: '1e' is not a number"):
        parse_predicate(SCHEMA, "age < 1e")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("age < 0.1 + 0.2", "age < 0.3"),
        ("age < -(3 - 5) * 4", "age < 8"),
        ("age < abs(-7) / 2", "age < 3.5"),
        ("age < coalesce(NULL, 5)", "age < 5"),
        ("age < 1 / 0", "age < 1e9"),
        ("begun < DATE '2021-01-01' + 3", "begun < '2021-01-04'"),
        ("begun < DATE '2021-01-01' + INTERVAL 1 week", "begun < '2021-01-08'"),
        ("seen < TIMESTAMP '2021-01-01 10:00:00' - INTERVAL 2 hours", "seen < '2021-01-01 08:00'"),
    ],
)
def test_constants_are_computed(text: str, same: str) -> None:
    assert parse_predicate(SCHEMA, text) == parse_predicate(SCHEMA, same)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("begun + ended > 3", "a moment and a moment cannot be joined with +"),
        ("-begun > ended", "a moment has no sign"),
        ("abs(begun) > ended", "a moment has no sign"),
        ("begun > age", "a moment (begun) cannot be compared with a number (age)"),
        ("seen - begun > 3", "a span of time (seen - begun) cannot be compared with a number (3)"),
        ("coalesce(age, begun) > 3", "must be of one sort"),
        ("begun < DATE '2021-01-01' + INTERVAL 1 month", "an interval is of weeks, days"),
        ("job + 1 > 3", "column 'job' is categorical, not a number"),
    ],
)
def test_what_is_measured_must_agree(text: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_predicate(SCHEMA, text)
    assert message in str(caught.value)
