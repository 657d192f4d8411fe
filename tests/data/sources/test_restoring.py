"""What comes back is the schema's in all but the library: types, categories, order, nullability."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from private_gsd import (
    Boolean,
    Categorical,
    Date,
    Datetime,
    Integer,
    Real,
    Schema,
    Synthesizer,
    open_source,
)
from private_gsd.synthesis.smartnoise import GsdSynthesizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOMENTS: dict[str, Any] = {"lower": dt.datetime(1600, 1, 1), "upper": dt.datetime(2500, 1, 1)}
DAYS: dict[str, Any] = {"lower": dt.date(1600, 1, 1), "upper": dt.date(2500, 1, 1)}
SCHEMA = Schema(
    [
        Categorical("text", values=("b", "a", "c")),
        Categorical("text?", values=("b", "a", ""), nullable=True),
        Categorical("code", values=(3, 1, 2)),
        Categorical("code?", values=(3, 2**62 + 1), nullable=True),
        Categorical("flag", values=(True,)),
        Boolean("bool"),
        Boolean("bool?", nullable=True),
        Integer("int", lower=0, upper=500),
        Integer("int?", lower=0, upper=500, nullable=True),
        Real("real?", lower=0, upper=5, nullable=True),
        Date("date", **DAYS),
        Datetime("moment?", **MOMENTS, nullable=True),
        Datetime("vienna", **MOMENTS, timezone="Europe/Vienna"),
    ]
)
NOON = dt.datetime(1600, 7, 1, 12)  # before what nanoseconds can say
FULL = {
    "text": "a",
    "text?": "",
    "code": 2,
    "code?": 2**62 + 1,
    "flag": True,
    "bool": True,
    "bool?": False,
    "int": 300,
    "int?": 7,
    "real?": 1.5,
    "date": NOON.date(),
    "moment?": NOON,
    "vienna": NOON.replace(tzinfo=dt.UTC),
}
NULLS = FULL | {column.name: None for column in SCHEMA if column.nullable}
RESULTS = {
    "without nulls": [FULL, FULL],
    "with nulls": [FULL, NULLS],
    "nothing but nulls": [NULLS],
    "no rows": [],
}


def result(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA.arrow_schema)


def frames(table: pa.Table) -> Iterator[Any]:
    """The same table as every sort of frame in memory, in types that follow from its values."""
    yield from (table, table.to_batches()[0], duckdb.from_arrow(table))
    yield table.to_pandas()
    yield table.to_pandas(types_mapper=pd.ArrowDtype)
    yield table.to_pandas().convert_dtypes()
    yield (
        table.to_pandas().astype({"text": "category", "int": "int16"}).set_index("code", drop=False)
    )
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    yield from (frame, frame.lazy(), frame.with_columns(pl.col("text").cast(pl.Categorical)))


def types_of(frame: Any) -> Any:
    """Everything about a frame that is not its rows."""
    if isinstance(frame, pd.DataFrame):
        kinds = [
            (name, dtype, list(dtype.categories), dtype.categories.dtype, dtype.ordered)
            if isinstance(dtype, pd.CategoricalDtype)
            else (name, dtype)
            for name, dtype in frame.dtypes.items()
        ]
        return (
            "pandas",
            kinds,
            type(frame.index),
            frame.index.name,
            frame.columns.dtype,
            frame.attrs,
        )
    if isinstance(frame, pl.DataFrame):
        return "polars", list(frame.schema.items())
    if isinstance(frame, pl.LazyFrame):
        return "lazy", list(frame.collect_schema().items())
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return "duckdb", frame.columns, list(map(str, frame.types))
    assert isinstance(frame, pa.Table)
    return "arrow", frame.schema, frame.schema.metadata


@pytest.mark.parametrize("rows", RESULTS.values(), ids=RESULTS.keys())
def test_pandas(rows: list[dict[str, Any]]) -> None:
    back = open_source(result([FULL]).to_pandas(), SCHEMA).restore(result(rows))
    assert {name: str(dtype) for name, dtype in back.dtypes.items()} == {
        **dict.fromkeys(["text", "text?", "code", "code?", "flag"], "category"),
        "bool": "bool",
        "bool?": "boolean",
        "int": "int64",
        "int?": "Int64",
        "real?": "float64",
        "date": "datetime64[us]",
        "moment?": "datetime64[us]",
        "vienna": "datetime64[us, Europe/Vienna]",
    }
    for name in ("text", "text?", "code", "code?", "flag"):
        column = SCHEMA[name]
        assert isinstance(column, Categorical)
        assert list(back[name].cat.categories) == list(column.values)
        assert not back[name].cat.ordered
    assert back["int"].tolist() == [row["int"] for row in rows]
    assert [None if pd.isna(code) else code for code in back["code?"]] == [
        row["code?"] for row in rows
    ]
    assert back["date"].tolist() == [pd.Timestamp(row["date"]) for row in rows]


@pytest.mark.parametrize("rows", RESULTS.values(), ids=RESULTS.keys())
def test_polars(rows: list[dict[str, Any]]) -> None:
    back = open_source(pl.from_arrow(result([FULL])), SCHEMA).restore(result(rows))
    assert dict(back.schema) == {
        "text": pl.Enum(["b", "a", "c"]),
        "text?": pl.Enum(["b", "a", ""]),
        **dict.fromkeys(["code", "code?", "int", "int?"], pl.Int64),
        **dict.fromkeys(["flag", "bool", "bool?"], pl.Boolean),
        "real?": pl.Float64,
        "date": pl.Date,
        "moment?": pl.Datetime("us"),
        "vienna": pl.Datetime("us", "Europe/Vienna"),
    }
    assert back.to_arrow().cast(SCHEMA.arrow_schema).to_pylist() == result(rows).to_pylist()


@pytest.mark.parametrize("rows", RESULTS.values(), ids=RESULTS.keys())
def test_arrow_and_duckdb(rows: list[dict[str, Any]]) -> None:
    back = open_source(result([FULL]), SCHEMA).restore(result(rows))
    assert back.equals(result(rows))
    assert [field.name for field in back.schema if field.nullable] == [
        column.name for column in SCHEMA if column.nullable
    ]
    relation = open_source(duckdb.from_arrow(result([FULL])), SCHEMA).restore(result(rows))
    assert list(map(str, relation.types)) == [
        *("VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "BOOLEAN", "BOOLEAN", "BOOLEAN", "BIGINT"),
        *("BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
    ]


def test_types_do_not_depend_on_the_rows_that_came() -> None:
    """A row with nulls turns pandas' int64 into float64, and bool into object; not what we give."""
    neighbours = result([FULL, FULL]), result([FULL, NULLS])
    for one, other in zip(*map(frames, neighbours), strict=True):
        before, after = (
            types_of(open_source(frame, SCHEMA).restore(result([FULL]))) for frame in (one, other)
        )
        assert before == after
    # Nor on their types, names of indexes or notes.
    plain = result([FULL]).to_pandas()
    odd = plain.astype(
        {"int": "float32", "text": pd.CategoricalDtype(["secret", "a"], ordered=True)}
    )
    odd = odd[list(reversed(odd.columns))].set_axis(pd.Index([99], name="secret"))
    odd.attrs["secret"] = 1
    assert types_of(open_source(odd, SCHEMA).restore(result([FULL]))) == types_of(
        open_source(plain, SCHEMA).restore(result([FULL]))
    )
    told = result([FULL]).replace_schema_metadata({"secret": "1"})
    assert types_of(open_source(told, SCHEMA).restore(told))[2] is None


SMALL = SCHEMA.select(["text", "int?", "bool?", "real?"])


def doors(frame: Any) -> Iterator[Any]:
    """Every public way to get synthetic rows of a frame."""
    settings: dict[str, Any] = {"rows": 20, "workload": ["categorical:1"]}
    synth = Synthesizer(SMALL, 1.0, **settings).fit(frame, insecure_noise_seed=1)
    yield from (synth.sample(), synth.sample(3), synth.sample(where="text = 'a'"))
    yield synth.sample_given(pa.table({"text": ["a"]}))
    yield GsdSynthesizer(1.0, schema=SMALL, **settings).fit_sample(frame)


MAKERS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_two_neighbouring_tables_give_the_same_types(make: Callable[[pa.Table], Any]) -> None:
    rows = [FULL | {"text": text, "int?": number} for number, text in enumerate("abc" * 5)]
    one, other = (
        make(result(each).select(SMALL.names))
        for each in (rows, [*rows[:-1], NULLS | rows[0] | {"int?": None, "bool?": None}])
    )
    found = [list(map(types_of, doors(frame))) for frame in (one, other)]
    assert found[0] == found[1]
    assert all(types == found[0][0] for types in found[0])


def test_a_resumed_release_gives_the_same_types(tmp_path: Any) -> None:
    table = result([FULL, NULLS] * 10).select(SMALL.names)
    settings: dict[str, Any] = {"rows": 10, "workload": ["categorical:1"]}
    synth = Synthesizer(SMALL, 1.0, **settings).fit(table, release=tmp_path / "release")
    assert Synthesizer.resume(tmp_path / "release").sample().equals(synth.sample())
    assert synth.sample().schema == SMALL.arrow_schema
    assert synth.release_.synthetic.schema == SMALL.arrow_schema


def test_no_value_is_bent_to_fit_the_type_that_came() -> None:
    """300 does not fit an int8, and the frame that comes back does not care."""
    frame = result([FULL | {"int": 5}]).to_pandas().astype({"int": np.int8})
    assert open_source(frame, SCHEMA).restore(result([FULL]))["int"].tolist() == [300]
