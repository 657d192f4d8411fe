"""Text: parsing of numbers, codes and moments in files.

Each text is parsed independently of the others. Whole arrays are cast at once where Arrow's cast
follows the same rule; if a value fails, each distinct value is tried by itself.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.schema import Column

Parsed = tuple[pa.Array, "NDArray[np.bool_]"]

_WHOLE = r"^[+-]?[0-9]+(\.0*)?$"
_OFFSET = r"[0-9]{2}:[0-9]{2}.*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


def clean_text(column: Column, array: pa.Array) -> pa.Array:
    """Text without surrounding white space, with null for each of ``null_values``."""
    text = pc.utf8_trim_whitespace(array.cast(pa.string()))
    spellings = pa.array([spelling.strip() for spelling in column.null_values], pa.string())
    return _without(text, pc.is_in(text, value_set=spellings))


def parse_numbers(text: pa.Array) -> Parsed:
    """Numbers as float64; only finite numbers can be read."""
    numbers, _ = _cast(text, pa.float64())
    numbers = _without(numbers, pc.invert(pc.is_finite(numbers)))
    return numbers, _lost(text, numbers)


def parse_integers(text: pa.Array) -> Parsed:
    """Whole numbers as int64, exact to the last digit; "7.0" is 7."""
    whole = _without(text, pc.invert(pc.match_substring_regex(text, _WHOLE)))
    whole = pc.replace_substring_regex(whole, r"^\+|\.0*$", "")
    numbers, _ = _cast(whole, pa.int64())
    return numbers, _lost(text, numbers)


def parse_moments(text: pa.Array, pattern: str | None, zone: str | None) -> Parsed:
    """Moments as local times in microseconds; text with an offset needs a ``zone``."""
    if pattern is not None:
        # Python's strptime refuses 31/02, while that of the C library turns it into a day of March.
        moments = _each(text, lambda each: _wall_clock(dt.datetime.strptime(each, pattern), zone))
        return moments, _lost(text, moments)
    if zone is None:
        return _cast(text, pa.timestamp("us"))
    offset = pc.match_substring_regex(text, _OFFSET)
    zoned, _ = _cast(_without(text, pc.invert(offset)), pa.timestamp("us", tz="UTC"))
    naive, _ = _cast(_without(text, offset), pa.timestamp("us"))
    local = pc.local_timestamp(zoned.cast(pa.timestamp("us", tz=zone)))
    moments = pc.coalesce(local, naive)
    return moments, _lost(text, moments)


def _wall_clock(moment: dt.datetime, zone: str | None) -> dt.datetime:
    if moment.tzinfo is None:
        return moment
    if zone is None:
        raise ValueError("a time zone in a column without one")
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def _cast(text: pa.Array, kind: pa.DataType) -> Parsed:
    """Cast text at once; if this fails, cast each distinct value by itself."""
    try:
        parsed = text.cast(kind)
    except pa.ArrowInvalid:
        coded = text.dictionary_encode()
        good = pa.array([_castable(each, kind) for each in coded.dictionary], pa.bool_())
        parsed = _without(coded.dictionary, pc.invert(good)).cast(kind).take(coded.indices)
    return parsed, _lost(text, parsed)


def _castable(value: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _each(text: pa.Array, parse: Callable[[str], dt.datetime]) -> pa.Array:
    """Parse each distinct text once; those that fail become null."""
    coded = text.dictionary_encode()
    parsed: list[dt.datetime | None] = []
    for value in coded.dictionary.to_pylist():
        try:
            parsed.append(parse(value))
        except (ValueError, OverflowError):
            parsed.append(None)
    return pa.array(parsed, pa.timestamp("us")).take(coded.indices)


def _without(array: pa.Array, rows: pa.BooleanArray) -> pa.Array:
    """The array with null in the given rows."""
    if not pc.any(rows).as_py():
        return array
    return pc.if_else(rows.fill_null(False), pa.scalar(None, array.type), array)


def _lost(text: pa.Array, parsed: pa.Array) -> NDArray[np.bool_]:
    """The rows with text that could not be parsed."""
    lost = pc.and_(text.is_valid(), parsed.is_null())
    return np.asarray(lost.to_numpy(zero_copy_only=False))
