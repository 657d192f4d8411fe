"""Hypothesis strategies: columns of every kind, tables that fit them, and workloads."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import (
    Boolean,
    Categorical,
    Column,
    Date,
    Datetime,
    Integer,
    Real,
    Schema,
    workloads,
)
from private_gsd.schema import Discrete, Numeric
from private_gsd.schema.columns import LARGEST_EXACT
from private_gsd.schema.temporal import DATE_RESOLUTIONS, DATETIME_RESOLUTIONS
from private_gsd.workloads import Workload

# Text as nasty as real tables have it: quotes, separators, line breaks, white space, any script.
# NUL and lone carriage returns are left out: no CSV writer and reader agree on them.
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]),
    min_size=1,
    max_size=8,
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_ >.-]{0,6}[a-z0-9]", fullmatch=True)


DISCRETE = ("text", "code", "flag")
NUMERIC = ("integer", "real", "date", "datetime")


def _ordered(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return (
        st.tuples(values, values)
        .filter(lambda pair: pair[0] != pair[1])
        .map(lambda pair: (min(pair), max(pair)))
    )


@st.composite
def columns(draw: st.DrawFn, name: str, kinds: tuple[str, ...] = DISCRETE + NUMERIC) -> Column:
    """Any column of any kind, or of some kinds."""
    common: dict[str, Any] = {
        "nullable": draw(st.booleans()),
        "description": draw(st.sampled_from(["", "said by a person"])),
    }
    kind = draw(st.sampled_from(kinds))
    if kind == "text":
        values = draw(st.lists(texts, min_size=1, max_size=6, unique=True))
        return Categorical(name, values=tuple(values), **common)
    if kind == "code":
        codes = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-9, 99)
        return Categorical(
            name, values=tuple(draw(st.lists(codes, min_size=1, max_size=6, unique=True))), **common
        )
    if kind == "flag":
        return draw(
            st.sampled_from(
                [
                    Boolean(name, **common),
                    Categorical(name, values=(True, False), **common),
                    Categorical(name, values=(True,), **common),
                ]
            )
        )
    if kind == "integer":
        whole = st.integers(-LARGEST_EXACT, LARGEST_EXACT) | st.integers(-50, 50)
        low, high = draw(_ordered(whole))
        return Integer(name, lower=low, upper=high, **common)
    if kind == "real":
        decimals = draw(st.none() | st.integers(0, 4))
        if decimals is None:
            real = st.floats(-1e300, 1e300) | st.floats(-10, 10)
        else:
            real = st.integers(-(10**9), 10**9).map(lambda units: units / 10**decimals)
        low, high = draw(_ordered(real))
        return Real(name, lower=low, upper=high, decimals=decimals, **common)
    if kind == "date":
        unit = draw(st.sampled_from(sorted(DATE_RESOLUTIONS)))
        low, high = draw(
            _ordered(st.dates(dt.date(1600, 1, 1), dt.date(2500, 12, 31))).filter(
                lambda pair: pair[0].year < pair[1].year
            )
        )
        return Date(name, lower=low, upper=high, resolution=unit, **common)
    unit = draw(st.sampled_from(sorted(DATETIME_RESOLUTIONS)))
    moments = st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 12, 31))
    low, high = draw(_ordered(moments).filter(lambda pair: pair[0].date() < pair[1].date()))
    return Datetime(
        name,
        lower=low,
        upper=high,
        resolution=unit,
        timezone=draw(st.sampled_from([None, "UTC"])),
        **common,
    )


def encoded_values(column: Column) -> st.SearchStrategy[float]:
    """Numbers that the column can be encoded to, the ends of its domain among them."""
    if isinstance(column, Real):
        low, high = column.bounds
        inside = st.floats(low, high)
        if column.decimals is not None:
            decimals = column.decimals
            inside = st.integers(round(low * 10**decimals), round(high * 10**decimals)).map(
                lambda units: units / 10**decimals
            )
        values = inside.map(lambda value: value + 0.0)
    elif isinstance(column, Boolean | Categorical):
        low, high = 0.0, float(len(column.values) - 1)
        values = st.integers(0, int(high)).map(float)
    else:
        low, high = column.bounds
        values = st.integers(int(low), int(high)).map(float)
    values = values | st.sampled_from([low, high])
    return values | st.just(float("nan")) if column.nullable else values


@st.composite
def schemas(draw: st.DrawFn, max_columns: int = 4) -> Schema:
    """A schema of a few columns."""
    found = draw(st.lists(names, min_size=1, max_size=max_columns, unique_by=str.lower))
    return Schema([draw(columns(name)) for name in found])


@st.composite
def matrices(draw: st.DrawFn, schema: Schema, max_rows: int = 8) -> np.ndarray[Any, Any]:
    """A row matrix of the schema."""
    rows = draw(st.integers(1, max_rows))
    drawn = [
        draw(st.lists(encoded_values(column), min_size=rows, max_size=rows)) for column in schema
    ]
    return np.array(drawn, dtype=np.float64).T.reshape(rows, len(schema))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """A schema, and a table of plain Arrow values that fits it, made without the encoder."""
    schema = draw(schemas())
    rows = draw(st.integers(1, 8))
    arrays = []
    for column in schema:
        cells = st.lists(python_values(column), min_size=rows, max_size=rows)
        arrays.append(pa.array(draw(cells), column.arrow_type))
    return schema, pa.table(arrays, schema=schema.arrow_schema)


def python_values(column: Column) -> st.SearchStrategy[Any]:
    """Values of the column as Python has them, on the grid that the schema declares."""
    values: st.SearchStrategy[Any]
    if isinstance(column, Boolean | Categorical):
        values = st.sampled_from(column.values)
    elif isinstance(column, Integer):
        values = st.integers(column.lower, column.upper)
    elif isinstance(column, Real):
        values = encoded_values(Real(**{**vars(column), "nullable": False}))
    elif isinstance(column, Date):
        unit = column.resolution
        values = st.dates(column.lower, column.upper).map(lambda day: _floor_date(day, unit))
    else:
        assert isinstance(column, Datetime)
        fine = column.resolution
        zone = None if column.timezone is None else dt.UTC
        values = st.datetimes(column.lower, column.upper).map(
            lambda moment: _floor_datetime(moment, fine).replace(tzinfo=zone)
        )
    return values | st.none() if column.nullable else values


def _floor_date(day: dt.date, resolution: str) -> dt.date:
    return {
        "day": day,
        "month": day.replace(day=1),
        "year": day.replace(month=1, day=1),
    }[resolution]


def _floor_datetime(moment: dt.datetime, resolution: str) -> dt.datetime:
    order = ["day", "hour", "minute", "second", "millisecond", "microsecond"]
    kept = order.index(resolution)
    if kept < 1:
        moment = moment.replace(hour=0)
    if kept < 2:
        moment = moment.replace(minute=0)
    if kept < 3:
        moment = moment.replace(second=0)
    if kept < 4:
        moment = moment.replace(microsecond=0)
    if kept == 4:
        moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return moment


@st.composite
def examples(
    draw: st.DrawFn, discrete: int = 0, numeric: int = 0, reals: int = 0, max_rows: int = 40
) -> tuple[Schema, NDArray[np.float64]]:
    """A schema with at least so many columns, and rows, values on the cuts among them."""
    kinds: list[tuple[str, ...]] = [DISCRETE] * discrete + [NUMERIC] * numeric + [("real",)] * reals
    kinds += [DISCRETE + NUMERIC] * draw(st.integers(0 if kinds else 1, 2))
    order = draw(st.permutations(range(len(kinds))))
    schema = Schema([draw(columns(f"c{place}", kinds[place])) for place in order])
    rows = draw(st.integers(1, max_rows))
    drawn = []
    for column in schema:
        values = encoded_values(column)
        if isinstance(column, Real):
            low, high = column.bounds
            cuts = [low + (high - low) * (cut / 32) for cut in range(33)]
            values = values | st.sampled_from([min(max(cut, low), high) for cut in cuts])
        drawn.append(draw(st.lists(values, min_size=rows, max_size=rows)))
    return schema, np.array(drawn, dtype=np.float64).T.reshape(rows, len(schema))


@st.composite
def sql_workloads(draw: st.DrawFn, schema: Schema) -> Workload:
    """A workload of all families that SQL can say."""
    discrete = [column.name for column in schema if isinstance(column, Discrete)]
    numeric = [column for column in schema if isinstance(column, Numeric)]
    found = [workloads.categorical_marginals(schema, k) for k in range(1, len(discrete) + 1)]
    ranges: dict[str, Any] = dict.fromkeys(discrete[:1], ...)
    for column in numeric:
        found.append(workloads.tree_marginals(schema, sets=[[column.name, *discrete[:1]]], depth=3))
        if isinstance(column, Integer | Real):
            between = (
                st.integers(column.lower, column.upper)
                if isinstance(column, Integer)
                else st.floats(column.lower, column.upper)
            )
            pairs = st.tuples(between, between).map(sorted).filter(lambda pair: pair[0] < pair[1])
            ranges[column.name] = draw(
                st.lists(pairs.map(tuple), min_size=1, max_size=4, unique=True)
            )
    if ranges:
        found.append(workloads.range_marginals(schema, ranges))
    if discrete and numeric:
        found.append(workloads.random_prefixes(schema, 20, seed=3, k=2))
    order = draw(st.permutations(found))
    total = order[0]
    for each in order[1:]:
        total = total + each
    return total
