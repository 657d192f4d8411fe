"""Reading: one Arrow array to float64 numbers on the scale of its column.

A null becomes NaN, which no kind uses for anything else. What cannot be read as the column's kind
is NaN too, and flagged. Each row is read by itself: nothing here looks at the other rows.
"""

from __future__ import annotations

import datetime as dt
from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.errors import DataError
from private_gsd.schema import Boolean, Categorical, Column, Date, Datetime
from private_gsd.schema.arrow import is_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

TRUE_SPELLINGS = ("true", "t", "yes", "y", "1", "1.0")
FALSE_SPELLINGS = ("false", "f", "no", "n", "0", "0.0")


class Reading(NamedTuple):
    """Numbers on the column's scale (NaN for null), and which rows could not be read."""

    values: NDArray[np.float64]
    unreadable: NDArray[np.bool_] | None = None


def read_array(column: Column, array: pa.Array) -> Reading:
    """Read an Arrow array of any type that makes sense for the column."""
    if pa.types.is_dictionary(array.type):
        return _read_dictionary(column, array)
    if pa.types.is_null(array.type):
        return Reading(np.full(len(array), np.nan))
    return _read(column, array)


def _read_dictionary(column: Column, array: pa.DictionaryArray) -> Reading:
    """Read each distinct value once, then spread the result over the rows."""
    values, unreadable = read_array(column, array.dictionary)
    indices = array.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    spread = np.append(values, np.nan)[indices]
    if unreadable is None:
        return Reading(spread)
    return Reading(spread, np.append(unreadable, False)[indices])


@singledispatch
def _read(column: Column, array: pa.Array) -> Reading:
    """Numbers, unless the kind of column has a reader of its own."""
    if is_text(array.type):
        parsed, unreadable = _cast(_text(column, array), pa.float64())
        return Reading(_to_float(parsed), unreadable)
    return Reading(_to_float(_number_array(column, array)))


@_read.register(Date)
@_read.register(Datetime)
def _read_moments(column: Date | Datetime, array: pa.Array) -> Reading:
    unreadable = None
    zone = column.timezone if isinstance(column, Datetime) else None
    if is_text(array.type):
        array, unreadable = _parse_moments(column, _text(column, array), zone)
    elif pa.types.is_timestamp(array.type):
        if array.type.tz is not None and zone is None:
            raise DataError(
                f"column {column.name!r}: the table has moments with a time zone "
                f"({array.type.tz}), the schema without; add timezone = {array.type.tz!r} to it"
            )
        if array.type.tz is not None:
            array = pc.local_timestamp(array.cast(pa.timestamp(array.type.unit, tz=zone)))
    elif not pa.types.is_date(array.type):
        raise _mismatch(column, array.type)
    moments = array.cast(pa.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
    # NumPy takes moments down to a coarser unit, also before 1970.
    values = moments.astype(f"datetime64[{column.unit}]").astype(np.int64).astype(np.float64)
    values[np.isnat(moments)] = np.nan
    return Reading(values, unreadable)


@_read.register(Boolean)
def _read_booleans(column: Boolean | Categorical, array: pa.Array) -> Reading:
    if is_text(array.type):
        text = pc.utf8_lower(_text(column, array))
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
        unknown = _lost(numbers, values)
        return Reading(values, unknown if unreadable is None else unknown | unreadable)
    if not is_text(array.type):
        array = _as_text(column, array)
    # Exactly as spelled in the schema comes first, so that " a" and "a" can both be categories.
    values = _to_float(pc.index_in(array.cast(pa.string()), value_set=value_set))
    unreadable = _lost(array, values)
    if unreadable.any():
        text = _text(column, array)
        values = np.where(unreadable, _to_float(pc.index_in(text, value_set=value_set)), values)
        unreadable &= _lost(text, values)
    return Reading(values, unreadable)


def _read_boolean_categories(column: Categorical, array: pa.Array) -> Reading:
    truth, unreadable = _read_booleans(column, array)
    codes = np.full(3, np.nan)  # of false, of true, of null
    for truth_value in (False, True):
        if truth_value in column.values:
            codes[int(truth_value)] = column.values.index(truth_value)
    values = codes[np.where(np.isnan(truth), 2, truth).astype(np.int64)]
    unlisted = np.isnan(values) & ~np.isnan(truth)
    return Reading(values, unlisted if unreadable is None else unlisted | unreadable)


def _whole_numbers(
    column: Categorical, array: pa.Array
) -> tuple[pa.Array, NDArray[np.bool_] | None]:
    """Integers from integers, from numbers without a fraction, or from text of either."""
    unreadable = None
    if is_text(array.type):
        array = _text(column, array)
        try:
            return array.cast(pa.int64()), None
        except pa.ArrowInvalid:
            array, unreadable = _cast(array, pa.float64())
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64(), safe=False), unreadable
    numbers = _to_float(_number_array(column, array))
    broken = ~np.isnan(numbers) & (numbers != np.rint(numbers))
    whole = np.where(np.isfinite(numbers), np.rint(numbers), 0).astype(np.int64)
    fractional = broken if unreadable is None else broken | unreadable
    return pa.array(whole, mask=broken | np.isnan(numbers)), fractional


def _as_text(column: Column, array: pa.Array) -> pa.Array:
    """Text of values that are not text; 1.0 is "1", as if a null had not made the column float."""
    if pa.types.is_floating(array.type):
        numbers = _to_float(array)
        whole = np.isfinite(numbers) & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2**53)
        digits = pa.array(np.where(whole, numbers, 0).astype(np.int64)).cast(pa.string())
        array = pc.if_else(pa.array(whole), digits, pa.array(numbers, from_pandas=True).cast("str"))
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


def _text(column: Column, array: pa.Array) -> pa.Array:
    """Text without surrounding white space, its null spellings turned into nulls."""
    text = pc.utf8_trim_whitespace(array.cast(pa.string()))
    spellings = pa.array([spelling.strip() for spelling in column.null_values], pa.string())
    spelled = pc.is_in(text, value_set=spellings)
    if pc.any(spelled).as_py():
        text = pc.if_else(spelled, pa.scalar(None, pa.string()), text)
    return text


def _parse_moments(
    column: Date | Datetime, text: pa.Array, zone: str | None
) -> tuple[pa.Array, NDArray[np.bool_] | None]:
    if column.format is not None:
        # Python's strptime refuses 31/02, where the C library's rolls over to March.
        pattern = column.format
        return _each(text, lambda value: _wall_clock(dt.datetime.strptime(value, pattern), zone))
    if zone is None:
        return _cast(text, pa.timestamp("us"))
    return _each(text, lambda value: _wall_clock(dt.datetime.fromisoformat(value), zone))


def _wall_clock(moment: dt.datetime, zone: str | None) -> dt.datetime:
    if moment.tzinfo is None:
        return moment
    if zone is None:
        raise ValueError("a time zone in a column without one")
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _cast(text: pa.Array, kind: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_] | None]:
    """Cast text at once; where that fails, find out which values are to blame."""
    try:
        return text.cast(kind), None
    except pa.ArrowInvalid:
        return _each(text, lambda value: pa.scalar(value).cast(kind).as_py(), kind)


def _each(
    text: pa.Array, parse: Callable[[str], Any], kind: pa.DataType | None = None
) -> tuple[pa.Array, NDArray[np.bool_]]:
    """Parse each distinct text once; those that fail become null and are flagged."""
    coded = text.dictionary_encode()
    parsed = []
    for value in coded.dictionary.to_pylist():
        try:
            parsed.append(parse(value))
        except ValueError:  # pa.ArrowInvalid is one
            parsed.append(None)
    result = pa.array(parsed, kind or pa.timestamp("us")).take(coded.indices)
    return result, (result.is_null().to_numpy(zero_copy_only=False)) & _valid(text)


def _to_float(array: pa.Array) -> NDArray[np.float64]:
    """Any numeric Arrow array as float64 with NaN for null, in memory of its own."""
    return np.array(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def _lost(array: pa.Array, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Rows that hold something and were given no value."""
    lost = np.isnan(values)
    return lost & _valid(array) if array.null_count else lost


def _mismatch(column: Column, kind: pa.DataType) -> DataError:
    return DataError(
        f"column {column.name!r}: the schema says {column.expected}, but the table holds {kind}"
    )
