"""Random predicates over a schema, as text."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from private_gsd.schema import Column, Date, Datetime, Discrete, Numeric, Real, Schema


def literal(column: Column, rng: random.Random) -> str:
    """A constant that a column may be compared with, as SQL."""
    if isinstance(column, Discrete):
        value = rng.choice(list(column.values))
        if isinstance(value, bool):
            return str(value).upper()
        return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
    low, high = column.bounds
    number = rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low))
    if isinstance(column, Date):
        day = np.array(int(number)).astype(f"datetime64[{column.unit}]").astype("datetime64[D]")
        return rng.choice([f"'{day}'", f"DATE '{day}'"])
    if isinstance(column, Datetime):
        moment = np.array(int(number)).astype(f"datetime64[{column.unit}]").astype("datetime64[s]")
        return f"TIMESTAMP '{str(moment).replace('T', ' ')}'"
    if isinstance(column, Real):
        return repr(round(number, rng.choice([0, 1, 2])))
    return rng.choice([str(int(number)), str(int(number) + 0.5)])


def number(schema: Schema, rng: random.Random, depth: int = 2) -> str:
    """Arithmetic over numeric columns and constants."""
    numeric = [c for c in schema if isinstance(c, Numeric) and c.kind in ("integer", "real")]
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return f'"{rng.choice(numeric).name}"'
    if kind < 0.55:
        return rng.choice(["2", "0.5", "10", "-3", "7.25"])
    if kind < 0.65:
        return f"abs({number(schema, rng, depth - 1)})"
    if kind < 0.72:
        return f"coalesce({number(schema, rng, depth - 1)}, {rng.choice(['0', '5'])})"
    operator = rng.choice(["+", "-", "*"])
    return f"({number(schema, rng, depth - 1)} {operator} {number(schema, rng, depth - 1)})"


def leaf(schema: Schema, rng: random.Random, compared: float) -> str:
    """One condition."""
    column = rng.choice(list(schema))
    name = f'"{column.name}"'
    operator = rng.choice(["<", "<=", ">", ">=", "=", "<>"])
    kind = rng.random()
    if kind < compared:
        return f"{number(schema, rng)} {operator} {number(schema, rng)}"
    if kind < compared + 0.1:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if kind < compared + 0.2:
        some = ", ".join(literal(column, rng) for _ in range(rng.randint(1, 4)))
        return f"{name} {rng.choice(['', 'NOT '])}IN ({some})"
    if kind < compared + 0.3 and isinstance(column, Numeric):
        return f"{name} BETWEEN {literal(column, rng)} AND {literal(column, rng)}"
    if isinstance(column, Discrete):
        if isinstance(column.values[0], bool):
            return rng.choice([name, f"NOT {name}", f"{name} = {literal(column, rng)}"])
        if isinstance(column.values[0], str) and kind > 0.9:
            start = str(rng.choice(list(column.values)))[:1].replace("'", "''")
            like = rng.choice(["LIKE", "NOT LIKE"])
            return f"{name} {like} '{rng.choice([start + '%', '%' + start, '_' + start + '%'])}'"
    if rng.random() < 0.2:
        return f"{literal(column, rng)} {operator} {name}"
    return f"{name} {operator} {literal(column, rng)}"


def predicate(schema: Schema, rng: random.Random, size: int = 3, compared: float = 0.15) -> str:
    """Some conditions, joined and negated."""
    if size <= 1:
        return leaf(schema, rng, compared)
    first = rng.randint(1, size - 1)
    parts = [predicate(schema, rng, each, compared) for each in (first, size - first)]
    text = f"({parts[0]}) {rng.choice(['AND', 'OR'])} ({parts[1]})"
    if rng.random() < 0.2:
        text = f"NOT ({text})"
    if rng.random() < 0.1:
        text = f"({text}) IS {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'NULL'])}"
    return text


def predicates_of(schema: Schema, number: int, seed: int, **settings: Any) -> list[str]:
    """Many of them."""
    rng = random.Random(seed)
    return [predicate(schema, rng, rng.randint(1, 4), **settings) for _ in range(number)]
