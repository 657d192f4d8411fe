"""Problems: values outside the schema, with a few examples of each column."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from private_gsd import Boolean, Categorical, Column, Encoder, Integer, Real, Schema
from private_gsd.errors import DataError
from tests.data.encoding.columns import (
    AGE,
    CODE,
    DAY,
    FLAG,
    MOMENT,
    NAN,
    NOON_UTC,
    PAY,
    TEXT,
    WRITTEN,
    encode,
)


def test_examples_of_dates_that_python_has_not() -> None:
    far = pa.array([213_503_982], pa.int32()).cast(pa.date32())
    with pytest.raises(DataError, match="1 value is not date"):
        encode(DAY, far)


REFUSED: list[tuple[Column, Any, str]] = [
    (AGE, [121, -1, 5], "2 values are not integer 0 to 120: -1, 121"),
    (AGE, [1.5], "1 value is not integer 0 to 120: 1.5"),
    (AGE, [float("inf")], "1 value is not integer 0 to 120: inf"),
    (AGE, ["12x", "3"], "1 value is not integer 0 to 120: '12x'"),
    (AGE, ["1,5"], "'1,5'"),
    (AGE, [500 + i for i in range(9)], "9 values are not integer 0 to 120: e.g. 500, 501, 502"),
    (PAY, ["1" * 80], "1" * 38 + "…"),
    (TEXT, ["a", "b"], "1 value is not categorical 'a', '1', '2', '007': 'b'"),
    (TEXT, [3], "not categorical"),
    (CODE, [3, 7], "1 value is not categorical 7, 1, 2: 3"),
    (CODE, [7.5], "7.5"),
    (CODE, ["seven"], "'seven'"),
    (FLAG, ["maybe"], "1 value is not boolean true or false: 'maybe'"),
    (FLAG, [2], "1 value is not boolean true or false: 2"),
    (Categorical("x", values=(True,)), [False], "1 value is not categorical True: False"),
    (DAY, [dt.date(2031, 1, 1)], "1 value is not date 1960-01-01 to 2030-01-01: 2031-01-01"),
    (DAY, ["2021-02-30"], "2021-02-30"),
    (DAY, ["1/2/2021"], "'1/2/2021'"),
    (WRITTEN, ["31/02/2021"], "'31/02/2021'"),
    (MOMENT, ["noon"], "'noon'"),
    (Integer("x", lower=0, upper=9), [None, 5, None], "2 nulls, but the column is not nullable"),
    (Real("x", lower=0, upper=9), [NAN], "1 null, but the column is not nullable"),
    (Boolean("x"), [""], "1 null, but the column is not nullable"),
    (Categorical("x", values=("a",)), [None], "1 null, but"),
    (
        AGE,
        pa.array([dt.date(2020, 1, 1)]),
        "schema says integer 0 to 120, but the table holds date",
    ),
    (PAY, pa.array([[1]]), "but the table holds list<"),
    (TEXT, pa.array([[1]]), "but the table holds list<"),
    (DAY, pa.array([5]), "but the table holds int64"),
    (FLAG, pa.array([dt.date(2020, 1, 1)]), "but the table holds date32"),
    (MOMENT, pa.array([NOON_UTC]), "add timezone = 'UTC' to it"),
]


@pytest.mark.parametrize(("column", "values", "message"), REFUSED)
def test_what_is_refused(column: Column, values: Any, message: str) -> None:
    with pytest.raises(DataError) as error:
        encode(column, values)
    assert "column 'x': " in str(error.value)
    assert message in str(error.value)


def test_at_most_five_examples_and_all_columns() -> None:
    schema = Schema([AGE, Categorical("y", values=("a",))])
    batch = pa.record_batch({"x": list(range(200, 300)), "y": ["b"] * 100})
    with pytest.raises(DataError) as error:
        Encoder(schema).encode(batch)
    text = str(error.value)
    assert "column 'x': 100 values" in text
    assert "e.g. 200, 201, 202, 203, 204\n" in text
    assert "column 'y': 100 values are not categorical 'a': e.g. 'b'" in text
    assert 'on_invalid="coerce"' in text
