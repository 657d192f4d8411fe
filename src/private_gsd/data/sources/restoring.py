"""Restoring: a synthetic table as a frame of the source's library, with the types of the schema.

The types of the source's frame are not restored, since they depend on all of its rows: one null
turns an ``int64`` of pandas into a ``float64``, which would distinguish two neighbouring tables.
Types, nullability, categories and the order of columns depend on the schema alone, and not on the
synthetic rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from private_gsd.errors import require
from private_gsd.schema import Boolean, Categorical, Date, Datetime, Integer

if TYPE_CHECKING:
    from private_gsd.schema import Column, Schema


def to_arrow(table: pa.Table, schema: Schema) -> pa.Table:
    """A PyArrow table; a field is nullable where its column is."""
    return table.select(schema.names).cast(schema.arrow_schema)


def to_pandas(table: pa.Table, schema: Schema) -> Any:
    """A pandas data frame."""
    pandas = require("pandas", what="Giving back a pandas DataFrame", extra="pandas")
    table = to_arrow(table, schema)
    holds_nulls = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    return pandas.DataFrame(
        {
            column.name: table[column.name]
            .cast(pa.timestamp("us") if isinstance(column, Date) else column.arrow_type)
            .to_pandas(types_mapper=holds_nulls.get)
            .astype(_pandas_dtype(pandas, column))
            for column in schema
        }
    )


def _pandas_dtype(pandas: Any, column: Column) -> Any:
    if isinstance(column, Categorical):
        return pandas.CategoricalDtype(list(column.values))
    if isinstance(column, Integer):
        return "Int64" if column.nullable else "int64"
    if isinstance(column, Boolean):
        return "boolean" if column.nullable else "bool"
    if isinstance(column, Datetime) and column.timezone is not None:
        return pandas.DatetimeTZDtype("us", column.timezone)
    return "datetime64[us]" if isinstance(column, Date | Datetime) else "float64"


def to_polars(table: pa.Table, schema: Schema) -> Any:
    """A Polars data frame; columns of text categories are enums."""
    polars = require("polars", what="Giving back a Polars frame", extra="polars")
    enums = {
        column.name: polars.Enum(list(column.values))
        for column in schema
        if isinstance(column, Categorical) and column.arrow_type == pa.string()
    }
    return polars.from_arrow(to_arrow(table, schema)).cast(enums)
