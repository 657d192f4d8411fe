"""The encoder's rules: what is read how, what is refused, what is coerced."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Boolean, Categorical, Column, Date, Datetime, Encoder, Integer, Real, Schema
from private_gsd.errors import DataError, SchemaError
from tests.strategies import matrices, schemas

NAN = float("nan")
AGE = Integer("x", lower=0, upper=120, nullable=True, null_values=("", "N"))
PAY = Real("x", lower=-10, upper=10, nullable=True)
TEXT = Categorical("x", values=("a", "1", "2", "007"), nullable=True, null_values=("", "?"))
CODE = Categorical("x", values=(7, 1, 2), nullable=True)
FLAG = Boolean("x", nullable=True)
DAY = Date("x", lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), nullable=True)
MONTH = Date(
    "x", lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), resolution="month", nullable=True
)
WRITTEN = Date(
    "x", lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), format="%d/%m/%Y", nullable=True
)
MOMENT = Datetime("x", lower=dt.datetime(1960, 1, 1), upper=dt.datetime(2030, 1, 1), nullable=True)
VIENNA = Datetime(
    "x",
    lower=dt.datetime(1960, 1, 1),
    upper=dt.datetime(2030, 1, 1),
    timezone="Europe/Vienna",
    resolution="hour",
    nullable=True,
)
NOON_UTC = dt.datetime(2020, 7, 1, 12, tzinfo=dt.UTC)
VIENNA_HOUR = 14 + 24 * (dt.date(2020, 7, 1) - dt.date(1970, 1, 1)).days


def encode(
    column: Column,
    values: Any,
    kind: pa.DataType | None = None,
    on_invalid: Literal["error", "coerce"] = "error",
) -> list[float]:
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    batch = pa.record_batch({"x": array})
    matrix = Encoder(Schema([column]), on_invalid=on_invalid).encode(batch)
    return list(matrix[:, 0])


@pytest.mark.parametrize(
    ("column", "values", "kind", "expected"),
    [
        (AGE, [0, 120, None], pa.int8(), [0, 120, NAN]),
        (AGE, [0, 120, None], pa.uint64(), [0, 120, NAN]),
        (AGE, [0.0, 120.0, None, NAN], pa.float32(), [0, 120, NAN, NAN]),
        (AGE, [Decimal("5.00"), None], pa.decimal128(9, 2), [5, NAN]),
        (AGE, [True, False], pa.bool_(), [1, 0]),
        (AGE, ["0", " 120 ", "N", "", None, "5.0", "1e1"], None, [0, 120, NAN, NAN, NAN, 5, 10]),
        (AGE, ["5"], pa.large_string(), [5]),
        (AGE, ["5"], pa.string_view(), [5]),
        (AGE, [None, None], pa.null(), [NAN, NAN]),
        (PAY, [-10.0, 10.0, 0.1], pa.float64(), [-10, 10, 0.1]),
        (PAY, ["-10", "+.5", "1E-3", "5."], None, [-10, 0.5, 0.001, 5]),
        (TEXT, ["a", " a", "007", "?", " ? ", "", None], None, [0, 0, 3, NAN, NAN, NAN, NAN]),
        (TEXT, [1, 2, None], pa.int16(), [1, 2, NAN]),
        (TEXT, [1.0, NAN, None], pa.float64(), [1, NAN, NAN]),
        (CODE, [7, 2, None], pa.int32(), [0, 2, NAN]),
        (CODE, [7.0, NAN], pa.float64(), [0, NAN]),
        (CODE, ["7", " 007", "2.0", ""], None, [0, 0, 2, NAN]),
        (CODE, [True], pa.bool_(), [1]),
        (FLAG, [True, False, None], None, [1, 0, NAN]),
        (FLAG, [1, 0, None], None, [1, 0, NAN]),
        (FLAG, ["True", "no", "T", " 0", "", None], None, [1, 0, 1, 0, NAN, NAN]),
        (Categorical("x", values=(True, False)), ["yes", "no"], None, [0, 1]),
        (DAY, [dt.date(1970, 1, 2), dt.date(1969, 12, 31), None], None, [1, -1, NAN]),
        (DAY, [dt.datetime(1970, 1, 2, 23, 59), None], pa.timestamp("ns"), [1, NAN]),
        (DAY, [dt.datetime(1969, 12, 31, 23, 59)], pa.timestamp("s"), [-1]),
        (DAY, ["1970-01-02", "", None], None, [1, NAN, NAN]),
        (MONTH, [dt.date(1970, 2, 28), dt.date(1969, 12, 31)], None, [1, -1]),
        (WRITTEN, ["2/1/1970", "31/12/1969", ""], None, [1, -1, NAN]),
        (MOMENT, [dt.datetime(1970, 1, 1, 0, 1, 1, 999)], pa.timestamp("us"), [61]),
        (MOMENT, [dt.date(1970, 1, 2)], None, [86400]),
        (MOMENT, ["1970-01-01 00:01:01", "1970-01-01T00:00:00.5"], None, [61, 0]),
        (VIENNA, [NOON_UTC], pa.timestamp("us", tz="UTC"), [VIENNA_HOUR]),
        (VIENNA, [NOON_UTC], pa.timestamp("ms", tz="America/New_York"), [VIENNA_HOUR]),
        (VIENNA, [dt.datetime(2020, 7, 1, 14)], pa.timestamp("us"), [VIENNA_HOUR]),
        (VIENNA, ["2020-07-01T12:00:00+00:00", "2020-07-01 14:00"], None, [VIENNA_HOUR] * 2),
    ],
)
def test_reading(
    column: Column, values: list[Any], kind: pa.DataType | None, expected: list[float]
) -> None:
    np.testing.assert_array_equal(encode(column, values, kind), expected)
    # As a dictionary the same values read the same.
    try:
        coded = pa.array(values, kind).dictionary_encode()
    except pa.ArrowNotImplementedError:
        return
    np.testing.assert_array_equal(encode(column, coded), expected)


def test_exact_spelling_comes_before_trimming() -> None:
    column = Categorical("x", values=("a", " a", ""), nullable=True)
    assert encode(column, ["a", " a", "a ", ""]) == [0, 1, 0, 2]


def test_unused_dictionary_values_do_no_harm() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None, 0]), pa.array(["a", "unknown"]))
    np.testing.assert_array_equal(encode(TEXT, coded), [0, NAN, 0])


BIG = 2**53 + 1
LONG = Categorical("x", values=(BIG, BIG - 1, 0, -1), nullable=True)


@pytest.mark.parametrize(
    ("column", "values", "kind", "expected"),
    [
        # codes longer than a float is exact for, whatever stands beside them
        (LONG, [str(BIG), "1.0", "x", "", "0x10", "+0"], None, [0, NAN, NAN, NAN, NAN, 2]),
        (LONG, [str(BIG)], None, [0]),
        (LONG, [Decimal(BIG), Decimal(0)], pa.decimal128(38, 0), [0, 2]),
        (LONG, [2**64 - 1, BIG], pa.uint64(), [NAN, 0]),
        (LONG, [float("inf"), -1.0, 1e300], None, [NAN, 3, NAN]),
        (LONG, ["inf", "nan", "9" * 30], None, [NAN, NAN, NAN]),
        (PAY, ["nan", "inf", "-Infinity", "1e400", "0x1p3"], None, [NAN] * 5),
        # the scale belongs to the column, not to the value
        (
            Categorical("x", values=("1.5", "2"), nullable=True),
            [Decimal("1.50"), Decimal("2.00")],
            pa.decimal128(9, 2),
            [0, 1],
        ),
        # moments that no clock of ours can show
        (DAY, [213_503_982, -(2**31)], pa.date32(), [DAY.bounds[1], DAY.bounds[0]]),
        (MOMENT, [2**62, -(2**62)], pa.timestamp("s"), [MOMENT.bounds[1], MOMENT.bounds[0]]),
        (MOMENT, [2**63 - 1, 1 - 2**63], pa.timestamp("us"), [MOMENT.bounds[1], MOMENT.bounds[0]]),
        (VIENNA, [2**63 - 1], pa.timestamp("us", tz="UTC"), [VIENNA.bounds[1]]),
        (DAY, [-1], pa.timestamp("ns"), [-1]),
        (DAY, ["0000-01-01", "2020-13-01"], None, [DAY.bounds[0], NAN]),
        (
            VIENNA,
            ["9999-12-31T23:59:59Z", "20000101", "2000-W01-1"],
            None,
            [VIENNA.bounds[1], NAN, NAN],
        ),
    ],
)
def test_extremes_are_not_bent(
    column: Column, values: list[Any], kind: pa.DataType | None, expected: list[float]
) -> None:
    ticks = kind is not None and pa.types.is_temporal(kind)
    if ticks:
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        array = pa.array(values, width).view(kind)
    else:
        array = pa.array(values, kind)
    np.testing.assert_array_equal(encode(column, array, on_invalid="coerce"), expected)
    # Alone, each value is read as among the others.
    for row, value in enumerate(expected):
        np.testing.assert_array_equal(
            encode(column, array.slice(row, 1), on_invalid="coerce"), [value]
        )


def test_full_dictionaries_and_wrapped_arrays() -> None:
    column = Categorical("x", values=tuple(range(128)), nullable=True)
    coded = pa.DictionaryArray.from_arrays(
        pa.array([127, None], pa.int8()), pa.array(range(128), pa.int64())
    )
    np.testing.assert_array_equal(encode(column, coded), [127, NAN])
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [5, 7])
    assert encode(column, runs) == [5, 5, 7]
    uuids = pa.array([b"0123456789abcdef"], pa.binary(16)).cast(pa.uuid())
    with pytest.raises(DataError, match="column 'x'"):
        encode(column, uuids)


def test_examples_of_dates_that_python_has_not() -> None:
    far = pa.array([213_503_982], pa.int32()).cast(pa.date32())
    with pytest.raises(DataError, match="1 value is not date"):
        encode(DAY, far)


def test_a_zone_in_a_date_column() -> None:
    with pytest.raises(DataError, match="make it a datetime with a timezone"):
        encode(DAY, [NOON_UTC], pa.timestamp("us", tz="UTC"))


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
    back = encoder.from_unit(unit)
    np.testing.assert_array_equal(np.isnan(unit), np.isnan(matrix))
    for position, column in enumerate(schema):
        if isinstance(column, Boolean | Categorical):
            np.testing.assert_array_equal(back[:, position], matrix[:, position])
            continue
        low, high = column.bounds
        values = unit[:, position][~np.isnan(unit[:, position])]
        assert ((values >= 0) & (values <= 1)).all()
        np.testing.assert_allclose(
            back[:, position], matrix[:, position], rtol=0, atol=1e-9 * (high - low)
        )
