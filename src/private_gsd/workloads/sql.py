"""SQL: the text of a WHERE clause, parsed and checked against a schema. Nothing is ever executed.

Errors point at the place in the text. What is not understood is refused: there is no function, type
or operator that is passed on to a database.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlglot
from sqlglot import exp

from private_gsd.errors import WorkloadError, did_you_mean
from private_gsd.schema import Date, Datetime, Discrete, Integer, Numeric, Real
from private_gsd.workloads.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Arithmetic,
    Comparison,
    Constant,
    Known,
    Number,
    Test,
    Truth,
    Value,
    both,
    contrary,
    either,
    just,
    tidy,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_gsd.schema import Column, Schema

Node = Any  # sqlglot has changed the name of its base class
MAX_LENGTH = 10_000
MAX_DEPTH = 50
MAX_NODES = 2_000
SHOWN = 60

# Seconds in each unit of time that has a length of its own; months and years have not.
SECONDS = {"D": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
SPANS = {"week": 604800, "day": 86400, "hour": 3600, "minute": 60, "second": 1}

OPERATORS = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "<>"}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
BINARY = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
ALLOWED = (
    "comparisons, BETWEEN, IN lists, LIKE, IS NULL, IS TRUE, AND, OR, NOT, + - * /, abs(), "
    "coalesce(), DATE and TIMESTAMP literals and INTERVALs up to weeks"
)


class _Number(NamedTuple):
    """A number, and what it measures: None, a "moment", or a "span" of time in seconds a unit."""

    number: Number
    sort: str | None = None
    unit: float = 1.0


def parse_predicate(schema: Schema, text: str) -> Truth:
    """A WHERE clause as a checked expression.

    Args:
        schema: The public schema.
        text: The clause, without the word WHERE.
    """
    if not isinstance(text, str) or not text.strip():
        raise WorkloadError(f"a predicate is a text such as 'age < 30', not {text!r:.80}")
    if len(text) > MAX_LENGTH:
        raise WorkloadError(
            f"a predicate of {len(text):,} characters is longer than the {MAX_LENGTH:,} allowed: "
            f"{_short(text)}"
        )
    return _Reader(schema, text).read()


class _Reader:
    def __init__(self, schema: Schema, text: str) -> None:
        self.schema = schema
        self.text = text

    def read(self) -> Truth:
        self._check_depth()
        try:
            found = [each for each in sqlglot.parse(self.text, read="duckdb") if each is not None]
        except sqlglot.errors.ParseError as error:
            details = error.errors[0] if error.errors else {}
            place = None
            if details.get("col") is not None and details.get("line") is not None:
                lines = self.text.split("\n")
                before = sum(len(line) + 1 for line in lines[: details["line"] - 1])
                place = before + max(details["col"] - len(details.get("highlight") or " "), 0)
            raise self._error_at(place, "this is not SQL that can be understood") from None
        except sqlglot.errors.SqlglotError as error:
            line = str(error).partition("\n")[0][:100]
            raise self._error_at(None, f"this is not SQL that can be understood: {line}") from None
        except RecursionError:
            raise self._error_at(None, "it is nested too deeply") from None
        if len(found) != 1:
            raise self._error_at(None, f"expected one condition, found {len(found)}")
        if sum(1 for _ in found[0].walk()) > MAX_NODES:
            raise self._error_at(None, f"it has more than {MAX_NODES:,} parts")
        return self.truth(found[0])

    def _check_depth(self) -> None:
        """The parser calls itself for each parenthesis and NOT."""
        depth = 0
        for place, sign in enumerate(self.text):
            depth += (sign in "([{") - (sign in ")]}")
            if depth > MAX_DEPTH:
                raise self._error_at(place, f"it is nested more than {MAX_DEPTH} deep")

    # Errors

    def error(self, node: Node, message: str) -> WorkloadError:
        """An error that points at a part of the text."""
        places = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        return self._error_at(min(places) if places else None, message)

    def _error_at(self, place: int | None, message: str) -> WorkloadError:
        if place is None:
            return WorkloadError(f"in the predicate {_short(self.text)!r}: {message}")
        start = max(0, place - SHOWN // 2)
        shown = re.sub(r"\s", " ", self.text[start : start + SHOWN])
        lead = "…" if start else ""
        return WorkloadError(
            f"in the predicate, at character {place + 1}: {message}\n"
            f"  {lead}{shown}{'…' if start + SHOWN < len(self.text) else ''}\n"
            f"  {' ' * (place - start + len(lead))}^"
        )

    def unsupported(self, node: Node) -> WorkloadError:
        """What is not understood."""
        name = node.sql(dialect="duckdb")
        return self.error(node, f"{_short(name)!r} is not supported; there are {ALLOWED}")

    # Truths

    def truth(self, node: Node) -> Truth:
        """A condition."""
        if isinstance(node, exp.Paren):
            return self.truth(node.this)
        if isinstance(node, exp.And):
            return both([self.truth(node.left), self.truth(node.right)])
        if isinstance(node, exp.Or):
            return either([self.truth(node.left), self.truth(node.right)])
        if isinstance(node, exp.Not):
            return contrary(self.truth(node.this))
        if isinstance(node, exp.Boolean):
            return Known(TRUE if node.this else FALSE)
        if isinstance(node, exp.Null):
            return Known(UNKNOWN)
        if isinstance(node, exp.Column):
            return self._flag(node)
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.Between):
            if node.args.get("symmetric"):
                raise self.unsupported(node)
            low, high = node.args["low"], node.args["high"]
            return both([self._compare(node.this, ">=", low), self._compare(node.this, "<=", high)])
        if isinstance(node, exp.In):
            if node.args.get("query") or node.args.get("unnest") or not node.expressions:
                raise self.unsupported(node)
            return either([self._compare(node.this, "=", each) for each in node.expressions])
        if isinstance(node, exp.Like):
            return self._like(node)
        for kind, operator in OPERATORS.items():
            if type(node) is kind:
                return self._compare(node.left, operator, node.right)
        raise self.unsupported(node)

    def _flag(self, node: exp.Column) -> Truth:
        """A boolean column by itself."""
        position, column = self.column(node)
        if not isinstance(column, Discrete) or not isinstance(column.values[0], bool):
            raise self.error(node, f"column {column.name!r} is {column.kind}, not a condition")
        return Test(position, tuple(TRUE if v else FALSE for v in column.values), UNKNOWN)

    def _is(self, node: exp.Is) -> Truth:
        what = node.expression
        if isinstance(what, exp.Boolean):
            return just(self.truth(node.this), TRUE if what.this else FALSE)
        if not isinstance(what, exp.Null):
            raise self.unsupported(node)
        inner = _bare(node.this)
        if isinstance(inner, exp.Column):
            position, column = self.column(inner)
            size = len(column.values) if isinstance(column, Discrete) else 1
            return Test(position, (FALSE,) * size, TRUE)
        return just(self.truth(node.this), UNKNOWN)

    def _like(self, node: exp.Like) -> Truth:
        inner, pattern = _bare(node.this), _bare(node.expression)
        if not isinstance(inner, exp.Column) or not _is_text(pattern):
            raise self.unsupported(node)
        position, column = self.column(inner)
        if not isinstance(column, Discrete) or not isinstance(column.values[0], str):
            raise self.error(node, f"column {column.name!r} holds no texts for LIKE to look at")
        parts = ({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern.this)
        wanted = re.compile("".join(parts), re.DOTALL)
        truths = tuple(TRUE if wanted.fullmatch(str(v)) else FALSE for v in column.values)
        return Test(position, truths, UNKNOWN)

    # Comparisons

    def _compare(self, left: Node, operator: str, right: Node) -> Truth:
        left, right = _bare(left), _bare(right)
        if isinstance(left, exp.Null) or isinstance(right, exp.Null):
            return Known(UNKNOWN)
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
            value = self._listed(column, other, operator in ("=", "<>"))
            compare = _compares(operator)
            truths = tuple(TRUE if compare(each, value) else FALSE for each in column.values)
            return Test(position, truths, UNKNOWN)
        assert isinstance(column, Numeric)
        bound = self._bound(column, other)
        if math.isnan(bound):
            return Known(UNKNOWN)
        return _segments(position, column, operator, bound)

    def _listed(self, column: Discrete, node: Node, member: bool) -> Any:
        """A constant to compare a column of categories with; one of its values, if need be."""
        kind = type(column.values[0])
        value: Any = None
        if _is_text(node) and kind is str:
            value = node.this
        elif isinstance(node, exp.Boolean) and kind is bool:
            value = bool(node.this)
        elif kind is int and _plain_number(node) is not None:
            value = _plain_number(node)
        else:
            words = {str: "texts in single quotes", int: "whole numbers", bool: "TRUE and FALSE"}
            raise self.error(
                node,
                f"column {column.name!r} is compared with {words[kind]}, not with "
                f"{_short(node.sql(dialect='duckdb'))}",
            )
        if member and value not in column.values:
            hint = did_you_mean(str(value), [str(each) for each in column.values])
            raise self.error(
                node, f"{value!r} is no value of column {column.name!r}{hint}: {column.domain}"
            )
        return value

    def _bound(self, column: Numeric, node: Node) -> float:
        """A constant on the scale of a column's encoded values."""
        if isinstance(column, Date | Datetime):
            return self._moment(column, node)
        found = self.number(node)
        if found.sort is not None or not isinstance(found.number, Constant):
            raise self.error(node, f"column {column.name!r} is {column.kind}; give a number")
        return found.number.number

    def _moment(self, column: Date | Datetime, node: Node) -> float:
        if _is_text(node):  # as the column writes its moments
            moment = self._parsed(node)
            return _units(moment, column.unit)
        found = self.number(node)
        if found.sort != "moment" or not isinstance(found.number, Constant):
            raise self.error(
                node,
                f"column {column.name!r} is {column.kind}; give a date such as '2020-12-31', not "
                f"{_short(node.sql(dialect='duckdb'))}",
            )
        seconds = found.number.number * found.unit
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
        return _units(moment, column.unit)

    def _parsed(self, node: Node) -> dt.datetime:
        """A date or a moment, from its text."""
        try:
            moment = dt.datetime.fromisoformat(node.this)
        except ValueError:
            raise self.error(node, f"{_short(node.this)!r} is no date such as 2020-12-31") from None
        if moment.tzinfo is not None:
            raise self.error(node, "give the moment as the column's own clock shows it")
        return moment

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
            return Test(one, truths, UNKNOWN)
        # One alternative for each value of the first: unknown where either is null.
        parts = []
        for code, value in enumerate(mine.values):
            here = tuple(TRUE if each == code else FALSE for each in range(len(mine.values)))
            there = tuple(TRUE if compare(value, each) else FALSE for each in theirs.values)
            parts.append(both([Test(one, here, UNKNOWN), Test(other, there, UNKNOWN)]))
        nulls = [
            Test(one, (FALSE,) * len(mine.values), UNKNOWN),
            Test(other, (FALSE,) * len(theirs.values), UNKNOWN),
        ]
        return either([*parts, *nulls])

    def _numbers(self, left: Node, operator: str, right: Node) -> Truth:
        """Two numbers, made of several columns."""
        one, other = self.number(left, right), self.number(right, left)
        if one.sort != other.sort:
            raise self.error(
                left,
                f"{_sort(one)} ({_short(left.sql(dialect='duckdb'))}) cannot be compared with "
                f"{_sort(other)} ({_short(right.sql(dialect='duckdb'))})",
            )
        one, other = _alike(one, other)
        if isinstance(one.number, Constant) and isinstance(other.number, Constant):
            first, second = one.number.number, other.number.number
            if math.isnan(first) or math.isnan(second):
                return Known(UNKNOWN)
            return Known(TRUE if _compares(operator)(first, second) else FALSE)
        return Comparison(operator, one.number, other.number)

    # Numbers

    def number(self, node: Node, beside: Node | None = None) -> _Number:
        """A number; a text beside a moment is one, too."""
        node = _bare(node)
        if isinstance(node, exp.Null):
            return _Number(Constant(math.nan))
        if isinstance(node, exp.Column):
            return self._number_of_column(node)
        if isinstance(node, exp.Literal) and not node.is_string:
            return _Number(Constant(float(node.this)))
        if _is_text(node) and beside is not None and self._has_moments(beside):
            return _Number(Constant(_units(self._parsed(node), "us")), "moment", SECONDS["us"])
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Interval):
            return self._interval(node)
        if isinstance(node, exp.Neg):
            inner = self.number(node.this)
            if inner.sort == "moment":
                raise self.error(node, "a moment has no sign")
            return _folded("-", _Number(Constant(0.0), inner.sort, inner.unit), inner)
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

    def _number_of_column(self, node: exp.Column) -> _Number:
        position, column = self.column(node)
        if isinstance(column, Integer | Real):
            return _Number(Value(position))
        if isinstance(column, Date | Datetime):
            if column.unit not in SECONDS:
                raise self.error(
                    node,
                    f"column {column.name!r} has no days to reckon with, only {column.resolution}s",
                )
            return _Number(Value(position), "moment", SECONDS[column.unit])
        raise self.error(node, f"column {column.name!r} is {column.kind}, not a number")

    def _has_moments(self, node: Node) -> bool:
        return any(
            isinstance(self.column(each)[1], Date | Datetime) for each in node.find_all(exp.Column)
        )

    def _cast(self, node: exp.Cast) -> _Number:
        kind = node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this)
        inner = _bare(node.this)
        if kind not in ("DATE", "TIMESTAMP", "DATETIME", "TIMESTAMPNTZ") or not _is_text(inner):
            raise self.unsupported(node)
        moment = self._parsed(inner)
        if kind == "DATE":
            day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
            return _Number(Constant(_units(day, "D")), "moment", SECONDS["D"])
        return _Number(Constant(_units(moment, "us")), "moment", SECONDS["us"])

    def _interval(self, node: exp.Interval) -> _Number:
        unit = (node.text("unit") or "").lower().rstrip("s")
        try:
            amount = float(node.this.this) if node.this is not None else math.nan
        except (TypeError, ValueError, AttributeError):
            amount = math.nan
        if unit not in SPANS or not math.isfinite(amount):
            raise self.error(node, "an interval is of weeks, days, hours, minutes or seconds")
        return _Number(Constant(amount * SPANS[unit]), "span", 1.0)

    def _coalesce(self, node: exp.Coalesce) -> _Number:
        parts = [self.number(each, node.this) for each in (node.this, *node.expressions)]
        if len({part.sort for part in parts}) > 1:
            raise self.error(node, "what coalesce() chooses from must be of one sort")
        first = parts[0]
        for part in parts[1:]:
            first, other = _alike(first, part)
            if isinstance(first.number, Constant):
                first = other if math.isnan(first.number.number) else first
                continue
            first = first._replace(number=Arithmetic("coalesce", (first.number, other.number)))
        return first

    def _binary(self, node: Node, operator: str) -> _Number:
        one, other = self.number(node.left, node.right), self.number(node.right, node.left)
        sorts = (one.sort, other.sort)
        if operator in "+-" and sorts == ("moment", None) and one.unit == SECONDS["D"]:
            other = _Number(other.number, "span", SECONDS["D"])  # a date and a number of days
        elif operator == "+" and sorts == (None, "moment") and other.unit == SECONDS["D"]:
            one = _Number(one.number, "span", SECONDS["D"])
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
                node, f"{_sort(one)} and {_sort(other)} cannot be joined with {operator}"
            )
        one, other = _alike(one, other)
        return _folded(operator, one, other)._replace(sort=sort)

    def column(self, node: exp.Column) -> tuple[int, Column]:
        """A column by its name: as written, or whatever its case where that is clear."""
        if node.args.get("table") or not isinstance(node.this, exp.Identifier):
            raise self.error(node, "name the column alone, without a table")
        name = node.this.name
        names = self.schema.names
        if name not in names and not node.this.quoted:
            alike = [each for each in names if each.lower() == name.lower()]
            name = alike[0] if len(alike) == 1 else name
        if name not in names:
            hint = did_you_mean(name, names)
            raise self.error(node, f"the schema has no column {_short(name)!r}{hint}")
        return names.index(name), self.schema[name]


def _segments(position: int, column: Numeric, operator: str, bound: float) -> Test:
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
    return tidy(Test(position, tuple(told), UNKNOWN, tuple(kept)))


def _cut(column: Numeric, bound: float) -> float:
    """Where a column is cut: of whole numbers and moments, at the next whole one."""
    if isinstance(column, Real) or not math.isfinite(bound):
        return bound
    return float(math.ceil(bound))


def _folded(operator: str, one: _Number, other: _Number) -> _Number:
    """Arithmetic; done at once where both are constants."""
    if isinstance(one.number, Constant) and isinstance(other.number, Constant):
        first, second = one.number.number, other.number.number
        if operator == "/":
            result = first / second if second != 0 else math.nan
        else:
            result = {"+": first + second, "-": first - second, "*": first * second}[operator]
        return one._replace(number=Constant(result))
    return one._replace(number=Arithmetic(operator, (one.number, other.number)))


def _alike(one: _Number, other: _Number) -> tuple[_Number, _Number]:
    """Both in the smaller unit of time."""
    if one.sort is None and other.sort is None:
        return one, other
    unit = min(one.unit, other.unit)
    return _in_unit(one, unit), _in_unit(other, unit)


def _in_unit(number: _Number, unit: float) -> _Number:
    factor = round(number.unit / unit)
    if factor == 1:
        return number
    inner = number.number
    if isinstance(inner, Constant):
        scaled: Number = Constant(inner.number * factor)
    elif isinstance(inner, Value):
        scaled = Value(inner.position, inner.factor * factor)
    else:
        scaled = Arithmetic("*", (inner, Constant(float(factor))))
    return _Number(scaled, number.sort, unit)


def _units(moment: dt.datetime, unit: str) -> float:
    """A moment in units since 1970: the fraction of a unit that has begun counts as a whole."""
    exact = np.datetime64(moment, "us")
    floor = exact.astype(f"datetime64[{unit}]")
    begun = floor.astype("datetime64[us]") < exact
    return float(floor.astype(np.int64)) + (0.5 if begun else 0.0)


def _bare(node: Node) -> Node:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_text(node: Node) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _plain_number(node: Node) -> float | None:
    sign = 1.0
    while isinstance(node, exp.Neg):
        node, sign = _bare(node.this), -sign
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign * float(node.this)
    return None


def _compares(operator: str) -> Callable[[Any, Any], bool]:
    return {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
    }[operator]


def _sort(number: _Number) -> str:
    return {None: "a number", "moment": "a moment", "span": "a span of time"}[number.sort]


def _short(text: str) -> str:
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
