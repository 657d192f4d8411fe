"""Reading Arrow arrays of any type as the numbers of a column."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from private_gsd import Categorical, Column, Date, Datetime
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

MONTH = Date(
    "x", lower=dt.date(1960, 1, 1), upper=dt.date(2030, 1, 1), resolution="month", nullable=True
)


VIENNA = Datetime(
    "x",
    lower=dt.datetime(1960, 1, 1),
    upper=dt.datetime(2030, 1, 1),
    timezone="Europe/Vienna",
    resolution="hour",
    nullable=True,
)


VIENNA_HOUR = 14 + 24 * (dt.date(2020, 7, 1) - dt.date(1970, 1, 1)).days


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


def test_a_zone_in_a_date_column() -> None:
    with pytest.raises(DataError, match="make it a datetime with a timezone"):
        encode(DAY, [NOON_UTC], pa.timestamp("us", tz="UTC"))
