"""The kinds of column that hold points in time: dates and datetimes."""

from __future__ import annotations

import datetime as dt
import re
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from private_gsd.schema.columns import LARGEST_EXACT, Numeric

# The names of resolutions, and the NumPy units of the same length.
DATE_RESOLUTIONS = {"day": "D", "month": "M", "year": "Y"}
DATETIME_RESOLUTIONS = {
    "microsecond": "us",
    "millisecond": "ms",
    "second": "s",
    "minute": "m",
    "hour": "h",
    "day": "D",
}

# The parts of a date that each directive of strptime gives; a format may give each part once.
_DAY = ("the year", "the month", "the day")
_CLOCK = ("the hour", "the minute", "the second")
SAYS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("YyG", ("the year",)),
    **dict.fromkeys("mbB", ("the month",)),
    **dict.fromkeys("aAwu", ("the weekday",)),
    **dict.fromkeys("UWV", ("the week",)),
    **dict.fromkeys("HI", ("the hour",)),
    "d": ("the day",),
    "j": ("the month", "the day"),
    "p": ("morning or afternoon",),
    "M": ("the minute",),
    "S": ("the second",),
    "f": ("fractions of a second",),
    "z": ("the offset",),
    "Z": ("the time zone",),
    "c": ("the weekday", *_DAY, *_CLOCK),
    "x": _DAY,
    "X": _CLOCK,
}


@dataclass(frozen=True, kw_only=True)
class _Temporal(Numeric):
    """The base of dates and datetimes: bounds, a resolution and a text format."""

    resolutions: ClassVar[dict[str, str]]

    resolution: str
    format: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.resolution, str) or self.resolution not in self.resolutions:
            raise self._error(
                f"resolution must be one of {', '.join(self.resolutions)}, not {self.resolution!r}"
            )
        if self.format is not None:
            self._check_format(self.format)
        for name in ("lower", "upper"):
            self._set(name, self._parse(name, getattr(self, name)))
        self._require_order()
        low, high = self.bounds
        if low == high:
            raise self._error(f"lower and upper fall in the same {self.resolution}")
        if max(abs(low), abs(high)) > LARGEST_EXACT:
            raise self._error(f"a {self.resolution} is too fine a resolution for these bounds")

    def _check_format(self, pattern: object) -> None:
        told = re.findall(r"%(.)", str(pattern).replace("%%", ""))
        said: set[str] = set()
        for directive in told:
            for part in SAYS.get(directive, ()):
                if part in said:
                    raise self._error(f"format {pattern!r} says {part} twice")
                said.add(part)
        if "p" in told and "I" not in told:
            raise self._error(f"format {pattern!r} has %p, which goes with %I")
        if "z" in told and getattr(self, "timezone", None) is None:
            raise self._error(f"format {pattern!r} has %z, and the column has no timezone")
        example = dt.datetime(2001, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
        with suppress(TypeError, ValueError, re.error):
            dt.datetime.strptime(example.strftime(pattern), pattern)  # type: ignore[arg-type]
            if said and "\0" not in str(pattern):  # which Python takes since 3.14, and C does not
                return
        raise self._error(f"format must be a strptime pattern such as '%d/%m/%Y', not {pattern!r}")

    @abstractmethod
    def _parse(self, name: str, value: object) -> Any:
        """A bound as a value of the column's type, or an error that names the bound."""

    def moment(self, value: object) -> Any:
        """A date or a local time of the column's time zone, from a value or its ISO text."""
        return self._parse("the value", value)

    @property
    def unit(self) -> str:
        """The resolution as a NumPy datetime unit."""
        return self.resolutions[self.resolution]

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds as whole units of the resolution since 1970."""
        moments = np.array([self.lower, self.upper], dtype=f"datetime64[{self.unit}]")
        low, high = moments.astype(np.int64).tolist()
        return float(low), float(high)

    @property
    def domain(self) -> str:
        """The bounds, and the resolution if it is not the default, in words."""
        usual = next(field.default for field in fields(self) if field.name == "resolution")
        suffix = "" if self.resolution == usual else f" by {self.resolution}"
        return f"{self.lower} to {self.upper}{suffix}"


@dataclass(frozen=True, kw_only=True)
class Date(_Temporal):
    """A column of calendar dates between two bounds, both included.

    Attributes:
        lower: The first date.
        upper: The last date.
        resolution: "day", "month" or "year"; values are rounded down.
        format: The strptime format of dates in text; ISO 8601 by default.
    """

    kind: ClassVar[str] = "date"
    resolutions: ClassVar[dict[str, str]] = DATE_RESOLUTIONS

    lower: dt.date
    upper: dt.date
    resolution: str = "day"

    def _parse(self, name: str, value: object) -> dt.date:
        if isinstance(value, str):
            with suppress(ValueError):
                return dt.date.fromisoformat(value)
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return value
        raise self._error(f"{name} must be a date such as 2020-12-31, not {value!r}")

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type: date in days."""
        return pa.date32()


@dataclass(frozen=True, kw_only=True)
class Datetime(_Temporal):
    """A column of moments between two bounds, both included.

    Attributes:
        lower: The first moment, in local time (of ``timezone``, if there is one).
        upper: The last moment, in local time.
        resolution: From "microsecond" to "day"; values are rounded down.
        format: The strptime format of moments in text; ISO 8601 by default.
        timezone: An IANA name such as "Europe/Vienna", for columns with a time zone. Values are
            encoded as local times of this zone.
    """

    kind: ClassVar[str] = "datetime"
    resolutions: ClassVar[dict[str, str]] = DATETIME_RESOLUTIONS

    lower: dt.datetime
    upper: dt.datetime
    resolution: str = "second"
    timezone: str | None = None

    def __post_init__(self) -> None:
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (KeyError, ValueError, TypeError, OSError):
                raise self._error(
                    f"timezone must be an IANA name such as 'Europe/Vienna', not {self.timezone!r}"
                ) from None
        super().__post_init__()

    def _parse(self, name: str, value: object) -> dt.datetime:
        if isinstance(value, str):
            with suppress(ValueError):
                value = dt.datetime.fromisoformat(value)
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            value = dt.datetime(value.year, value.month, value.day)
        if not isinstance(value, dt.datetime):
            raise self._error(
                f"{name} must be a date and time such as 2020-12-31T23:59:59, not {value!r}"
            )
        if value.tzinfo is not None:
            if self.timezone is None:
                raise self._error(f"{name} has a time zone and the column none; add timezone = …")
            try:
                value = value.astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)
            except OverflowError:
                raise self._error(f"{name} ({value}) is too early or too late") from None
        return value

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type: timestamp in microseconds, with the time zone if there is one."""
        return pa.timestamp("us", tz=self.timezone)
