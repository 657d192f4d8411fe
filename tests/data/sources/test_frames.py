"""Frames of every maker: read alike, and given back in the types that came."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pytest

from private_gsd import (
    Categorical,
    Datetime,
    Integer,
    LeftOutWarning,
    Schema,
    open_source,
)
from private_gsd.errors import DataError, MissingExtraError, SourceError

SCHEMA = Schema(
    [
        Integer("age", lower=0, upper=120),
        Categorical("sex", values=("f", "m"), nullable=True),
    ]
)
TABLE = pa.table({"age": [31, 64, 8], "sex": ["m", None, "f"]})
EXPECTED = [[31, 1], [64, float("nan")], [8, 0]]


class OnlyCapsule:
    """The least that a table can be: an object that speaks the Arrow stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


FRAMES: dict[str, Any] = {
    "pyarrow table": lambda: TABLE,
    "pyarrow batch": lambda: TABLE.to_batches()[0],
    "pyarrow dataset": lambda: pyarrow.dataset.dataset(TABLE),
    "pyarrow reader": lambda: TABLE.to_reader(),
    "pandas": lambda: TABLE.to_pandas(),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars lazy": lambda: pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "capsule": OnlyCapsule,
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_every_frame_reads_the_same(make: Any) -> None:
    source = open_source(make(), SCHEMA)
    np.testing.assert_array_equal(np.vstack(list(source.encoded(batch_rows=2))), EXPECTED)
    assert source.rows in (3, None)
    assert repr(source).startswith("<Source the ")


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())
def test_a_source_speaks_arrow_itself(make: Any) -> None:
    table = pa.table(open_source(make()))
    assert table.column_names == ["age", "sex"]
    assert table.num_rows == 3


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "pyarrow reader"])
def test_every_frame_can_be_read_again(name: str) -> None:
    source = open_source(FRAMES[name](), SCHEMA)
    for _ in range(2):
        assert sum(batch.num_rows for batch in source.batches()) == 3


def test_a_reader_can_be_read_once_only() -> None:
    source = open_source(TABLE.to_reader(), SCHEMA)
    assert sum(batch.num_rows for batch in source.batches()) == 3
    with pytest.raises(SourceError, match="can be read only once"):
        list(source.batches())


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow])
def test_no_rows(make: Any) -> None:
    with pytest.raises(SourceError, match="the table has no rows"):
        list(open_source(make(TABLE.slice(0, 0)), SCHEMA).encoded())


def test_opening_a_source_again() -> None:
    source = open_source(open_source(TABLE), SCHEMA)
    assert len(next(source.encoded())) == 3


@pytest.mark.parametrize("data", [5, None, [1, 2], {"age": [1]}, np.zeros((2, 2))])
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(SourceError, match="cannot read a table from"):
        open_source(data, SCHEMA)


def test_missing_and_left_out_columns() -> None:
    with pytest.raises(SourceError, match="the pandas DataFrame: missing column 'sex'"):
        open_source(TABLE.to_pandas().drop(columns="sex"), SCHEMA)
    with pytest.warns(LeftOutWarning, match="the pandas DataFrame: left out.*: name"):
        open_source(TABLE.to_pandas().assign(name="x"), SCHEMA)


def test_objects_are_read_one_by_one() -> None:
    """What a column of objects holds in one row does not change how another row is read."""
    schema = Schema(
        [
            Datetime("t", lower=dt.datetime(2000, 1, 1), upper=dt.datetime(2030, 1, 1)),
            Categorical("c", values=("1.5", "2", "true"), nullable=True),
        ]
    )
    moments = [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5), "2020-01-01 07:00"]
    codes = [Decimal("1.50"), 2.0, np.True_]
    frame = pd.DataFrame({"t": moments, "c": codes}, dtype=object)
    [together] = open_source(frame, schema).encoded()
    alone = [next(open_source(frame.iloc[[row]], schema).encoded())[0] for row in range(3)]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[:, 1], [0, 1, 2])
    hours = (together[:, 0] - together[0, 0]) / 3600
    assert hours.tolist() == [0, 5, 7]
    for null in (None, np.nan, pd.NA, pd.NaT, Decimal("nan")):
        odd = pd.DataFrame({"t": ["2020-01-01"], "c": pd.Series([null], dtype=object)})
        assert np.isnan(next(open_source(odd, schema).encoded())[0, 1])


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (pd.Series([[1]], dtype=object), "an object of type list"),
        (pd.Series([1 + 2j]), "column 'age' .complex128."),
        (pd.Series(["\ud800"], dtype=object), "column 'age' .object."),
    ],
)
def test_objects_that_are_no_values(series: Any, message: str) -> None:
    frame = pd.DataFrame({"age": series, "sex": "f"})
    with pytest.raises(SourceError, match=message):
        list(open_source(frame, SCHEMA).encoded())


def test_numbers_too_large_for_any_type() -> None:
    frame = pd.DataFrame({"age": pd.Series([2**70, 5], dtype=object), "sex": "f"})
    with pytest.raises(DataError, match="1 value is not integer 0 to 120: 1180591620717411303424"):
        list(open_source(frame, SCHEMA).encoded())


@pytest.mark.parametrize("data", [pd.Series([1]), pl.Series([1]), pa.chunked_array([[1]])])
def test_a_single_column_is_no_table(data: Any) -> None:
    with pytest.raises(SourceError, match=r"not a table of named columns|cannot read a table"):
        open_source(data, SCHEMA)


def test_pandas_columns_in_levels() -> None:
    frame = pd.DataFrame([[1, "f"]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("c", "d")]))
    assert open_source(frame).columns == ("('a', 'b')", "('c', 'd')")


def test_a_stream_that_runs_dry_says_so() -> None:
    class Once:
        given = 0

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            self.given += 1  # the first is for the names of the columns
            table = TABLE if self.given <= 2 else TABLE.slice(0, 0)
            return table.__arrow_c_stream__(requested_schema)

    source = open_source(Once(), SCHEMA)
    assert sum(batch.num_rows for batch in source.batches()) == 3
    with pytest.raises(SourceError, match="can be read only once"):
        list(source.batches())


def test_a_relation_has_one_reader_at_a_time() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 5 AS age, 'f' AS sex FROM range(300000)")
        source = open_source(connection.table("t"), SCHEMA)
        first = source.batches()
        next(first)
        with pytest.raises(SourceError, match="one reader at a time"):
            list(source.batches())


def test_encoding_needs_a_schema() -> None:
    with pytest.raises(SourceError, match="open it with a schema"):
        next(open_source(TABLE).encoded())
    with pytest.raises(SourceError, match="open it with a schema"):
        open_source(TABLE).restore(TABLE)


def test_columns_named_by_numbers() -> None:
    frame = pd.DataFrame({0: [1, 2]})
    schema = Schema([Integer("0", lower=0, upper=9)])
    assert [len(matrix) for matrix in open_source(frame, schema).encoded()] == [2]


def test_a_missing_extra_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"age": [1], "sex": ["m"]})
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'private-gsd\[polars\]'"):
        open_source(frame, SCHEMA)
