"""Object values: Python objects of mixed types in a column, each converted to text by itself."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable


def values_as_text(values: Iterable[Any]) -> pa.Array:
    """A column of objects as text, to be read by the schema."""
    return pa.array([value_as_text(value) for value in values], pa.string())


def value_as_text(value: Any) -> str | None:
    """An object as text; None for a null of any type.

    >>> value_as_text(1.0), value_as_text(Decimal("1.50")), value_as_text(float("nan"))
    ('1', '1.5', None)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or type(value).__name__ == "bool":  # NumPy's too
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        # The scale is not part of the value: 1.50 becomes 1.5, and 2.00 becomes 2.
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, Real):
        number = float(value)
        if math.isnan(number):
            return None
        whole = math.isfinite(number) and number.is_integer() and abs(number) < 2**53
        return str(int(number)) if whole else repr(number)
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    raise TypeError(f"an object of type {type(value).__name__}")
