"""Conditions: queries as SQL that a person can read and a database can run."""

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
    """The column as SQL names it."""
    quoted = '"' + column.name.replace('"', '""') + '"'
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column.name)
    name = column.name if plain and column.name.lower() not in _keywords() else quoted
    if isinstance(column, Datetime) and column.timezone is not None:
        return f"({quoted} AT TIME ZONE '{column.timezone}')"
    return name


@lru_cache
def _keywords() -> frozenset[str]:
    """The words that DuckDB does not take for names unless they are quoted."""
    with duckdb.connect() as connection:
        rows = connection.sql(
            "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
        ).fetchall()
    return frozenset(row[0] for row in rows)


def is_value(column: Discrete, code: int) -> str:
    """The column has the value of that code, or is null where the code is beyond the values."""
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
    """The column is null."""
    return f"{name_of(column)} IS NULL"


def is_between(column: Numeric, start: float, stop: float) -> str:
    """The column is at least ``start`` and less than ``stop``; an infinite end is no condition."""
    words = []
    if start != -math.inf:
        words.append(f"{name_of(column)} >= {literal(column, start)}")
    if stop != math.inf:
        words.append(f"{name_of(column)} < {literal(column, stop)}")
    return " AND ".join(words) or f"{name_of(column)} IS NOT NULL"


def literal(column: Numeric, bound: float) -> str:
    """A bound of the encoded scale, as the column has its values."""
    if isinstance(column, Real):
        return repr(float(bound))
    whole = math.ceil(bound)  # on a grid, at least 1.5 is at least 2 and less than 1.5 less than 2
    if isinstance(column, Date):
        day = np.array(whole).astype(f"datetime64[{column.unit}]").astype("datetime64[D]")
        return f"DATE '{day}'"
    if isinstance(column, Datetime):
        moment = np.array(whole).astype(f"datetime64[{column.unit}]").astype("datetime64[us]")
        return f"TIMESTAMP '{str(moment).replace('T', ' ')}'"
    return str(whole)
