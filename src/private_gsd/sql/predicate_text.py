"""The text of a predicate: its syntax tree, its columns, and errors that point at a place in it.

The text is never executed. Messages and log lines of the parser are suppressed.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from private_gsd.errors import WorkloadError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from private_gsd.schema import Column, Schema

Node = Any  # sqlglot has changed the name of its base class
DIALECT = "duckdb"

MAX_LENGTH = 10_000
MAX_DEPTH = 50
MAX_NODES = 2_000
SHOWN = 60
OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}
# The arguments of a node that are understood; a node with any other argument is refused.
PARTS = {"this", "expression", "expressions", "low", "high", "to", "unit", "is_string", "quoted"}
PARTS |= {"table"}  # refused with a message of its own
ALLOWED = (
    "comparisons, BETWEEN, IN lists, LIKE, IS NULL, IS TRUE, AND, OR, NOT, + - * /, abs(), "
    "coalesce(), DATE and TIMESTAMP literals and INTERVALs up to weeks"
)

_parsing: ContextVar[bool] = ContextVar("parsing", default=False)
logging.getLogger("sqlglot").addFilter(lambda _: not _parsing.get())


class PredicateText:
    """The text of a predicate on the rows of a schema.

    Args:
        schema: The public schema.
        text: The text.
        name: The name of the text in error messages.
    """

    def __init__(self, schema: Schema, text: str, name: str) -> None:
        if not isinstance(text, str) or not text.strip():
            raise WorkloadError(f"{name} must be a text such as 'age < 30', not {text!r:.80}")
        if not is_unicode(text):
            raise WorkloadError(f"{name} must be written in UTF-8, and {text!r:.80} is not")
        if len(text) > MAX_LENGTH:
            raise WorkloadError(
                f"{name} has {len(text):,} characters, more than the {MAX_LENGTH:,} allowed: "
                f"{short(text)}"
            )
        self.schema = schema
        self.text = text
        self.name = name

    # Errors

    def error(self, node: Node, message: str) -> WorkloadError:
        """An error that points at a part of the text."""
        places = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        return self.error_at(min(places) if places else None, message)

    def error_at(self, place: int | None, message: str) -> WorkloadError:
        """An error that points at a character."""
        if place is None:
            return WorkloadError(f"in {self.name} {short(self.text)!r}: {message}")
        start = max(0, place - SHOWN // 2)
        shown = _printable(self.text[start : start + SHOWN])
        lead = "…" if start else ""
        return WorkloadError(
            f"in {self.name}, at character {place + 1}: {message}\n"
            f"  {lead}{shown}{'…' if start + SHOWN < len(self.text) else ''}\n"
            f"  {' ' * (place - start + len(lead))}^"
        )

    def unsupported(self, node: Node) -> WorkloadError:
        """An error for a part of the text that is not supported."""
        hint = self._quoting_hint()
        if is_text(node) and node.this in self.schema:
            hint = _to_quote(node.this)
        return self.error(node, f"{shown(node)!r} is not supported; there are {ALLOWED}{hint}")

    def _not_sql(self, place: int | None, reason: str = "") -> WorkloadError:
        words = f"this is not SQL that can be understood{reason}{self._quoting_hint()}"
        return self.error_at(place, words)

    def _quoting_hint(self) -> str:
        """A hint to quote a column's name, if SQL reads the unquoted name as something else."""
        unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "''", self.text)
        for name in sorted(self.schema.names, key=len, reverse=True):
            word = rf"(?<!\w){re.escape(name)}(?!\w)"
            if re.search(word, unquoted, re.IGNORECASE) and not _is_plain(name):
                return _to_quote(name)
        return ""

    # The tree

    def tree(self) -> Node:
        """The syntax tree, after checking its size and its parts."""
        try:
            self._check_depth()
            parsed = sqlglot.parse(self.text, read=DIALECT)
        except sqlglot.errors.ParseError as error:
            details = error.errors[0] if error.errors else {}
            place = None
            if details.get("col") is not None and details.get("line") is not None:
                lines = self.text.split("\n")
                before = sum(len(line) + 1 for line in lines[: details["line"] - 1])
                place = before + max(details["col"] - len(details.get("highlight") or " "), 0)
            raise self._not_sql(place) from None
        except sqlglot.errors.SqlglotError:
            raise self._not_sql(None, "; is a quote or a comment not closed?") from None
        found = [each for each in parsed if not isinstance(each, exp.Semicolon | None)]
        if len(found) != 1:
            raise self.error_at(None, f"expected one condition, found {len(found)}")
        if sum(1 for _ in found[0].walk()) > MAX_NODES:
            raise self.error_at(None, f"it has more than {MAX_NODES:,} parts")
        for node in found[0].walk():
            # An unknown flag could reverse the meaning.
            known = PARTS | ({"negate"} if isinstance(node, exp.Like) else set())
            if any(value and name not in known for name, value in node.args.items()):
                raise self.unsupported(node)
        return found[0]

    def _check_depth(self) -> None:
        """Refuse deeply nested text, since the parser is recursive."""
        depth = 0
        for token in sqlglot.tokenize(self.text, read=DIALECT):
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth > MAX_DEPTH:
                raise self.error_at(token.start, f"it is nested more than {MAX_DEPTH} deep")

    # Columns

    def column(self, node: exp.Column) -> tuple[int, Column]:
        """A column by its name; an unquoted name may differ in case if it is unambiguous."""
        if node.args.get("table") or not isinstance(node.this, exp.Identifier):
            hint = self._quoting_hint()
            raise self.error(node, f"name the column alone, without a table{hint}")
        name = node.this.name
        names = self.schema.names
        if name not in names and not node.this.quoted:
            alike = [each for each in names if each.lower() == name.lower()]
            name = alike[0] if len(alike) == 1 else name
        if name not in names:
            hint = self._quoting_hint() or did_you_mean(name, names)
            raise self.error(node, f"the schema has no column {short(name)!r}{hint}")
        return names.index(name), self.schema[name]


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the log lines of the parser within a block, in this thread."""
    before = _parsing.set(True)
    try:
        yield
    finally:
        _parsing.reset(before)


def column_named(schema: Schema, text: str, where: str) -> Column:
    """A column by its name in SQL.

    Args:
        schema: The public schema.
        text: The name, perhaps in double quotes.
        where: The context of the name, for the error message.
    """
    with quiet():
        node = _column_node(text)
        if node is None:
            hint = _to_quote(text) if text in schema else ""
            raise WorkloadError(
                f"{where}: expected the name of a column, not {short(text)!r}{hint}"
            )
        try:
            return PredicateText(schema, text, "the name").column(node)[1]
        except WorkloadError:
            hint = _to_quote(text) if text in schema else did_you_mean(node.name, schema.names)
            raise WorkloadError(
                f"{where}: the schema has no column {short(text)!r}{hint}"
            ) from None


def _column_node(text: str) -> exp.Column | None:
    try:
        node = sqlglot.parse_one(text, read=DIALECT) if text else None
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    return node if isinstance(node, exp.Column) else None


def _is_plain(name: str) -> bool:
    """Whether a name needs no quotes."""
    node = _column_node(name)
    return node is not None and not node.args.get("table") and node.name == name


def _to_quote(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'; write the name of the column in double quotes: "{quoted}"'


def bare(node: Node) -> Node:
    """A node without its parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def is_text(node: Node) -> bool:
    """Whether a node is a text in quotes."""
    return isinstance(node, exp.Literal) and bool(node.is_string)


def shown(node: Node) -> str:
    """A part of a predicate for messages, on one line."""
    return short(node.sql(dialect=DIALECT))


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded; bytes that are not UTF-8 are read as lone surrogates."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _printable(text: str) -> str:
    """A text with a blank in place of each character that is not printable."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
