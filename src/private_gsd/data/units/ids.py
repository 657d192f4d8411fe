"""The ids of units as text, the same in any kind of table. No message quotes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.errors import DataError

if TYPE_CHECKING:
    from private_gsd.schema.unit import Unit

# Floating-point numbers up to here are ids where they are whole: pandas has them for whole numbers
# beside nulls.
MOST_WHOLE = 2**53
# The types of ids; moments are none, since their text depends on their unit.
KINDS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_boolean,
    pa.types.is_null,
)


def texts_of(batch: pa.RecordBatch, unit: Unit) -> pa.LargeStringArray:
    """The ids of the rows of a batch as text; null where a row has none.

    A whole number is its digits, whatever its type, and so equal to the same digits as text. An
    empty text is null, as in a CSV file.

    Args:
        batch: The batch.
        unit: The unit of protection.
    """
    index = batch.schema.get_field_index(unit.column)
    if index < 0:
        raise DataError(f"column {unit.column!r}, which names the unit, is missing or stands twice")
    array = batch.column(index)
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.scale > 0):
        array = _whole(array.cast(pa.float64()), unit)
    elif not any(of_kind(kind) for of_kind in KINDS):
        raise DataError(
            f"column {unit.column!r}, which names the unit, holds {kind}; ids are text, whole "
            "numbers, dates or booleans"
        )
    texts = array.cast(pa.large_string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _whole(array: pa.Array, unit: Unit) -> pa.Array:
    """Floating-point numbers as whole ones; NaN is null."""
    values = array.to_numpy(zero_copy_only=False)
    null = np.isnan(values)
    known = np.where(null, 0.0, values)
    if not ((np.abs(known) <= MOST_WHOLE) & (known == np.rint(known))).all():
        raise DataError(
            f"column {unit.column!r}, which names the unit, holds numbers that are not whole, or "
            "have too many digits for their type; ids are text or whole numbers"
        )
    return pa.array(known.astype(np.int64), mask=null)
