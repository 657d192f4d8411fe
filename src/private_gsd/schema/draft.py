"""Drafting: columns proposed from data. A draft is not public knowledge."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.errors import SchemaError
from private_gsd.schema.arrow_types import is_text
from private_gsd.schema.columns import (
    LARGEST_EXACT,
    Boolean,
    Categorical,
    Column,
    Integer,
    Real,
)
from private_gsd.schema.temporal import DATETIME_RESOLUTIONS, Date, Datetime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A text column with more values than this holds names, notes or identifiers, not categories.
MAX_CATEGORIES = 1_000
# Whole numbers with at most this many values, each frequent, are drafted as categories, since they
# are probably codes.
MAX_INTEGER_CATEGORIES = 20
MAX_DECIMALS = 6

# Spellings that mean "no value" in any column, and those that do so among numbers and dates only.
NULL_SPELLINGS = ("", "?", "NA", "N/A", "n/a", "NULL", "null", "None", "NaN", "nan")
NULL_SPELLINGS_AMONG_NUMBERS = ("N", "-", ".", "*")

_INTEGER = r"^[+-]?(0|[1-9][0-9]{0,15})(\.0+)?$"  # 007 is a code, not a number
_REAL = r"^[+-]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"


class ArrowStream(Protocol):
    """Any object with the Arrow PyCapsule stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule with an Arrow C stream."""


def stream_batches(source: ArrowStream) -> Iterator[pa.RecordBatch]:
    """The record batches of a table."""
    if not hasattr(source, "__arrow_c_stream__"):
        raise SchemaError(
            f"a schema is drafted from a table, not from {source!r}; "
            "open a file first: Schema.draft(private_gsd.open_source('data.csv'))"
        )
    yield from pa.RecordBatchReader.from_stream(source)


def draft_columns(batches: Iterable[pa.RecordBatch]) -> tuple[list[Column], list[str]]:
    """Propose a column for each column of a table, in one pass, with notes on those left out."""
    sketches: dict[str, Sketch] = {}
    for batch in batches:
        names = batch.schema.names
        if len(set(names)) < len(names):
            raise SchemaError("the table has two columns of the same name; rename one")
        for name, array in zip(names, batch.columns, strict=True):
            sketches.setdefault(name, Sketch()).add(array)
    columns = []
    notes = []
    for name, sketch in sketches.items():
        try:
            columns.append(sketch.column(name))
        except SchemaError as error:
            notes.append(f"Left out: column {name!r} ({error}).")
    return columns, notes


@dataclass
class Sketch:
    """The summary of one column while a schema is drafted, with its values while they are few."""

    rows: int = 0
    nulls: int = 0
    text: bool = False
    unsupported: str = ""
    kinds: set[str] = field(
        default_factory=lambda: {"boolean", "integer", "real", "date", "datetime"}
    )
    values: set[Any] = field(default_factory=set)
    spellings: set[str] = field(default_factory=set)
    number_spellings: set[str] = field(default_factory=set)
    low: Any = None
    high: Any = None
    decimals: int = 0
    resolution: int = len(DATETIME_RESOLUTIONS) - 1
    timezone: str | None = None

    def add(self, array: pa.Array) -> None:
        """Add one batch of the column."""
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), None, array)
        self.rows += len(array)
        self.nulls += array.null_count
        if pa.types.is_null(array.type) or self.unsupported:
            return
        try:
            distinct = array.drop_null().unique()
        except pa.ArrowNotImplementedError:
            self.unsupported = f"its type {array.type} is not supported"
            return
        if is_text(array.type):
            self._add_text(distinct, array)
        else:
            self._add_typed(distinct)

    def _add_text(self, distinct: pa.Array, array: pa.Array) -> None:
        self.text = True
        distinct = pc.utf8_trim_whitespace(distinct.cast(pa.string())).unique()
        meaningless = pc.is_in(distinct, pa.array(NULL_SPELLINGS))
        spelled = distinct.filter(meaningless).to_pylist()
        if spelled:
            self.spellings.update(spelled)
            trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
            self.nulls += pc.sum(pc.is_in(trimmed, pa.array(NULL_SPELLINGS))).as_py() or 0
        distinct = distinct.filter(pc.invert(meaningless))
        self._remember(distinct)
        maybe_null = pc.is_in(distinct, pa.array(NULL_SPELLINGS_AMONG_NUMBERS))
        self.number_spellings.update(distinct.filter(maybe_null).to_pylist())
        distinct = distinct.filter(pc.invert(maybe_null))
        if not len(distinct):
            return
        if not set(distinct[:5].to_pylist()) <= {"true", "false", "True", "False"}:
            self.kinds.discard("boolean")
        for kind, pattern in (
            ("integer", _INTEGER),
            ("real", _REAL),
            ("date", _DATE),
            ("datetime", _DATETIME),
        ):
            if (
                kind in self.kinds
                and not pc.all(pc.match_substring_regex(distinct, pattern)).as_py()
            ):
                self.kinds.discard(kind)
        try:
            if self.kinds & {"integer", "real"}:
                numbers = distinct.cast(pa.float64())
                if not pc.all(pc.is_finite(numbers)).as_py():  # such as 1e400
                    self.kinds.clear()
                    return
                self._extend_numbers(numbers)
            elif self.kinds & {"date", "datetime"}:
                self._extend_moments(distinct.cast(pa.timestamp("us")))
        except pa.ArrowInvalid:  # such as 2021-02-30
            self.kinds.clear()

    def _add_typed(self, distinct: pa.Array) -> None:
        kind = distinct.type
        if pa.types.is_boolean(kind):
            self.kinds &= {"boolean"}
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            self.kinds &= {"integer", "real"}
            numbers = distinct.cast(pa.float64(), safe=False)
            if not pc.all(pc.is_finite(numbers)).as_py():
                self.unsupported = "it holds infinite numbers"
            elif len(numbers):
                self._extend_numbers(numbers)
                integers = pa.types.is_integer(kind)
                if not pc.all(pc.equal(pc.floor(numbers), numbers)).as_py():
                    self.kinds.discard("integer")
                self._remember(distinct if integers else numbers)
        elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            self.kinds &= {"date"} if pa.types.is_date(kind) else {"datetime"}
            self.timezone = getattr(kind, "tz", None)
            if self.timezone:
                distinct = pc.local_timestamp(distinct)
            self._extend_moments(distinct.cast(pa.timestamp("us"), safe=False))
        else:
            self.unsupported = f"its type {kind} is not supported"

    def _remember(self, distinct: pa.Array) -> None:
        if len(self.values) <= MAX_CATEGORIES:
            self.values.update(distinct[: MAX_CATEGORIES + 1].to_pylist())

    def _extend(self, low: Any, high: Any) -> None:
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)

    def _extend_numbers(self, numbers: pa.Array) -> None:
        ends = pc.min_max(numbers).as_py()
        self._extend(ends["min"], ends["max"])
        while self.decimals <= MAX_DECIMALS:
            if pc.all(pc.equal(pc.round(numbers, self.decimals), numbers)).as_py():
                break
            self.decimals += 1

    def _extend_moments(self, moments: pa.Array) -> None:
        if not len(moments):
            return
        try:
            ends = pc.min_max(moments).as_py()
        except (ValueError, OverflowError):
            self.unsupported = "it holds dates before the year 1 or after the year 9999"
            return
        self._extend(ends["min"], ends["max"])
        values = moments.to_numpy(zero_copy_only=False)
        units = list(DATETIME_RESOLUTIONS.values())
        while self.resolution and (values.astype(f"M8[{units[self.resolution]}]") != values).any():
            self.resolution -= 1

    def column(self, name: str) -> Column:
        """The proposed column; an error if none can be proposed."""
        if self.unsupported:
            raise SchemaError(self.unsupported)
        common: dict[str, Any] = {"nullable": self.nulls > 0}
        if self.kinds and self.kinds != {"boolean"} and self.text:
            self.values -= self.number_spellings
            self.spellings |= self.number_spellings
            common["nullable"] = self.nulls > 0 or bool(self.number_spellings)
        if self.spellings - {""}:
            common["null_values"] = tuple(sorted(self.spellings | {""}))
        if self.low is None and not self.values and self.kinds != {"boolean"}:
            raise SchemaError("it holds nothing but nulls")
        for kind, propose in (
            ("boolean", self._boolean),
            ("integer", self._integer),
            ("real", self._real),
            ("date", self._date),
            ("datetime", self._datetime),
        ):
            if kind in self.kinds:
                return propose(name, common)
        return self._categorical(name, common)

    def _categorical(self, name: str, common: dict[str, Any]) -> Column:
        filled = self.rows - self.nulls
        if len(self.values) > MAX_CATEGORIES:
            raise SchemaError(f"text with more than {MAX_CATEGORIES} different values")
        if filled >= 100 and len(self.values) > filled / 2:
            raise SchemaError("text that differs from row to row, such as a name or an identifier")
        return Categorical(name, values=tuple(sorted(self.values)), **common)

    def _boolean(self, name: str, common: dict[str, Any]) -> Column:
        return Boolean(name, **common)

    def _integer(self, name: str, common: dict[str, Any]) -> Column:
        filled = self.rows - self.nulls
        values = sorted({_whole(value) for value in self.values})
        few = len(values) <= min(MAX_INTEGER_CATEGORIES, filled / 10)
        if few or len(values) == 1:
            return Categorical(name, values=tuple(values), **common)
        low, high = (int(bound) for bound in round_outwards(self.low, self.high, whole=True))
        if max(-low, high) > LARGEST_EXACT:
            raise SchemaError("whole numbers beyond ±(2^53 - 1), such as an identifier")
        return Integer(name, lower=low, upper=high, **common)

    def _real(self, name: str, common: dict[str, Any]) -> Column:
        decimals = self.decimals if self.decimals <= MAX_DECIMALS else None
        if decimals is not None and max(-self.low, self.high) * 10**decimals > LARGEST_EXACT / 10:
            decimals = None
        low, high = round_outwards(self.low, self.high, whole=decimals == 0)
        if decimals is not None:
            low, high = round(low, decimals), round(high, decimals)
            step = 10.0**-decimals
            low, high = (low if low <= self.low else low - step), max(high, self.high)
        return Real(name, lower=low, upper=high, decimals=decimals, **common)

    def _date(self, name: str, common: dict[str, Any]) -> Column:
        return Date(
            name,
            lower=dt.date(self.low.year, 1, 1),
            upper=dt.date(self.high.year, 12, 31),
            **common,
        )

    def _datetime(self, name: str, common: dict[str, Any]) -> Column:
        return Datetime(
            name,
            lower=dt.datetime(self.low.year, 1, 1),
            upper=dt.datetime(self.high.year, 12, 31, 23, 59, 59, 999_999 * (self.resolution < 2)),
            resolution=list(DATETIME_RESOLUTIONS)[self.resolution],
            timezone=self.timezone,
            **common,
        )


def _whole(value: object) -> int:
    """A whole number, exact to the last digit, from text or from a number."""
    return int(value.partition(".")[0]) if isinstance(value, str) else int(value)  # type: ignore[call-overload]


def round_outwards(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Bounds widened to two digits of their span, so that they are not the values of single rows.

    >>> round_outwards(17, 90, whole=True)
    (17.0, 90.0)
    >>> round_outwards(-7_900, 1_423_000, whole=True)
    (-100000.0, 1500000.0)
    """
    span = high - low if high > low else max(abs(high), 1.0)
    digits = 1 - math.floor(math.log10(span))
    if whole:
        digits = min(digits, 0)
    step = 10.0**-digits
    bounds = math.floor(low / step) * step, math.ceil(high / step) * step
    rounded = tuple(round(bound, max(digits, 0)) for bound in bounds)
    if rounded[0] == rounded[1]:
        rounded = rounded[0] - step, rounded[1] + step
    return float(min(rounded[0], low)), float(max(rounded[1], high))
