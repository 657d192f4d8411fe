"""Spelling: values as the text that the schema reads back as the same values."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from private_gsd.data.encoding import Encoder
from private_gsd.data.encoding.spelling import check_spelling, spelled, spelled_types
from private_gsd.errors import SchemaError
from private_gsd.schema import Boolean, Categorical, Column, Date, Datetime, Integer, Schema

YEARS: Any = {"lower": dt.date(900, 1, 1), "upper": dt.date(2030, 12, 31)}
MOMENTS: Any = {"lower": dt.datetime(2000, 1, 1), "upper": dt.datetime(2030, 1, 1)}
GOOD: list[tuple[Column, list[Any], list[Any]]] = [
    (Date("x", format="%d/%m/%Y", **YEARS), [dt.date(999, 2, 1)], ["01/02/0999"]),
    (Datetime("x", format="%Y%m%d %H:%M:%S", **MOMENTS), [dt.datetime(2020, 1, 2, 3, 4, 5)],
     ["20200102 03:04:05"]),
    (Integer("x", lower=0, upper=9, nullable=True, null_values=("-9", "N")), [3, None],
     ["3", "-9"]),
    (Integer("x", lower=0, upper=9, nullable=True), [3, None], [3, None]),
    (Categorical("x", values=("a", "b"), nullable=True, null_values=("?",)), ["b", None],
     ["b", "?"]),
    (Boolean("x"), [True, False], [True, False]),
]  # fmt: skip


@pytest.mark.parametrize(("column", "values", "texts"), GOOD)
def test_what_is_written_is_read_again(column: Column, values: list[Any], texts: list[Any]) -> None:
    schema = Schema([column])
    check_spelling(schema)
    batch = pa.record_batch({"x": pa.array(values, column.arrow_type)})
    found = spelled(batch, schema)
    assert found.schema == spelled_types(schema)
    assert found["x"].to_pylist() == texts
    written = pa.record_batch({"x": found["x"].cast(pa.string()).fill_null("")})
    encoder = Encoder(schema)
    assert encoder.decode(encoder.encode(written))["x"].to_pylist() == values


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Integer("x", lower=-10, upper=9, nullable=True, null_values=("-9",)), "be read as null"),
        (Date("x", format="%m/%Y", **YEARS), "be read as another value"),
        (Integer("x", lower=0, upper=9, nullable=True, null_values=()), "a null has no text"),
        (Integer("a\rb", lower=0, upper=9), "a carriage return"),
    ],
)
def test_what_cannot_be_read_again_is_refused(column: Column, message: str) -> None:
    with pytest.raises(SchemaError, match="cannot be written as text") as caught:
        check_spelling(Schema([column]))
    assert message in str(caught.value)
