"""The keys of a schema file: from keys to a column and back."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from private_gsd import Boolean, Categorical, Column, Date, Datetime, Integer, Real
from private_gsd.errors import SchemaError
from private_gsd.schema.keys import column_from_dict, column_to_dict

DAY = dt.date(2020, 1, 1)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "kind is missing; it must be one of categorical, integer"),
    ({"kind": "float"}, "unknown kind 'float'; expected one of categorical, integer, real"),
    ({"kind": "intger"}, "did you mean 'integer'?"),
    ({"kind": "integer"}, "lower and upper missing; a integer column needs lower and upper"),
    ({"kind": "integer", "lower": 1}, "upper missing"),
    ({"kind": "integer", "lower": 1, "upper": 1}, "lower (1) must be less than upper (1)"),
    ({"kind": "integer", "lower": 9, "upper": 1}, "lower (9) must be less than upper (1)"),
    ({"kind": "integer", "lower": 0.5, "upper": 1}, "lower must be a whole number, not 0.5"),
    ({"kind": "integer", "lower": True, "upper": 2}, "lower must be a whole number, not True"),
    ({"kind": "integer", "lower": 0, "upper": 2**53}, "is beyond ±(2^53 - 1)"),
    ({"kind": "integer", "lower": 0, "upper": 1, "min": 0}, "unknown key 'min'"),
    ({"kind": "integer", "lower": 0, "uper": 1}, "did you mean 'upper'?"),
    ({"kind": "real", "lower": 1, "upper": 0}, "lower (1.0) must be less than upper (0.0)"),
    ({"kind": "real", "lower": float("nan"), "upper": 0}, "lower must be finite, not nan"),
    ({"kind": "real", "lower": 0, "upper": float("inf")}, "upper must be finite, not inf"),
    ({"kind": "real", "lower": "0", "upper": 1}, "lower must be a number, not '0'"),
    ({"kind": "real", "lower": -1.7e308, "upper": 1.7e308}, "span from lower to upper"),
    ({"kind": "real", "lower": 0, "upper": 1, "decimals": -1}, "whole number from 0 to 15"),
    ({"kind": "real", "lower": 0.05, "upper": 1, "decimals": 1}, "more than 1 decimals"),
    ({"kind": "real", "lower": 0, "upper": 1e12, "decimals": 9}, "finer than a float64"),
    ({"kind": "categorical"}, "values missing"),
    ({"kind": "categorical", "values": []}, "values is empty"),
    ({"kind": "categorical", "values": "ab"}, "values must be a list, not 'ab'"),
    ({"kind": "categorical", "values": ["a", "b", "a"]}, "value 'a' is listed twice"),
    ({"kind": "categorical", "values": ["a", 1]}, "all texts, all integers or all booleans"),
    ({"kind": "categorical", "values": [0.5]}, "write numbers with decimals as texts"),
    ({"kind": "categorical", "values": [2**63]}, "must fit in 64 bits"),
    ({"kind": "categorical", "values": ["N"], "null_values": ["N"]}, "both one of values and"),
    ({"kind": "categorical", "values": ["a"], "other": "b"}, "other ('b') must be one of values"),
    ({"kind": "date", "lower": DAY, "upper": "soon"}, "upper must be a date such as 2020-12-31"),
    ({"kind": "date", "lower": DAY, "upper": DAY}, "must be less than upper"),
    (
        {"kind": "date", "lower": DAY, "upper": "2020-03-01", "resolution": "week"},
        "resolution must be one of day, month, year, not 'week'",
    ),
    (
        {"kind": "date", "lower": DAY, "upper": "2020-03-01", "resolution": "year"},
        "lower and upper fall in the same year",
    ),
    ({"kind": "date", "lower": DAY, "upper": "2021-01-01", "format": "iso"}, "strptime pattern"),
    ({"kind": "datetime", "lower": DAY, "upper": 5}, "upper must be a date and time such as"),
    (
        {"kind": "datetime", "lower": "2020-01-01T00:00:00Z", "upper": "2021-01-01"},
        "has a time zone and the column none",
    ),
    (
        {"kind": "datetime", "lower": DAY, "upper": "2021-01-01", "timezone": "Mars/Base"},
        "timezone must be an IANA name",
    ),
    (
        {"kind": "datetime", "lower": "0001-01-01", "upper": DAY, "resolution": "microsecond"},
        "too fine a resolution for these bounds",
    ),
    ({"kind": ["x"]}, "unknown kind ['x']"),
    ({"kind": "real", "lower": 0, "upper": 10**400}, "upper must be finite"),
    ({"kind": "categorical", "values": {"a": 1}}, "values must be a list"),
    ({"kind": "categorical", "values": ["a"], "other": ["a"]}, "must be one of values"),
    ({"kind": "date", "lower": DAY, "upper": "2022-01-01", "resolution": ["day"]}, "resolution"),
    ({"kind": "date", "lower": DAY, "upper": "2022-01-01", "format": "%"}, "strptime pattern"),
    ({"kind": "date", "lower": DAY, "upper": "2022-01-01", "format": 5}, "strptime pattern"),
    ({"kind": "date", "lower": DAY, "upper": "2022-01-01", "format": "%%"}, "strptime pattern"),
    *(
        ({"kind": "datetime", "lower": DAY, "upper": "2022-01-01", "format": pattern}, message)
        for pattern, message in (
            ("%Y%Y", "format '%Y%Y' says the year twice"),
            ("%d.%m.%y (%Y)", "says the year twice"),
            ("%m %B %Y", "says the month twice"),
            ("%Y-%j %d", "says the day twice"),
            ("%H %I", "says the hour twice"),
            ("%c %S", "says the second twice"),
            ("%x %X %d", "says the day twice"),
            ("%H:%M %p", "has %p, which goes with %I"),
            ("%Y-%m-%d %z", "has %z, and the column has no timezone"),
            ("%Y %V", "strptime pattern"),
            ("%Y\0", "strptime pattern"),
        )
    ),
    (
        {
            "kind": "datetime",
            "lower": "0001-01-01T00:00:00+14:00",
            "upper": DAY,
            "timezone": "UTC",
        },
        "is too early or too late",
    ),
    ({"kind": "boolean", "nullable": 1}, "nullable must be true or false, not 1"),
    ({"kind": "boolean", "null_values": "N"}, "null_values must be a list, not 'N'"),
    ({"kind": "boolean", "null_values": [1]}, "null_values must be a list of texts"),
    ({"kind": "boolean", "description": 3}, "description must be text"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_keys(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as error:
        column_from_dict("pay", keys)
    assert "column 'pay'" in str(error.value)
    assert message in str(error.value)


def test_keys_must_be_a_table() -> None:
    with pytest.raises(SchemaError, match="column 'x': expected a table of keys"):
        column_from_dict("x", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (Categorical("x", values=["a"]), pa.string()),
        (Categorical("x", values=[1]), pa.int64()),
        (Categorical("x", values=[True]), pa.bool_()),
        (Boolean("x"), pa.bool_()),
        (Integer("x", lower=0, upper=1), pa.int64()),
        (Real("x", lower=0, upper=1), pa.float64()),
        (Date("x", lower=DAY, upper=dt.date(2021, 1, 1)), pa.date32()),
        (Datetime("x", lower="2020-01-01", upper="2021-01-01"), pa.timestamp("us")),  # type: ignore[arg-type]
    ],
)
def test_each_kind_has_an_arrow_type_and_survives_its_keys(
    column: Column, kind: pa.DataType
) -> None:
    assert column.arrow_type == kind
    assert column_from_dict("x", column_to_dict(column)) == column
    assert hash(column) == hash(column_from_dict("x", column_to_dict(column)))
