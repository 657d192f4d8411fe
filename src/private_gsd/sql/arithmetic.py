"""Arithmetic: the numbers in the text of a predicate, made of columns and constants."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sqlglot import exp

from private_gsd.schema import Date, Datetime, Integer, Real
from private_gsd.sql.evaluating import divided
from private_gsd.sql.expressions import Arithmetic, ColumnValue, Constant, Number
from private_gsd.sql.predicate_text import PredicateText, bare, is_text, short

if TYPE_CHECKING:
    from private_gsd.sql.predicate_text import Node

MOMENT = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([+-]\d{2}:?\d{2}|Z)?)?"

# The seconds of each unit of time with a fixed length; months and years have none.
SECONDS = {"D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
SPANS = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}

BINARY = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}


class Quantity(NamedTuple):
    """A number, and what it measures: None, a "moment", or a "span" of time in seconds a unit."""

    number: Number
    sort: str | None = None
    unit: float = 1.0


class NumberReader(PredicateText):
    """Reads the numbers in the text of a predicate."""

    def number(self, node: Node, beside: Node | None = None) -> Quantity:
        """A number; a text that is compared with a moment is read as a moment."""
        node = bare(node)
        if isinstance(node, exp.Null):
            return Quantity(Constant(math.nan))
        if isinstance(node, exp.Column):
            return self._number_of_column(node)
        if isinstance(node, exp.Literal) and not node.is_string:
            return Quantity(Constant(self.literal(node)))
        if is_text(node) and beside is not None and self._has_moments(beside):
            return Quantity(Constant(units_of(self.parsed(node), "us")), "moment", SECONDS["us"])
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Interval):
            return self._interval(node)
        if isinstance(node, exp.Neg):
            inner = self.number(node.this)
            if inner.sort == "moment":
                raise self.error(node, "a moment has no sign")
            return _folded("-", Quantity(Constant(0.0), inner.sort, inner.unit), inner)
        if isinstance(node, exp.Abs):
            inner = self.number(node.this)
            if inner.sort == "moment":
                raise self.error(node, "a moment has no sign")
            if isinstance(inner.number, Constant):
                return inner._replace(number=Constant(abs(inner.number.number)))
            return inner._replace(number=Arithmetic("abs", (inner.number,)))
        if isinstance(node, exp.Coalesce):
            return self._coalesce(node)
        for kind, operator in BINARY.items():
            if type(node) is kind:
                return self._binary(node, operator)
        raise self.unsupported(node)

    def literal(self, node: exp.Literal) -> float:
        """The value of a number in the text."""
        try:
            return float(node.this)
        except ValueError:  # the parser takes 1e for a number
            raise self.error(node, f"{short(node.this)!r} is not a number") from None

    def plain_number(self, node: Node) -> Decimal | None:
        """A number with its sign, if it is one; all its digits count."""
        negative = False
        while isinstance(node, exp.Neg):
            node, negative = bare(node.this), not negative
        if not isinstance(node, exp.Literal) or node.is_string:
            return None
        try:
            number = Decimal(node.this)
        except InvalidOperation:  # no number, or one beyond all others
            number = Decimal(self.literal(node))
        return number.copy_negate() if negative else number

    def _number_of_column(self, node: exp.Column) -> Quantity:
        position, column = self.column(node)
        if isinstance(column, Integer | Real):
            return Quantity(ColumnValue(position))
        if isinstance(column, Date | Datetime):
            if column.unit not in SECONDS:
                raise self.error(
                    node,
                    f"column {column.name!r} has no days, only {column.resolution}s",
                )
            return Quantity(ColumnValue(position), "moment", SECONDS[column.unit])
        raise self.error(node, f"column {column.name!r} is {column.kind}, not a number")

    def _has_moments(self, node: Node) -> bool:
        return any(
            isinstance(self.column(each)[1], Date | Datetime) for each in node.find_all(exp.Column)
        )

    def _cast(self, node: exp.Cast) -> Quantity:
        kind = node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this)
        inner = bare(node.this)
        if kind not in ("DATE", "TIMESTAMP", "DATETIME", "TIMESTAMPNTZ") or not is_text(inner):
            raise self.unsupported(node)
        moment = self.parsed(inner)
        if kind == "DATE":
            day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
            return Quantity(Constant(units_of(day, "D")), "moment", SECONDS["D"])
        return Quantity(Constant(units_of(moment, "us")), "moment", SECONDS["us"])

    def _interval(self, node: exp.Interval) -> Quantity:
        unit = (node.text("unit") or "").lower().rstrip("s")
        try:
            amount = float(node.this.this) if node.this is not None else math.nan
        except (TypeError, ValueError, AttributeError):
            amount = math.nan
        if unit not in SPANS or not math.isfinite(amount):
            raise self.error(node, "an interval is of weeks, days, hours, minutes or seconds")
        return Quantity(Constant(amount * SPANS[unit]), "span", 1.0)

    def _coalesce(self, node: exp.Coalesce) -> Quantity:
        parts = [self.number(each, node.this) for each in (node.this, *node.expressions)]
        if len({part.sort for part in parts}) > 1:
            raise self.error(node, "what coalesce() chooses from must be of one sort")
        first = parts[0]
        for part in parts[1:]:
            first, other = alike(first, part)
            if isinstance(first.number, Constant):
                first = other if math.isnan(first.number.number) else first
                continue
            first = first._replace(number=Arithmetic("coalesce", (first.number, other.number)))
        return first

    def _binary(self, node: Node, operator: str) -> Quantity:
        one, other = self.number(node.left, node.right), self.number(node.right, node.left)
        sorts = (one.sort, other.sort)
        if operator in "+-" and sorts == ("moment", None) and one.unit == SECONDS["D"]:
            other = Quantity(other.number, "span", SECONDS["D"])  # a date and a number of days
        elif operator == "+" and sorts == (None, "moment") and other.unit == SECONDS["D"]:
            one = Quantity(one.number, "span", SECONDS["D"])
        sorts = (one.sort, other.sort)
        sort: str | None
        if sorts == (None, None):
            return _folded(operator, one, other)
        if operator == "+" and "moment" in sorts and "span" in sorts:
            sort = "moment"
        elif operator == "-" and sorts == ("moment", "moment"):
            # Days between dates are a plain number, as in DuckDB and PostgreSQL.
            sort = None if one.unit == other.unit == SECONDS["D"] else "span"
        elif operator == "-" and sorts == ("moment", "span"):
            sort = "moment"
        elif operator in "+-" and sorts == ("span", "span"):
            sort = "span"
        else:
            raise self.error(
                node, f"{sort_of(one)} and {sort_of(other)} cannot be joined with {operator}"
            )
        one, other = alike(one, other)
        return _folded(operator, one, other)._replace(sort=sort)

    def parsed(self, node: Node) -> dt.datetime:
        """A date or a moment, from its text."""
        try:
            if not re.fullmatch(MOMENT, node.this):
                raise ValueError
            moment = dt.datetime.fromisoformat(node.this)
        except ValueError:
            raise self.error(node, f"{short(node.this)!r} is no date such as 2020-12-31") from None
        if moment.tzinfo is not None:
            raise self.error(node, "give the moment as the column's own clock shows it")
        return moment


def _folded(operator: str, one: Quantity, other: Quantity) -> Quantity:
    """An operation; its result where both operands are constants."""
    if isinstance(one.number, Constant) and isinstance(other.number, Constant):
        first, second = one.number.number, other.number.number
        return one._replace(number=Constant(_computed(operator, first, second)))
    return one._replace(number=Arithmetic(operator, (one.number, other.number)))


def _computed(operator: str, first: float, second: float) -> float:
    """The result for two constants; in decimals, as in databases: 0.1 + 0.2 is 0.3."""
    if operator == "/":
        return divided(first, second)
    if not (math.isfinite(first) and math.isfinite(second)):
        return {"+": first + second, "-": first - second, "*": first * second}[operator]
    one, other = Decimal(repr(first)), Decimal(repr(second))
    return float({"+": one + other, "-": one - other, "*": one * other}[operator])


def alike(one: Quantity, other: Quantity) -> tuple[Quantity, Quantity]:
    """Two quantities, both in the smaller of their units of time."""
    if one.sort is None and other.sort is None:
        return one, other
    unit = min(one.unit, other.unit)
    return _in_unit(one, unit), _in_unit(other, unit)


def _in_unit(number: Quantity, unit: float) -> Quantity:
    factor = round(number.unit / unit)
    if factor == 1:
        return number
    inner = number.number
    if isinstance(inner, Constant):
        scaled: Number = Constant(inner.number * factor)
    elif isinstance(inner, ColumnValue):
        scaled = ColumnValue(inner.position, inner.factor * factor)
    else:
        scaled = Arithmetic("*", (inner, Constant(float(factor))))
    return Quantity(scaled, number.sort, unit)


def units_of(moment: dt.datetime, unit: str) -> float:
    """A moment in units since 1970: the fraction of a unit that has begun counts as a whole."""
    exact = np.datetime64(moment, "us")
    floor = exact.astype(f"datetime64[{unit}]")
    begun = floor.astype("datetime64[us]") < exact
    return float(floor.astype(np.int64)) + (0.5 if begun else 0.0)


def sort_of(number: Quantity) -> str:
    """What a number measures, in words."""
    return {None: "a number", "moment": "a moment", "span": "a span of time"}[number.sort]
