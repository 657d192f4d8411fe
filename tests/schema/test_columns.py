"""Every way a column can be wrong has a message that names the column and what was expected."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from private_gsd import Boolean, Categorical, Date, Integer, Real
from private_gsd.errors import SchemaError

DAY = dt.date(2020, 1, 1)


@pytest.mark.parametrize("name", ["", "  ", 3])
def test_a_name_must_be_text(name: Any) -> None:
    with pytest.raises(SchemaError, match="a column name must be text that is not blank"):
        Boolean(name)


def test_columns_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Integer("x", lower=0, upper=1).lower = -5  # type: ignore[misc]


def test_domains_read_well() -> None:
    assert Integer("x", lower=0, upper=120).expected == "integer 0 to 120"
    assert Real("x", lower=0, upper=1.5, decimals=2).expected == "real 0 to 1.5, 2 decimals"
    assert Categorical("x", values=list(range(9))).domain == "0, 1, 2, 3, 4, … (9 values)"
    assert Boolean("x").expected == "boolean true or false"
    day = Date("x", lower=DAY, upper=dt.date(2021, 1, 1), resolution="month")
    assert day.expected == "date 2020-01-01 to 2021-01-01 by month"
