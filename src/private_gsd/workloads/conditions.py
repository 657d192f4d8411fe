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
    value = column.values[code]
    if isinstance(value, bool):
        literal = str(value).upper()
    elif isinstance(value, int):
        literal = str(value)
    else:
        literal = "'" + value.replace("'", "''") + "'"
    return f"{name_of(column)} = {literal}"


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
