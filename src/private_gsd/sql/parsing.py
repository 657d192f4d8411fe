"""Parsing: the text of a WHERE clause to an expression, checked against a schema.

Errors point at the place in the text. What is not understood is refused: there is no function, type
or operator that is passed on to a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from private_gsd.schema import Discrete
from private_gsd.sql.comparing import ComparisonReader
from private_gsd.sql.expressions import (
    FALSE,
    TRUE,
    UNKNOWN,
    ColumnTest,
    ConstantTruth,
    Truth,
    both,
    contrary,
    either,
    just,
)
from private_gsd.sql.predicate_text import bare, is_text, quiet

if TYPE_CHECKING:
    from private_gsd.schema import Schema
    from private_gsd.sql.predicate_text import Node

OPERATORS = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "=", exp.NEQ: "<>"}


def parse_predicate(schema: Schema, text: str, name: str = "the predicate") -> Truth:
    """A WHERE clause as a checked expression.

    Args:
        schema: The public schema.
        text: The clause, without the word WHERE.
        name: What the text is, for errors.
    """
    reader = _Reader(schema, text, name)
    try:
        with quiet():
            return reader.truth(reader.tree())
    except RecursionError:
        raise reader.error_at(None, "it is nested too deeply") from None


class _Reader(ComparisonReader):
    """Reads conditions: comparisons, and what joins them."""

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
            return ConstantTruth(TRUE if node.this else FALSE)
        if isinstance(node, exp.Null):
            return ConstantTruth(UNKNOWN)
        if isinstance(node, exp.Column):
            return self._flag(node)
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.Between):
            if node.args.get("symmetric"):
                raise self.unsupported(node)
            low, high = node.args["low"], node.args["high"]
            return both([self.compare(node.this, ">=", low), self.compare(node.this, "<=", high)])
        if isinstance(node, exp.In):
            if node.args.get("query") or node.args.get("unnest") or not node.expressions:
                raise self.unsupported(node)
            return either([self.compare(node.this, "=", each) for each in node.expressions])
        if isinstance(node, exp.Like):
            return self._like(node)
        for kind, operator in OPERATORS.items():
            if type(node) is kind:
                return self.compare(node.left, operator, node.right)
        raise self.unsupported(node)

    def _flag(self, node: exp.Column) -> Truth:
        """A boolean column by itself."""
        position, column = self.column(node)
        if not isinstance(column, Discrete) or not isinstance(column.values[0], bool):
            raise self.error(node, f"column {column.name!r} is {column.kind}, not a condition")
        return ColumnTest(position, tuple(TRUE if v else FALSE for v in column.values), UNKNOWN)

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
            return ColumnTest(position, (FALSE,) * size, TRUE)
        return just(self.truth(node.this), UNKNOWN)

    def _like(self, node: exp.Like) -> Truth:
        inner, pattern = bare(node.this), bare(node.expression)
        if not isinstance(inner, exp.Column) or not is_text(pattern):
            raise self.unsupported(node)
        position, column = self.column(inner)
        if not isinstance(column, Discrete) or not isinstance(column.values[0], str):
            raise self.error(node, f"column {column.name!r} holds no texts for LIKE to look at")
        alike = [_is_like(str(value), pattern.this) for value in column.values]
        found = ColumnTest(position, tuple(TRUE if each else FALSE for each in alike), UNKNOWN)
        return contrary(found) if node.args.get("negate") else found


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
