"""Drafting: sensible proposals, which the data then fits, and a plain word on what they are."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from private_gsd import (
    Boolean,
    Categorical,
    Column,
    Date,
    Datetime,
    Integer,
    Real,
    Schema,
    open_source,
)
from private_gsd.errors import SchemaError
from tests.strategies import tables


def draft(values: Any, kind: pa.DataType | None = None) -> Column:
    [column] = Schema.draft(pa.table({"x": pa.array(values, kind)})).columns
    return column


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # text, as a CSV file has it
        (["1", "2", "90"], Integer("x", lower=1, upper=90)),
        (["1", "2", "N", ""], Integer("x", lower=1, upper=2, nullable=True, null_values=("", "N"))),
        (["1", "2"] * 20, Categorical("x", values=(1, 2))),
        (["007", "010"] * 20, Categorical("x", values=("007", "010"))),
        ([" a", "b ", "a"], Categorical("x", values=("a", "b"))),
        (["Y", "N", "Y"], Categorical("x", values=("N", "Y"))),
        (["a", "?"], Categorical("x", values=("a",), nullable=True, null_values=("", "?"))),
        (["0.25", "1.5"], Real("x", lower=0.2, upper=1.5, decimals=2)),
        (["5.0", "7.0", "80.0"], Integer("x", lower=5, upper=80)),
        (["true", "false"], Boolean("x")),
        (
            ["2020-02-29", "2021-03-01"],
            Date("x", lower=dt.date(2020, 1, 1), upper=dt.date(2021, 12, 31)),
        ),
        (["2021-02-30", "2021-03-01"], Categorical("x", values=("2021-02-30", "2021-03-01"))),
        (
            ["2020-02-29 10:30", "2021-03-01T11:00"],
            Datetime(
                "x",
                lower=dt.datetime(2020, 1, 1),
                upper=dt.datetime(2021, 12, 31, 23, 59, 59),
                resolution="minute",
            ),
        ),
        # typed, as a frame has it
        ([True, None], Boolean("x", nullable=True)),
        ([1, 5, 60], Integer("x", lower=1, upper=60)),
        ([1.0, None, 60.0], Integer("x", lower=1, upper=60, nullable=True)),
        ([1.0, float("nan"), 60.0], Integer("x", lower=1, upper=60, nullable=True)),
        ([0.1, 2.34], Real("x", lower=0.1, upper=2.4, decimals=2)),
        ([Decimal("0.10"), Decimal("2.34")], Real("x", lower=0.1, upper=2.4, decimals=2)),
        ([dt.date(2020, 5, 5)], Date("x", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31))),
        ([7, 7, 7], Categorical("x", values=(7,))),
        ([2**53 + 1] * 20, Categorical("x", values=(2**53 + 1,))),
        (["9007199254740993"] * 20, Categorical("x", values=(2**53 + 1,))),
        (["1", "1e400"], Categorical("x", values=("1", "1e400"))),
        (
            [dt.datetime(2020, 12, 31, 23, 59, 59, 500_000)],
            Datetime(
                "x",
                lower=dt.datetime(2020, 1, 1),
                upper=dt.datetime(2020, 12, 31, 23, 59, 59, 999_999),
                resolution="millisecond",
            ),
        ),
    ],
)
def test_proposals(values: list[Any], expected: Column) -> None:
    assert draft(values) == expected


def test_time_zones_are_kept() -> None:
    moments = pa.array([dt.datetime(2020, 6, 1, 12)], pa.timestamp("us", tz="Europe/Vienna"))
    column = draft(moments)
    assert isinstance(column, Datetime)
    assert column.timezone == "Europe/Vienna"
    assert column.resolution == "hour"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None, None], "nothing but nulls"),
        (["", "NA"], "nothing but nulls"),
        ([f"name {i}" for i in range(200)], "a name or an identifier"),
        ([f"name {i}" for i in range(1500)] * 3, "more than 1000 different values"),
        ([[1], [2]], r"its type list<.*> is not supported"),
        ([1.0, float("inf")], "infinite numbers"),
        ([2**60, 5], "such as an identifier"),
        (["0000-01-01", "2020-01-01"], "before the year 1"),
        (pa.array([2**40, 0]).cast(pa.timestamp("s")), "after the year 9999"),
    ],
)
def test_what_cannot_be_drafted_is_left_out_and_noted(values: list[Any], reason: str) -> None:
    keep = [True] * len(values)
    schema = Schema.draft(pa.table({"keep": keep, "x": values}))
    assert schema.names == ("keep",)
    [note] = schema.notes
    assert note.startswith("Left out: column 'x'")
    assert re.search(reason, note)
    assert "Left out: column 'x'" in schema.to_toml()


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(SchemaError, match="no column could be drafted"):
        Schema.draft(pa.table({"x": [None]}))


def test_a_path_is_not_a_table() -> None:
    with pytest.raises(SchemaError, match=r"open a file first: Schema.draft\(private_gsd.open_"):
        Schema.draft("data.csv")  # type: ignore[arg-type]


def test_two_columns_of_one_name() -> None:
    with pytest.raises(SchemaError, match="two columns of the same name"):
        Schema.draft(pa.table([[1], [2]], names=["a", "a"]))


def test_rare_spellings_of_null_are_seen_among_many_numbers() -> None:
    numbers = [str(number) for number in range(5000)] + ["N"]
    assert draft(numbers).null_values == ("", "N")


def test_facts_are_gathered_over_batches(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 5000, 200_000), "b": rng.normal(size=200_000)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema.draft(open_source(tmp_path / "t.csv"))
    assert schema["a"] == Integer("a", lower=0, upper=5000)
    assert isinstance(schema["b"], Real)
    assert schema["b"].decimals is None
    assert sum(len(m) for m in open_source(tmp_path / "t.csv", schema).encoded()) == 200_000


@given(tables())
def test_a_table_fits_its_own_draft(example: tuple[Schema, pa.Table]) -> None:
    _, table = example
    try:
        schema = Schema.draft(table)
    except SchemaError as error:
        assert "no column could be drafted" in str(error)
        return
    assert schema.drafted
    selected = table.select(schema.names)
    assert sum(len(matrix) for matrix in open_source(selected, schema).encoded()) == len(table)
