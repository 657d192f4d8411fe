"""Frames of every maker: read alike, and given back in the types that came."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from private_gsd import Categorical, Date, Encoder, Integer, LeftOutWarning, Schema, open_source
from private_gsd.errors import MissingExtraError, SourceError

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


def test_mixed_object_columns() -> None:
    frame = pd.DataFrame({"age": [1, "two", 3.5], "sex": "f"})
    with pytest.raises(SourceError, match=r"mixed types.*age"):
        list(open_source(frame, SCHEMA).batches())


def test_encoding_needs_a_schema() -> None:
    with pytest.raises(SourceError, match="open it with a schema"):
        next(open_source(TABLE).encoded())
    with pytest.raises(SourceError, match="open it with a schema"):
        open_source(TABLE).restore(TABLE)


def decoded(data: Any, schema: Schema = SCHEMA) -> Any:
    source = open_source(data, schema)
    matrix = np.vstack(list(source.encoded()))
    return source.restore(pa.Table.from_batches([Encoder(schema).decode(matrix)]))


@pytest.mark.parametrize(
    "dtypes",
    [
        {"age": "int8", "sex": "str"},
        {"age": "Int16", "sex": "string"},
        {"age": "float32", "sex": "category"},
        {"age": "UInt64", "sex": object},
        {"age": pd.ArrowDtype(pa.uint8()), "sex": pd.ArrowDtype(pa.large_string())},
    ],
)
def test_pandas_dtypes_come_back(dtypes: dict[str, Any]) -> None:
    frame = TABLE.to_pandas().astype(dtypes)
    if dtypes["sex"] is object:
        frame["sex"] = pd.Series(["m", None, "f"], dtype=object)
    back = decoded(frame)
    assert list(back.columns) == list(frame.columns)
    pd.testing.assert_frame_equal(back, frame, check_categorical=False)


def test_categories_come_from_the_schema_not_from_the_data() -> None:
    learned = pd.CategoricalDtype(["m", "f", "a secret value"], ordered=True)
    back = decoded(TABLE.to_pandas().astype({"sex": learned}))
    assert list(back["sex"].cat.categories) == ["f", "m"]
    assert back["sex"].cat.ordered
    enum = pl.Enum(["m", "f", "a secret value"])
    frame = pl.from_arrow(TABLE)
    assert isinstance(frame, pl.DataFrame)
    assert decoded(frame.with_columns(pl.col("sex").cast(enum)))["sex"].dtype == pl.Enum(["f", "m"])


def test_nulls_in_a_result_for_a_column_that_had_none() -> None:
    frame = pd.DataFrame({"n": [1, 2], "b": [True, False]})
    schema = Schema.draft(pa.table({"n": [1, None, 3], "b": [True, None, False]}))
    result = pa.table({"n": [1, None], "b": [None, True]})
    back = open_source(frame, schema).restore(result)
    assert back["n"].dtype == "Int64"
    assert back["b"].dtype == "boolean"


def test_text_that_the_schema_calls_a_number_comes_back_as_a_number() -> None:
    frame = pd.DataFrame({"age": ["31", "64"], "sex": ["m", "f"]})
    assert decoded(frame)["age"].tolist() == [31, 64]
    assert decoded(pl.DataFrame(frame.to_dict("list")))["age"].dtype == pl.Int64
    assert decoded(pa.table(frame.to_dict("list")))["age"].type == pa.int64()


@pytest.mark.parametrize(
    "kinds",
    [
        [pa.int32(), pa.dictionary(pa.int8(), pa.string())],
        [pa.uint8(), pa.large_string()],
        [pa.float32(), pa.string_view()],
        [pa.decimal128(10, 2), pa.string()],
    ],
)
def test_arrow_types_come_back(kinds: list[pa.DataType]) -> None:
    arrays = [
        TABLE["age"].cast(pa.float64()).cast(kinds[0]),
        TABLE["sex"].dictionary_encode().cast(kinds[1])
        if pa.types.is_dictionary(kinds[1])
        else TABLE["sex"].cast(kinds[1]),
    ]
    table = pa.table(arrays, names=["age", "sex"])
    back = decoded(table)
    assert back.schema.types == kinds
    assert back.to_pylist() == table.to_pylist()


def test_polars_types_and_order_come_back() -> None:
    schema = Schema([*SCHEMA, Date("born", lower=dt.date(1900, 1, 1), upper=dt.date(2030, 1, 1))])
    frame = pl.DataFrame(
        {"born": [dt.date(1990, 1, 1)], "sex": ["m"], "age": [31]},
        schema={"born": pl.Date, "sex": pl.Categorical, "age": pl.Int8},
    )
    back = decoded(frame, schema)
    assert back.schema == frame.schema
    assert back.rows() == frame.rows()


def test_columns_named_by_numbers() -> None:
    frame = pd.DataFrame({0: [1, 2]})
    schema = Schema([Integer("0", lower=0, upper=9)])
    assert [len(matrix) for matrix in open_source(frame, schema).encoded()] == [2]


def test_a_missing_extra_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"age": [1], "sex": ["m"]})
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'private-gsd\[polars\]'"):
        open_source(frame, SCHEMA)
