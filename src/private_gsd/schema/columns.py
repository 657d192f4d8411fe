"""The kinds of column, as frozen values with the public knowledge about a column.

A column is *discrete* (a finite list of values: categorical, boolean) or *numeric* (bounds on a
line: integer and real here, date and datetime in ``temporal``). Every kind may be nullable; null is
a value of its own.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from private_gsd.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

# The row matrix is float64, which represents all whole numbers up to this one exactly.
LARGEST_EXACT = 2**53 - 1
LARGEST_REAL = sys.float_info.max


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """One column; the base of all kinds of column.

    Attributes:
        name: The column's name, as in the table.
        nullable: Whether a null may occur.
        null_values: The texts that are read as null; the empty text by default.
        description: A description for readers.
    """

    kind: ClassVar[str]

    name: str = field(kw_only=False)
    nullable: bool = False
    null_values: tuple[str, ...] = ("",)
    description: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise SchemaError(f"a column name must be text that is not blank, not {self.name!r}")
        if not isinstance(self.nullable, bool):
            raise self._error(f"nullable must be true or false, not {self.nullable!r}")
        if not isinstance(self.description, str):
            raise self._error(f"description must be text, not {self.description!r}")
        spellings = self._as_tuple("null_values", self.null_values)
        if not all(isinstance(spelling, str) for spelling in spellings):
            raise self._error(f"null_values must be a list of texts, not {list(spellings)!r}")

    def _error(self, message: str) -> SchemaError:
        return SchemaError(f"column {self.name!r}: {message}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _as_tuple(self, name: str, value: object) -> tuple[Any, ...]:
        """Store a list-like field as a tuple, so that the column is hashable."""
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
            raise self._error(f"{name} must be a list, not {value!r}")
        self._set(name, tuple(value))
        return tuple(value)

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of decoded values."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest encoded value, both included."""

    @property
    @abstractmethod
    def domain(self) -> str:
        """The allowed values in words, for messages and tables."""

    @property
    def expected(self) -> str:
        """The kind and the allowed values, for messages."""
        return f"{self.kind} {self.domain}"


class Discrete(Column):
    """A column with a finite list of values; a value is encoded as its position in the list."""

    values: Sequence[str] | Sequence[int] | Sequence[bool]

    @property
    def bounds(self) -> tuple[float, float]:
        """The first and the last position."""
        return 0.0, float(len(self.values) - 1)


class Numeric(Column):
    """A column of numbers or moments between two bounds."""

    lower: Any
    upper: Any

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound on the encoded scale, both included."""
        return float(self.lower), float(self.upper)

    @property
    def domain(self) -> str:
        """The allowed values in words."""
        return f"{self.lower} to {self.upper}"

    def _require_order(self) -> None:
        if not self.lower < self.upper:
            raise self._error(
                f"lower ({self.lower}) must be less than upper ({self.upper}); "
                "both bounds belong to the domain"
            )


@dataclass(frozen=True, kw_only=True)
class Categorical(Discrete):
    """A column with explicit values: all texts, all integers or all booleans.

    >>> Categorical("sex", values=["1", "2"]).domain
    "'1', '2'"

    Attributes:
        values: The public list of values, without repeats; stored as a tuple.
        other: The value that replaces unknown values when reading with ``on_invalid="coerce"``.
    """

    kind: ClassVar[str] = "categorical"

    values: Sequence[str] | Sequence[int] | Sequence[bool]
    other: str | int | bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        values = self._as_tuple("values", self.values)
        if not values:
            raise self._error("values is empty; list every value that may occur")
        kinds = {type(value) for value in values}
        if len(kinds) > 1 or not kinds <= {str, int, bool}:
            raise self._error(
                "values must be all texts, all integers or all booleans; found "
                + ", ".join(sorted(kind.__name__ for kind in kinds))
                + ' (write numbers with decimals as texts: "0.5")'
            )
        seen: set[object] = set()
        for value in values:
            if value in seen:
                raise self._error(f"value {value!r} is listed twice in values")
            seen.add(value)
            if str(value) and str(value) in self.null_values:
                raise self._error(f"{value!r} is both one of values and one of null_values")
        if kinds == {int} and any(abs(value) >= 2**63 for value in values):
            raise self._error("integer values must fit in 64 bits; write longer codes as texts")
        if self.other is not None and self.other not in values:
            raise self._error(f"other ({self.other!r}) must be one of values")

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the values: text, int64 or boolean."""
        return {str: pa.string(), int: pa.int64(), bool: pa.bool_()}[type(self.values[0])]

    @property
    def domain(self) -> str:
        """The first values, and their number."""
        shown = ", ".join(repr(value) for value in self.values[:5])
        return shown if len(self.values) <= 5 else f"{shown}, … ({len(self.values)} values)"


@dataclass(frozen=True, kw_only=True)
class Boolean(Discrete):
    """A column of true and false."""

    kind: ClassVar[str] = "boolean"
    values: ClassVar[tuple[bool, bool]] = (False, True)  # type: ignore[misc]

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type: boolean."""
        return pa.bool_()

    @property
    def domain(self) -> str:
        """The allowed values in words."""
        return "true or false"


@dataclass(frozen=True, kw_only=True)
class Integer(Numeric):
    """A column of whole numbers between two bounds, both included."""

    kind: ClassVar[str] = "integer"

    lower: int
    upper: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("lower", self.lower), ("upper", self.upper)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise self._error(f"{name} must be a whole number, not {value!r}")
            if abs(value) > LARGEST_EXACT:
                raise self._error(
                    f"{name} ({value}) is beyond ±(2^53 - 1); if the numbers are codes, "
                    'use kind = "categorical"'
                )
        self._require_order()

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type: int64."""
        return pa.int64()


@dataclass(frozen=True, kw_only=True)
class Real(Numeric):
    """A column of real numbers between two bounds, both included.

    Attributes:
        lower: The least value.
        upper: The greatest value.
        decimals: The number of decimals of decoded values; None for no rounding.
    """

    kind: ClassVar[str] = "real"

    lower: float
    upper: float
    decimals: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("lower", self.lower), ("upper", self.upper)):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self._error(f"{name} must be a number, not {value!r}")
            if not abs(value) <= LARGEST_REAL:  # refuses NaN, too
                raise self._error(f"{name} must be finite, not {value!r:.40}")
            self._set(name, float(value))
        self._require_order()
        if not math.isfinite(self.upper - self.lower):
            raise self._error("the span from lower to upper must be finite")
        if self.decimals is not None:
            self._check_decimals(self.decimals)

    def _check_decimals(self, decimals: object) -> None:
        if isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= 15:
            raise self._error(f"decimals must be a whole number from 0 to 15, not {decimals!r}")
        if max(abs(self.lower), abs(self.upper)) * 10**decimals > LARGEST_EXACT:
            raise self._error(f"{decimals} decimals are finer than a float64 of this size can hold")
        for name in ("lower", "upper"):
            value = getattr(self, name)
            if round(value, decimals) != value:
                raise self._error(f"{name} ({value}) has more than {decimals} decimals")

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type: float64."""
        return pa.float64()

    @property
    def domain(self) -> str:
        """The bounds, and the decimals if declared, in words."""
        plural = "" if self.decimals == 1 else "s"
        suffix = "" if self.decimals is None else f", {self.decimals} decimal{plural}"
        return f"{self.lower:.15g} to {self.upper:.15g}{suffix}"
