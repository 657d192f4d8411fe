"""Reading: the values of an Arrow array as float64 numbers on the scale of its column.

A null becomes NaN. A value that cannot be read as the column's kind becomes NaN, too, and is
flagged. Each row is read independently of the others: a fast path for a whole array returns the
same as reading each row alone.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.data.encoding.text import clean_text, parse_integers, parse_moments, parse_numbers
from private_gsd.errors import DataError
from private_gsd.schema import Boolean, Categorical, Column, Date, Datetime
from private_gsd.schema.arrow_types import is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

TRUE_SPELLINGS = ("true", "t", "yes", "y", "1", "1.0")
FALSE_SPELLINGS = ("false", "f", "no", "n", "0", "0.0")

# Bounds are in the years 1 to 9999; a moment further from 1970 than this is outside all bounds.
FAR_DAYS = 4_000_000
_PER_DAY = {
    "D": 1,
    "s": 86_400,
    "ms": 86_400_000,
    "us": 86_400_000_000,
    "ns": 86_400_000_000_000,
}


class Reading(NamedTuple):
    """Numbers on the column's scale (NaN for null), and a mask of rows that could not be read."""

    values: NDArray[np.float64]
    unreadable: NDArray[np.bool_] | None = None


def read_array(column: Column, array: pa.Array) -> Reading:
    """Read an Arrow array of any type that suits the column."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_dictionary(array.type):
        return _read_dictionary(column, array)
    if pa.types.is_null(array.type):
        return Reading(np.full(len(array), np.nan))
    return _read(column, array)


def _read_dictionary(column: Column, array: pa.DictionaryArray) -> Reading:
    """Read each distinct value once, and repeat the results for the rows."""
    values, unreadable = read_array(column, array.dictionary)
    indices = array.indices.cast(pa.int64()).fill_null(len(values)).to_numpy(zero_copy_only=False)
    spread = np.append(values, np.nan)[indices]
    if unreadable is None:
        return Reading(spread)
    return Reading(spread, np.append(unreadable, False)[indices])


@singledispatch
def _read(column: Column, array: pa.Array) -> Reading:
    """Read numbers; kinds of column with other values register their own readers."""
    if is_text(array.type):
        numbers, unreadable = parse_numbers(clean_text(column, array))
        return Reading(_to_float(numbers), unreadable)
    return Reading(_to_float(_number_array(column, array)))


@_read.register(Date)
@_read.register(Datetime)
def _read_moments(column: Date | Datetime, array: pa.Array) -> Reading:
    unreadable = None
    zone = column.timezone if isinstance(column, Datetime) else None
    if is_text(array.type):
        array, unreadable = parse_moments(clean_text(column, array), column.format, zone)
    elif not (pa.types.is_date(array.type) or pa.types.is_timestamp(array.type)):
        raise _mismatch(column, array.type)
    unit = "D" if pa.types.is_date32(array.type) else getattr(array.type, "unit", "ms")
    null = array.is_null().to_numpy(zero_copy_only=False)
    ticks = array.cast(pa.int32() if unit == "D" else pa.int64()).fill_null(0)
    ticks = ticks.cast(pa.int64()).to_numpy(zero_copy_only=False)
    # Moments outside all bounds become infinite, since conversions would overflow.
    days = ticks / _PER_DAY[unit]
    far = np.abs(days) > FAR_DAYS
    ticks = np.where(far, 0, ticks)
    moments = ticks.view(f"datetime64[{unit}]")
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        moments = _wall_clock(column, moments, unit, array.type.tz, zone)
    # NumPy rounds moments down to a coarser unit, also before 1970.
    values = moments.astype(f"datetime64[{column.unit}]").astype(np.int64).astype(np.float64)
    values = np.where(far, np.copysign(np.inf, days), values)
    values[null] = np.nan
    return Reading(values, unreadable)


def _wall_clock(
    column: Column, moments: NDArray[np.datetime64], unit: str, came: str, zone: str | None
) -> NDArray[np.datetime64]:
    """Convert moments with a time zone to local times of the column's zone."""
    if zone is None:
        advice = (
            f"add timezone = {came!r} to it"
            if isinstance(column, Datetime)
            else "make it a datetime with a timezone, or take the date before"
        )
        raise DataError(
            f"column {column.name!r}: the table has moments with a time zone ({came}), "
            f"the schema has none; {advice}"
        )
    zoned = pa.array(moments, pa.timestamp(unit)).cast(pa.timestamp(unit, tz=zone))
    return np.asarray(pc.local_timestamp(zoned).to_numpy(zero_copy_only=False))


@_read.register(Boolean)
def _read_booleans(column: Boolean | Categorical, array: pa.Array) -> Reading:
    if is_text(array.type):
        text = pc.utf8_lower(clean_text(column, array))
        code = pc.index_in(text, value_set=pa.array(FALSE_SPELLINGS + TRUE_SPELLINGS))
        known = _to_float(code)
        values = np.where(np.isnan(known), np.nan, known >= len(FALSE_SPELLINGS))
        return Reading(values, _lost(text, values))
    values = _to_float(_number_array(column, array))
    unreadable = ~np.isnan(values) & (values != 0) & (values != 1)
    values[unreadable] = np.nan
    return Reading(values, unreadable)


@_read.register(Categorical)
def _read_categories(column: Categorical, array: pa.Array) -> Reading:
    if isinstance(column.values[0], bool):
        return _read_boolean_categories(column, array)
    value_set = pa.array(column.values, column.arrow_type)
    if isinstance(column.values[0], int):
        numbers, unreadable = _whole_numbers(column, array)
        values = _to_float(pc.index_in(numbers, value_set=value_set))
        return Reading(values, _lost(numbers, values) | unreadable)
    if not is_text(array.type):
        array = _as_text(column, array)
    # Exact matches come first, so that " a" and "a" can both be categories.
    values = _to_float(pc.index_in(array.cast(pa.string()), value_set=value_set))
    unreadable = _lost(array, values)
    if unreadable.any():
        text = clean_text(column, array)
        values = np.where(unreadable, _to_float(pc.index_in(text, value_set=value_set)), values)
        unreadable &= _lost(text, values)
    return Reading(values, unreadable)


def _read_boolean_categories(column: Categorical, array: pa.Array) -> Reading:
    truth, unreadable = _read_booleans(column, array)
    codes = np.full(3, np.nan)  # the codes of false, true and null
    for truth_value in (False, True):
        if truth_value in column.values:
            codes[int(truth_value)] = column.values.index(truth_value)
    values = codes[np.where(np.isnan(truth), 2, truth).astype(np.int64)]
    unlisted = np.isnan(values) & ~np.isnan(truth)
    return Reading(values, unlisted if unreadable is None else unlisted | unreadable)


def _whole_numbers(column: Categorical, array: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Integers from integers, from numbers without a fraction, or from text.

    Integers are not converted to float64 on the way, which would round long codes.
    """
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())
    if is_text(array.type):
        return parse_integers(clean_text(column, array))
    if pa.types.is_integer(array.type):
        if array.type == pa.uint64():
            broken = pc.greater(array, pa.scalar(2**63 - 1, pa.uint64())).fill_null(False)
            broken = broken.to_numpy(zero_copy_only=False)
            return _masked(array.cast(pa.int64(), safe=False), broken), broken
        return array.cast(pa.int64()), np.zeros(len(array), dtype=np.bool_)
    numbers = _to_float(_number_array(column, array))
    broken = ~np.isnan(numbers) & ~((numbers == np.rint(numbers)) & (np.abs(numbers) < 2**63))
    whole = np.where(broken | np.isnan(numbers), 0, numbers).astype(np.int64)
    return pa.array(whole, mask=broken | np.isnan(numbers)), broken


def _masked(array: pa.Array, rows: NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(rows), pa.scalar(None, array.type), array)


def _as_text(column: Column, array: pa.Array) -> pa.Array:
    """Values as text; 1.0 becomes "1", since integers with nulls are often stored as floats."""
    if pa.types.is_floating(array.type):
        numbers = _to_float(array)
        whole = np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2**53)
        digits = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.string())
        array = pc.if_else(pa.array(whole), digits, pa.array(numbers, from_pandas=True).cast("str"))
    elif pa.types.is_decimal(array.type):
        # The scale is that of the column, not of the value: 1.50 becomes 1.5, and 2.00 becomes 2.
        array = pc.replace_substring_regex(array.cast(pa.string()), r"(\.[0-9]*?)0+$", r"\1")
        array = pc.replace_substring_regex(array, r"\.$", "")
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _mismatch(column, array.type) from None


def _number_array(column: Column, array: pa.Array) -> pa.Array:
    kind = array.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        raise _mismatch(column, kind)
    return array.cast(pa.float64(), safe=False)


def _to_float(array: pa.Array) -> NDArray[np.float64]:
    """A copy of a numeric Arrow array as float64, with NaN for null."""
    return np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _lost(array: pa.Array, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The rows that are not null and could not be read."""
    lost = np.isnan(values)
    if array.null_count:
        lost &= array.is_valid().to_numpy(zero_copy_only=False)
    return lost


def _mismatch(column: Column, kind: pa.DataType) -> DataError:
    return DataError(
        f"column {column.name!r}: the schema says {column.expected}, but the table holds {kind}"
    )
