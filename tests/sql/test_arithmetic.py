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
