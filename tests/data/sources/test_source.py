"""Sources: every kind of frame gives the same rows, again and again."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pytest

from private_gsd import (
    LeftOutWarning,
    open_source,
)
from private_gsd.errors import SourceError
from tests.data.sources.small_table import SCHEMA, TABLE

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


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow])
def test_no_rows(make: Any) -> None:
    with pytest.raises(SourceError, match="the table has no rows"):
        list(open_source(make(TABLE.slice(0, 0)), SCHEMA).encoded())


def test_opening_a_source_again() -> None:
    source = open_source(open_source(TABLE), SCHEMA)
    assert len(next(source.encoded())) == 3


def test_missing_and_left_out_columns() -> None:
    with pytest.raises(SourceError, match="the pandas DataFrame: missing column 'sex'"):
        open_source(TABLE.to_pandas().drop(columns="sex"), SCHEMA)
    with pytest.warns(LeftOutWarning, match="the pandas DataFrame: left out.*: name"):
        open_source(TABLE.to_pandas().assign(name="x"), SCHEMA)


def test_encoding_needs_a_schema() -> None:
    with pytest.raises(SourceError, match="open it with a schema"):
        next(open_source(TABLE).encoded())
    with pytest.raises(SourceError, match="open it with a schema"):
        open_source(TABLE).restore(TABLE)
