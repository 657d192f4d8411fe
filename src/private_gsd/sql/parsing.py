"""SQL: the text of a WHERE clause, parsed and checked against a schema. Nothing is ever executed.

Errors point at the place in the text. What is not understood is refused: there is no function, type
or operator that is passed on to a database.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from private_gsd.errors import WorkloadError, did_you_mean, expect_type
from private_gsd.schema import Date, Datetime, Discrete, Numeric, Real
from private_gsd.sql.arithmetic import (
    NumberReader,
    alike,
    bare,
    is_text,
    is_unicode,
    short,
    sort_of,
    units_of,
)
from private_gsd.sql.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Comparison,
    Constant,
    Known,
    Test,
    Truth,
    both,
    contrary,
    either,
    just,
    tidy,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_gsd.schema import Column, Schema
    from private_gsd.sql.arithmetic import Node

MAX_LENGTH = 10_000
MAX_DEPTH = 50
MAX_NODES = 2_000
OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}
# What the parser may say of a node; whatever else it says is not understood.
PARTS = {"this", "expression", "expressions", "low", "high", "to", "unit", "is_string", "quoted"}
PARTS |= {"table"}  # which has its own message

OPERATORS = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "<>"}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def parse_predicate(schema: Schema, text: str) -> Truth:
    """A WHERE clause as a checked expression.

    Args:
        schema: The public schema.
        text: The clause, without the word WHERE.
    """
    if not isinstance(text, str) or not text.strip():
        raise WorkloadError(f"a predicate is a text such as 'age < 30', not {text!r:.80}")
    if not is_unicode(text):
        raise WorkloadError(f"a predicate is written in UTF-8, and {text!r:.80} is not")
    if len(text) > MAX_LENGTH:
        raise WorkloadError(
            f"a predicate of {len(text):,} characters is longer than the {MAX_LENGTH:,} allowed: "
            f"{short(text)}"
        )
    return _Reader(schema, text).read()


def column_named(schema: Schema, text: str, where: str) -> Column:
    """A column by its name as SQL writes it.

    Args:
        schema: The public schema.
        text: The name, perhaps in double quotes.
        where: What the name stands in, for the error.
    """
    try:
        node = sqlglot.parse_one(text, read="duckdb") if text else None
    except (sqlglot.errors.SqlglotError, RecursionError):
        node = None
    if not isinstance(node, exp.Column):
        raise WorkloadError(f"{where}: expected the name of a column, not {short(text)!r}")
    try:
        return _Reader(schema, text).column(node)[1]
    except WorkloadError:
        hint = did_you_mean(node.name, schema.names)
        raise WorkloadError(f"{where}: the schema has no column {short(text)!r}{hint}") from None


class _Reader(NumberReader):
    def read(self) -> Truth:
        try:
            return self._read()
        except RecursionError:
            raise self.error_at(None, "it is nested too deeply") from None

    def _read(self) -> Truth:
        try:
            self._check_depth()
            parsed = sqlglot.parse(self.text, read="duckdb")
            found = [each for each in parsed if not isinstance(each, exp.Semicolon | None)]
        except sqlglot.errors.ParseError as error:
            details = error.errors[0] if error.errors else {}
            place = None
            if details.get("col") is not None and details.get("line") is not None:
                lines = self.text.split("\n")
                before = sum(len(line) + 1 for line in lines[: details["line"] - 1])
                place = before + max(details["col"] - len(details.get("highlight") or " "), 0)
            raise self.error_at(place, "this is not SQL that can be understood") from None
        except sqlglot.errors.SqlglotError as error:
            line = str(error).partition("\n")[0][:100]
            raise self.error_at(None, f"this is not SQL that can be understood: {line}") from None
        if len(found) != 1:
            raise self.error_at(None, f"expected one condition, found {len(found)}")
        if sum(1 for _ in found[0].walk()) > MAX_NODES:
            raise self.error_at(None, f"it has more than {MAX_NODES:,} parts")
        for node in found[0].walk():
            # A flag that is not known could turn the meaning round.
            known = PARTS | ({"negate"} if isinstance(node, exp.Like) else set())
            if any(value and name not in known for name, value in node.args.items()):
                raise self.unsupported(node)
        return self.truth(found[0])

    def _check_depth(self) -> None:
        """The parser calls itself for each parenthesis and NOT."""
        depth = 0
        for token in sqlglot.tokenize(self.text, read="duckdb"):
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth > MAX_DEPTH:
                raise self.error_at(token.start, f"it is nested more than {MAX_DEPTH} deep")

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
        inner = bare(node.this)
        if isinstance(inner, exp.Column):
            position, column = self.column(inner)
            size = len(column.values) if isinstance(column, Discrete) else 1
            return Test(position, (FALSE,) * size, TRUE)
        return just(self.truth(node.this), UNKNOWN)

    def _like(self, node: exp.Like) -> Truth:
        inner, pattern = bare(node.this), bare(node.expression)
        if not isinstance(inner, exp.Column) or not is_text(pattern):
            raise self.unsupported(node)
        position, column = self.column(inner)
        if not isinstance(column, Discrete) or not isinstance(column.values[0], str):
            raise self.error(node, f"column {column.name!r} holds no texts for LIKE to look at")
        alike = [_is_like(str(value), pattern.this) for value in column.values]
        found = Test(position, tuple(TRUE if each else FALSE for each in alike), UNKNOWN)
        return contrary(found) if node.args.get("negate") else found

    # Comparisons

    def _compare(self, left: Node, operator: str, right: Node) -> Truth:
        left, right = bare(left), bare(right)
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
        number = expect_type(Numeric, column)
        bound = self._bound(number, other)
        if math.isnan(bound):
            return Known(UNKNOWN)
        return _segments(position, number, operator, bound)

    def _listed(self, column: Discrete, node: Node, member: bool) -> Any:
        """A constant to compare a column of categories with; one of its values, if need be."""
        kind = type(column.values[0])
        value: Any = None
        if is_text(node) and kind is str:
            value = node.this
        elif isinstance(node, exp.Boolean) and kind is bool:
            value = bool(node.this)
        elif kind is int and self.plain_number(node) is not None:
            value = self.plain_number(node)
        else:
            words = {str: "texts in single quotes", int: "whole numbers", bool: "TRUE and FALSE"}
            raise self.error(
                node,
                f"column {column.name!r} is compared with {words[kind]}, not with "
                f"{short(node.sql(dialect='duckdb'))}",
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
                f"{short(node.sql(dialect='duckdb'))}",
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
                f"{sort_of(one)} ({short(left.sql(dialect='duckdb'))}) cannot be compared with "
                f"{sort_of(other)} ({short(right.sql(dialect='duckdb'))})",
            )
        one, other = alike(one, other)
        if isinstance(one.number, Constant) and isinstance(other.number, Constant):
            first, second = one.number.number, other.number.number
            if math.isnan(first) or math.isnan(second):
                return Known(UNKNOWN)
            return Known(TRUE if _compares(operator)(first, second) else FALSE)
        return Comparison(operator, one.number, other.number)


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


def _is_like(text: str, pattern: str) -> bool:
    """Whether a text is like a pattern: the last % takes more, sign by sign, where it must."""
    at = place = 0
    last, begun = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            last, begun = place, at
            place += 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at += 1
            place += 1
        elif last >= 0:
            begun += 1
            at, place = begun, last + 1
        else:
            return False
    return not pattern[place:].strip("%")


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
