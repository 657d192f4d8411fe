"""The encoder's rules: what is read how, what is refused, what is coerced."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Boolean, Categorical, Column, Datetime, Encoder, Integer, Real, Schema
from private_gsd.errors import DataError, SchemaError
from tests.data.encoding.columns import AGE, CODE, DAY, FLAG, NAN, PAY, TEXT, encode
from tests.strategies import matrices, schemas

VIENNA = Datetime(
    "x",
    lower=dt.datetime(1960, 1, 1),
    upper=dt.datetime(2030, 1, 1),
    timezone="Europe/Vienna",
    resolution="hour",
    nullable=True,
)


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        (AGE, [121, -1, 5.4, None], [120, 0, 5, NAN]),
        (AGE, ["12x", "700"], [NAN, 120]),
        (PAY, [float("inf"), float("-inf"), NAN], [10, -10, NAN]),
        (TEXT, ["b", "a"], [NAN, 0]),
        (CODE, [3, 7.5, 7], [NAN, NAN, 0]),
        (FLAG, ["maybe", "yes"], [NAN, 1]),
        (Categorical("x", values=("a", "z"), other="z"), ["b", None, "a"], [1, 1, 0]),
        (Categorical("x", values=("a", "z"), other="z"), [None, "a"], [1, 0]),
        (Categorical("x", values=("a", "z"), other="z", nullable=True), ["b", None], [NAN, NAN]),
        (DAY, ["2050-01-01", "soon"], [DAY.bounds[1], NAN]),
        (DAY, [dt.date(1900, 1, 1)], [DAY.bounds[0]]),
    ],
)
def test_coercion(column: Column, values: list[Any], expected: list[float]) -> None:
    np.testing.assert_array_equal(encode(column, values, on_invalid="coerce"), expected)


def test_what_cannot_be_coerced() -> None:
    with pytest.raises(DataError, match="1 null, but the column is not nullable"):
        encode(Integer("x", lower=0, upper=9), [None, 5], on_invalid="coerce")
    with pytest.raises(DataError, match="1 value is not integer 0 to 9: 'soon'"):
        encode(Integer("x", lower=0, upper=9), ["soon", "500"], on_invalid="coerce")
    with pytest.raises(SchemaError, match=r"column 'x': nothing stands for an unknown.*other"):
        Encoder(Schema([Categorical("x", values=("a",))]), on_invalid="coerce")
    with pytest.raises(SchemaError, match=r"make it nullable$"):
        Encoder(Schema([Boolean("x")]), on_invalid="coerce")
    with pytest.raises(ValueError, match="invalid must be 'error' or 'coerce', not 'ignore'"):
        Encoder(Schema([AGE]), on_invalid="ignore")  # type: ignore[arg-type]


def test_a_missing_column() -> None:
    with pytest.raises(DataError, match=r"column 'x' is missing or stands twice"):
        Encoder(Schema([AGE])).encode(pa.record_batch({"y": [1]}))


def test_decoding_gives_the_declared_types_and_grid() -> None:
    schema = Schema(
        [
            Integer("i", lower=-5, upper=5),
            Real("r", lower=-1, upper=1, decimals=1),
            Real("free", lower=-1, upper=1, nullable=True),
            DAY,
        ]
    )
    matrix = np.array([[2.4, 0.1234, 0.1234, NAN], [-2.6, -0.04, NAN, 1]])
    batch = Encoder(schema).decode(matrix)
    assert batch.to_pydict() == {
        "i": [2, -3],
        "r": [0.1, 0.0],
        "free": [0.1234, None],
        "x": [None, dt.date(1970, 1, 2)],
    }
    assert math.copysign(1, batch.column(1)[1].as_py()) == 1  # 0.0 and not -0.0
    assert batch.schema == schema.arrow_schema


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (Boolean("x"), NAN, "NaN in a column that is not nullable"),
        (Boolean("x"), 2, "a value is not boolean"),
        (TEXT, -1, "a value is not categorical"),
        (AGE, 121, "a value is not integer"),
        (PAY, 10.5, "a value is not real"),
        (DAY, 1e9, "a value is not date"),
    ],
)
def test_decoding_refuses_what_is_outside(column: Column, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Encoder(Schema([column])).decode(np.array([[value]]))


def test_decoding_refuses_another_shape() -> None:
    with pytest.raises(ValueError, match="expected a matrix with 1 columns"):
        Encoder(Schema([AGE])).decode(np.zeros((3, 2)))


def test_the_hours_that_clocks_skip_and_repeat() -> None:
    """Decoding is total: an hour that a zone skips or shows twice still gives a moment."""
    hours = [
        24 * (dt.date(2021, 3, 28) - dt.date(1970, 1, 1)).days + 2,
        24 * (dt.date(2021, 10, 31) - dt.date(1970, 1, 1)).days + 2,
    ]
    batch = Encoder(Schema([VIENNA])).decode(np.array([hours], dtype=np.float64).T)
    skipped, repeated = batch.column(0).to_pylist()
    assert skipped.utcoffset() == dt.timedelta(hours=2)
    assert repeated.utcoffset() == dt.timedelta(hours=2)


@given(st.data())
def test_the_unit_scale(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    matrix = data.draw(matrices(schema))
    encoder = Encoder(schema)
    unit = encoder.to_unit(matrix)
    np.testing.assert_array_equal(np.isnan(unit), np.isnan(matrix))
    for position, column in enumerate(schema):
        if isinstance(column, Boolean | Categorical):
            np.testing.assert_array_equal(unit[:, position], matrix[:, position])
            continue
        low, high = column.bounds
        values = unit[:, position][~np.isnan(unit[:, position])]
        assert ((values >= 0) & (values <= 1)).all()
        np.testing.assert_allclose(
            low + unit[:, position] * (high - low),
            matrix[:, position],
            rtol=0,
            atol=1e-9 * (high - low),
        )
