"""Comparisons: a column with a constant, two columns, or two numbers, as checked expressions."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from private_gsd.errors import did_you_mean, expect_type
from private_gsd.schema import Date, Datetime, Discrete, Numeric, Real
from private_gsd.sql.arithmetic import NumberReader, alike, sort_of, units_of
from private_gsd.sql.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    ColumnTest,
    Comparison,
    Constant,
    ConstantTruth,
    Truth,
    both,
    either,
    tidy,
)
from private_gsd.sql.predicate_text import bare, is_text, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_gsd.sql.predicate_text import Node

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


class ComparisonReader(NumberReader):
    """Reads the comparisons in the text of a predicate."""

    def compare(self, left: Node, operator: str, right: Node) -> Truth:
        """A comparison as an expression."""
        left, right = bare(left), bare(right)
        if isinstance(left, exp.Null) or isinstance(right, exp.Null):
            return ConstantTruth(UNKNOWN)
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            pair = self._two_lists(left, operator, right)
            if pair is not None:
                return pair
        for one, other, sign in ((left, right, operator), (right, left, FLIPPED[operator])):
            if isinstance(one, exp.Column) and not list(other.find_all(exp.Column)):
                return self._with_constant(one, sign, other)
        return self._numbers(left, operator, right)

    def _with_constant(self, node: exp.Column, operator: str, other: Node) -> Truth:
        """A column and a constant: looked up by code, or by segment."""
        position, column = self.column(node)
        if isinstance(column, Discrete):
            value = self._category(column, other, operator)
            compare = _compares(operator)
            truths = tuple(TRUE if compare(each, value) else FALSE for each in column.values)
            return ColumnTest(position, truths, UNKNOWN)
        number = expect_type(Numeric, column)
        bound = self._bound(number, other)
        if math.isnan(bound):
            return ConstantTruth(UNKNOWN)
        return _segments(position, number, operator, bound)

    def _category(self, column: Discrete, node: Node, operator: str) -> Any:
        """A constant to compare categories with; for = and <>, one of the column's values."""
        kind = type(column.values[0])
        number = self.plain_number(node)
        member = operator in ("=", "<>")
        value: Any = None
        if is_text(node) and kind is str:
            value = node.this
        elif isinstance(node, exp.Boolean) and kind is bool:
            value = bool(node.this)
        elif number is not None and kind is int:
            value = number
        elif number in (0, 1) and kind is bool:
            value = bool(number)
        elif number is not None and member and _has_numbers(column):
            value = self._text_of(column, node, number)
        else:
            expected = {
                str: "texts in single quotes",
                int: "whole numbers",
                bool: "TRUE and FALSE, or 1 and 0",
            }[kind]
            raise self.error(
                node, f"column {column.name!r} is compared with {expected}, not with {shown(node)}"
            )
        if member and value not in column.values:
            name = str(value) if isinstance(value, Decimal) else repr(value)
            hint = did_you_mean(str(value), [str(each) for each in column.values])
            raise self.error(
                node, f"{name} is no value of column {column.name!r}{hint}: {column.domain}"
            )
        return value

    def _text_of(self, column: Discrete, node: Node, number: Decimal) -> str | Decimal:
        """The one text among a column's values that writes a number; else the number."""
        found = [str(value) for value in column.values if _number_of(value) == number]
        if len(found) > 1:
            texts = " or ".join(map(repr, found[:5]))
            raise self.error(
                node, f"{number} may be {texts} of column {column.name!r}; write one in quotes"
            )
        return found[0] if found else number

    def _bound(self, column: Numeric, node: Node) -> float:
        """A constant on the scale of a column's encoded values."""
        if isinstance(column, Date | Datetime):
            return self._moment(column, node)
        found = self.number(node)
        if found.sort is not None or not isinstance(found.number, Constant):
            raise self.error(node, f"column {column.name!r} is {column.kind}; give a number")
        return found.number.number

    def _moment(self, column: Date | Datetime, node: Node) -> float:
        if is_text(node):  # as the column writes its moments
            moment = self.parsed(node)
            if isinstance(column, Date) and moment.time() != dt.time():
                raise self.error(node, f"column {column.name!r} holds days, without a time of day")
            return units_of(moment, column.unit)
        found = self.number(node)
        if found.sort != "moment" or not isinstance(found.number, Constant):
            raise self.error(
                node,
                f"column {column.name!r} is {column.kind}; give a date such as '2020-12-31', not "
                f"{shown(node)}",
            )
        seconds = found.number.number * found.unit
        if math.isnan(seconds):
            return math.nan
        try:
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
        except OverflowError:
            raise self.error(node, "this moment is beyond the years 1 to 9999") from None
        return units_of(moment, column.unit)

    def _two_lists(self, left: exp.Column, operator: str, right: exp.Column) -> Truth | None:
        """Two columns of categories; None where both hold numbers."""
        (one, mine), (other, theirs) = self.column(left), self.column(right)
        if not isinstance(mine, Discrete) and not isinstance(theirs, Discrete):
            return None
        if not (
            isinstance(mine, Discrete)
            and isinstance(theirs, Discrete)
            and type(mine.values[0]) is type(theirs.values[0])
        ):
            raise self.error(
                left,
                f"column {mine.name!r} ({mine.kind}) and column {theirs.name!r} ({theirs.kind}) "
                "cannot be compared",
            )
        compare = _compares(operator)
        if len(mine.values) * len(theirs.values) > 4096:
            raise self.error(left, "columns with so many values cannot be compared")
        if one == other:
            truths = tuple(TRUE if compare(v, v) else FALSE for v in mine.values)
            return ColumnTest(one, truths, UNKNOWN)
        # One alternative for each value of the first: unknown where either is null.
        parts = []
        for code, value in enumerate(mine.values):
            here = tuple(TRUE if each == code else FALSE for each in range(len(mine.values)))
            there = tuple(TRUE if compare(value, each) else FALSE for each in theirs.values)
            parts.append(both([ColumnTest(one, here, UNKNOWN), ColumnTest(other, there, UNKNOWN)]))
        nulls = [
            ColumnTest(one, (FALSE,) * len(mine.values), UNKNOWN),
            ColumnTest(other, (FALSE,) * len(theirs.values), UNKNOWN),
        ]
        return either([*parts, *nulls])

    def _numbers(self, left: Node, operator: str, right: Node) -> Truth:
        """Two numbers, made of several columns."""
        one, other = self.number(left, right), self.number(right, left)
        if one.sort != other.sort:
            raise self.error(
                left,
                f"{sort_of(one)} ({shown(left)}) cannot be compared with "
                f"{sort_of(other)} ({shown(right)})",
            )
        one, other = alike(one, other)
        if isinstance(one.number, Constant) and isinstance(other.number, Constant):
            first, second = one.number.number, other.number.number
            if math.isnan(first) or math.isnan(second):
                return ConstantTruth(UNKNOWN)
            return ConstantTruth(TRUE if _compares(operator)(first, second) else FALSE)
        return Comparison(operator, one.number, other.number)


def _segments(position: int, column: Numeric, operator: str, bound: float) -> ColumnTest:
    """A number compared with a constant, as segments of the column's domain."""
    at = _cut(column, bound)
    after = _cut(column, math.nextafter(bound, math.inf))
    cuts = {
        "<": ((at,), (TRUE, FALSE)),
        "<=": ((after,), (TRUE, FALSE)),
        ">": ((after,), (FALSE, TRUE)),
        ">=": ((at,), (FALSE, TRUE)),
        "=": ((at, after), (FALSE, TRUE, FALSE)),
        "<>": ((at, after), (TRUE, FALSE, TRUE)),
    }
    breaks, truths = cuts[operator]
    low, high = column.bounds
    kept: list[float] = []
    told: list[int] = [truths[0]]
    for each, truth in zip(breaks, truths[1:], strict=True):
        if each <= low:
            told = [truth]  # nothing lies before it
        elif each <= high:
            if kept and kept[-1] == each:
                told[-1] = truth
            else:
                kept.append(each)
                told.append(truth)
    return tidy(ColumnTest(position, tuple(told), UNKNOWN, tuple(kept)))


def _has_numbers(column: Discrete) -> bool:
    return any(_number_of(value) is not None for value in column.values)


def _number_of(value: object) -> Decimal | None:
    """The number that a text writes in digits, if it does.

    >>> _number_of("01"), _number_of("1.50"), _number_of("1e5")
    (Decimal('1'), Decimal('1.50'), None)
    """
    written = isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", value)
    return Decimal(written[0]) if written else None


def _cut(column: Numeric, bound: float) -> float:
    """Where a column is cut: of whole numbers and moments, at the next whole one."""
    if isinstance(column, Real) or not math.isfinite(bound):
        return bound
    return float(math.ceil(bound))


def _compares(operator: str) -> Callable[[Any, Any], bool]:
    return {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
    }[operator]
