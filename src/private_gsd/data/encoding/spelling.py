"""Spelling: values as text that is read back as the same values.

This is the inverse of reading text: nulls are written as one of ``null_values``, dates and moments
in their ``format``, all other values as Arrow writes them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd.data.encoding.arrow_values import read_array
from private_gsd.data.encoding.encoder import Encoder
from private_gsd.errors import SchemaError
from private_gsd.schema import Date, Datetime, Discrete, Real, Schema

if TYPE_CHECKING:
    import datetime as dt

    from numpy.typing import NDArray

    from private_gsd.schema import Column


def spelled_types(schema: Schema) -> pa.Schema:
    """The types of the result of ``spelled``: text where Arrow would write something else."""
    return pa.schema(
        [
            pa.field(each.name, pa.string() if _needs_words(each) else each.arrow_type)
            for each in schema
        ]
    )


def spelled(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch that, written as text with empty fields for nulls, is read back as the same values.

    An error is raised if there is no such text. If an empty text is also a value, the caller must
    write this value in quotes.
    """
    types = spelled_types(schema)
    columns = [_spelled(each, batch.column(each.name)) for each in schema]
    texts = [array.cast(pa.string()) for array in columns]
    for column, text in zip(schema, texts, strict=True):
        _check(column, batch.column(column.name), text)
    return pa.RecordBatch.from_arrays(columns, schema=types)


def check_spelling(schema: Schema) -> None:
    """Refuse a schema with values that cannot be written as text and read again.

    For example, -9 may be both a number between the bounds and the spelling of a null, or a format
    may leave out the day of a date. The bounds, numbers between them, categories and spellings of
    null are tried.
    """
    for column in schema:
        if "\r" in column.name:
            raise _refused(column, "its name holds a carriage return")
        values = _some_values(column)
        alone = Schema([column])
        spelled(Encoder(alone).decode(values[:, None]), alone)


def _needs_words(column: Column) -> bool:
    return getattr(column, "format", None) is not None or (
        column.nullable and "" not in column.null_values
    )


def _spelled(column: Column, array: pa.Array) -> pa.Array:
    if not _needs_words(column):
        return array.cast(column.arrow_type)
    if isinstance(column, Date | Datetime) and column.format is not None:
        coded = array.dictionary_encode()
        try:
            words = [_strftime(column, each) for each in coded.dictionary.to_pylist()]
        except (ValueError, OverflowError):  # in the time zone, before the year 1 or after 9999
            raise _refused(column, "a moment is too early or too late") from None
        array = pa.array(words, pa.string()).take(coded.indices)
    if column.nullable and "" not in column.null_values:
        if not column.null_values:
            raise _refused(column, "null_values is empty, and so a null has no text")
        array = array.cast(pa.string()).fill_null(column.null_values[0])
    return array


def _strftime(column: Date | Datetime, moment: dt.date) -> str:
    def padded(directive: re.Match[str]) -> str:
        # Years before 1000 get four digits; the C library may write fewer.
        return f"{moment.year:04}" if directive[1] == "Y" else directive[0]

    return moment.strftime(re.sub("%(.)", padded, str(column.format)))


def _check(column: Column, array: pa.Array, text: pa.Array) -> None:
    """Refuse text that is not read back as the values of an array."""
    meant = read_array(column, array).values
    found, unreadable = read_array(column, text)
    wrong = ~((meant == found) | (np.isnan(meant) & np.isnan(found)))
    if unreadable is not None:
        wrong |= unreadable
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        lost = unreadable is not None and unreadable[place]
        read = "not be read" if lost else "be read as null" if np.isnan(found[place]) else ""
        raise _refused(
            column,
            f"{array[place]} would be written as {text[place].as_py()!r}, and "
            + (read or "be read as another value"),
        )


def _refused(column: Column, reason: str) -> SchemaError:
    return SchemaError(
        f"column {column.name!r} cannot be written as text: {reason}; write .parquet, or change "
        "null_values, format or resolution in the schema"
    )


def _some_values(column: Column) -> NDArray[np.float64]:
    """Encoded values of a column for which writing text is most likely to fail."""
    low, high = column.bounds
    found: list[Any] = [low, high]
    if isinstance(column, Discrete):
        found += range(len(column.values))
    else:
        found += [*np.linspace(low, high, 50), *(low + np.arange(62)), *(high - np.arange(62))]
        bare = replace(column, null_values=())
        found += read_array(bare, pa.array(column.null_values, pa.string())).values.tolist()
    values = np.array(found, dtype=np.float64)
    if not isinstance(column, Real):
        values = np.rint(values)
    elif column.decimals is not None:
        values = np.round(values, column.decimals)
    values = values[(values >= low) & (values <= high)]
    return np.append(values, np.nan) if column.nullable else values
