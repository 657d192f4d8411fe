"""Conditions: queries as readable SQL that a database can run."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from private_gsd.schema import Date, Datetime, Discrete, Numeric, Real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Column


def name_of(column: Column) -> str:
    """The name of a column in SQL, quoted where necessary."""
    quoted = '"' + column.name.replace('"', '""') + '"'
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column.name)
    name = column.name if plain and column.name.lower() not in _keywords() else quoted
    if isinstance(column, Datetime) and column.timezone is not None:
        return f"({quoted} AT TIME ZONE '{column.timezone}')"
    return name


@lru_cache
def _keywords() -> frozenset[str]:
    """The words that DuckDB accepts as names only in quotes."""
    with duckdb.connect() as connection:
        rows = connection.sql(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
        ).fetchall()
    return frozenset(row[0] for row in rows)


def is_value(column: Discrete, code: int) -> str:
    """The condition that a column has the value of a code; the code after the last means null."""
    if code >= len(column.values):
        return is_null(column)
    return f"{name_of(column)} = {_category(column, code)}"


def is_among(column: Discrete, codes: Sequence[int]) -> str:
    """The condition that a column has one of the values of some codes."""
    if len(codes) == 1:
        return is_value(column, codes[0])
    return f"{name_of(column)} IN ({', '.join(_category(column, code) for code in codes)})"


def _category(column: Discrete, code: int) -> str:
    """A category as a literal."""
    value = column.values[code]
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    return "'" + value.replace("'", "''") + "'"


def is_null(column: Column) -> str:
    """The condition that a column is null."""
    return f"{name_of(column)} IS NULL"


def is_between(column: Numeric, start: float, stop: float) -> str:
    """The condition that a column is in [start, stop); an infinite end is left out."""
    words = []
    if start != -math.inf:
        words.append(f"{name_of(column)} >= {literal(column, start)}")
    if stop != math.inf:
        words.append(f"{name_of(column)} < {literal(column, stop)}")
    return " AND ".join(words) or f"{name_of(column)} IS NOT NULL"


def literal(column: Numeric, bound: float) -> str:
    """A number of the encoded scale as a literal of the column's type."""
    if isinstance(column, Real):
        return repr(float(bound))
    whole = math.ceil(bound)  # for whole numbers, x >= 1.5 is x >= 2, and x < 1.5 is x < 2
    if isinstance(column, Date):
        day = np.array(whole).astype(f"datetime64[{column.unit}]").astype("datetime64[D]")
        return f"DATE '{day}'"
    if isinstance(column, Datetime):
        moment = np.array(whole).astype(f"datetime64[{column.unit}]").astype("datetime64[us]")
        return f"TIMESTAMP '{str(moment).replace('T', ' ')}'"
    return str(whole)
