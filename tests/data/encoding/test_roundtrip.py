"""What goes in comes out: every kind, with nulls, through every door, in the schema's types."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal as assert_polars_equal

from private_gsd import Categorical, Encoder, Schema, open_source
from private_gsd.schema.columns import LARGEST_EXACT
from tests.strategies import matrices, schemas, tables


def through(data: Any, schema: Schema, batch_rows: int = 3) -> pa.Table:
    """Encode a source batch by batch, and decode it."""
    encoder = Encoder(schema)
    source = open_source(data, schema)
    matrix = np.vstack(list(source.encoded(batch_rows=batch_rows)))
    return pa.Table.from_batches([encoder.decode(matrix)])


def returned(data: Any, schema: Schema) -> Any:
    """The same, given back as the kind of frame that came."""
    return open_source(data, schema).restore(through(data, schema))


@given(tables())
def test_a_batch_decodes_to_itself(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    assert through(table, schema).equals(table)


@given(st.data())
def test_a_matrix_encodes_to_itself(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    matrix = data.draw(matrices(schema))
    encoder = Encoder(schema)
    np.testing.assert_array_equal(encoder.encode(encoder.decode(matrix)), matrix)


@given(tables())
def test_rows_are_encoded_one_by_one(example: tuple[Schema, pa.Table]) -> None:
    """No statistic of the other rows is used: each row alone encodes as it does among others."""
    schema, table = example
    encoder = Encoder(schema)
    [batch] = table.to_batches()
    together = encoder.encode(batch)
    alone = [encoder.encode(batch.slice(row, 1)) for row in range(batch.num_rows)]
    np.testing.assert_array_equal(np.vstack(alone), together)


def exact_in_floats(schema: Schema) -> bool:
    """Whether pandas can hold the codes at all: beside a null it keeps integers as floats."""
    return all(
        abs(value) <= LARGEST_EXACT
        for column in schema
        if isinstance(column, Categorical) and column.nullable
        for value in column.values
        if isinstance(value, int)
    )


def comes_back(data: Any, schema: Schema, table: pa.Table) -> Any:
    """A frame is read as the table, and what is given back is read as the table again."""
    assert through(data, schema).equals(table)
    back = returned(data, schema)
    assert type(back) is type(data)
    assert through(back, schema).equals(table)
    return back


@given(tables())
def test_pandas(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    assume(exact_in_floats(schema))
    back = comes_back(table.to_pandas(), schema, table)
    assert list(back.columns) == list(schema.names)


@given(tables())
def test_pandas_with_arrow_dtypes(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    comes_back(table.to_pandas(types_mapper=pd.ArrowDtype), schema, table)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # pandas 2
@given(tables())
def test_pandas_with_nullable_dtypes(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    assume(exact_in_floats(schema))
    comes_back(table.to_pandas().convert_dtypes(), schema, table)


@given(tables())
def test_polars(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    back = comes_back(frame, schema, table)
    lazy = comes_back(frame.lazy(), schema, table)
    assert_polars_equal(lazy.collect(), back)


@given(tables())
def test_pyarrow_dataset(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    assert returned(pyarrow.dataset.dataset(table), schema).equals(table)


@pytest.mark.slow
@given(tables())
def test_duckdb(example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        back = comes_back(connection.from_arrow(table), schema, table)
        assert back.columns == list(schema.names)


def write_csv_arrow(table: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(table, path)


def write_csv_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.from_arrow(table).write_csv(str(path))


def write_csv_pandas(table: pa.Table, path: Path) -> None:
    table.to_pandas(types_mapper=pd.ArrowDtype).to_csv(path, index=False)


def write_csv_polars(table: pa.Table, path: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_csv(path)


@pytest.mark.parametrize(
    "write",
    [
        write_csv_arrow,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (write_csv_duckdb, write_csv_pandas, write_csv_polars)
        ),
    ],
)
@given(tables(), st.sampled_from(["csv", "csv.gz"]))
def test_csv(
    write: Callable[[pa.Table, Path], None], example: tuple[Schema, pa.Table], ending: str
) -> None:
    schema, table = example
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write(table, path)
        if ending == "csv.gz":
            zipped = path.with_suffix(".csv.gz")
            zipped.write_bytes(gzip.compress(path.read_bytes()))
            path = zipped
        assert through(path, schema).equals(table)


def write_parquet_arrow(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path)


def write_parquet_polars(table: pa.Table, path: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path)


def write_parquet_duckdb(table: pa.Table, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.from_arrow(table).write_parquet(str(path))


@pytest.mark.parametrize("write", [write_parquet_arrow, write_parquet_polars, write_parquet_duckdb])
@given(tables())
def test_parquet(write: Callable[[pa.Table, Path], None], example: tuple[Schema, pa.Table]) -> None:
    schema, table = example
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write(table, path)
        assert through(path, schema).equals(table)


@given(schemas())
def test_the_schema_file_gives_the_schema_back(schema: Schema) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.toml"
        schema.write(path)
        assert Schema.read(path) == schema
