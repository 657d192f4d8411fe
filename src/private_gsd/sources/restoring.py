"""Restoring: a result in the schema's types as the kind of frame, and in the types, that came.

A type that came is restored where every value fits it. Where one does not (300 in an int8 column, a
null in a boolean one, a text in a column of codes), the column stays in the schema's type, or in
the nearest one that holds nulls: no value is bent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.errors import require
from private_gsd.schema.arrow import is_text

if TYPE_CHECKING:
    from private_gsd.schema import Schema


def fit(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column in that type, or as it is where the type cannot hold every value."""
    if is_text(kind) and not is_text(column.type):
        return column  # it came as text, and the schema knows better
    if pa.types.is_boolean(kind) and not pa.types.is_boolean(column.type):
        zero_or_one = pa.array([0, 1, None]).cast(column.type)
        if not pc.all(pc.is_in(column, value_set=zero_or_one)).as_py():
            return column
    if pa.types.is_timestamp(kind) and kind.tz is None and getattr(column.type, "tz", None):
        column = pc.local_timestamp(column)
    # Arrow casts no int64 to a short decimal.
    between = column.cast(pa.float64()) if pa.types.is_decimal(kind) else column
    try:
        return between.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def restore_arrow(table: pa.Table, came: pa.Schema) -> pa.Table:
    """A table in the Arrow types that came."""
    columns = []
    for name in table.column_names:
        column, kind = table[name], came.field(name).type
        if pa.types.is_dictionary(kind):
            values = fit(column, kind.value_type)
            if values.type == kind.value_type:
                values = values.dictionary_encode().cast(kind)
            columns.append(values)
        else:
            columns.append(fit(column, kind))
    return pa.table(columns, names=table.column_names)


def restore_pandas(table: pa.Table, dtypes: Any, schema: Schema) -> Any:
    """A pandas frame with the dtypes that came."""
    pandas = require("pandas", what="Giving back a pandas DataFrame", extra="pandas")
    columns = {}
    for name in table.column_names:
        dtype = dtypes[name]
        if isinstance(dtype, pandas.CategoricalDtype):
            # The values that came may have been learned from the data: take the schema's.
            values = getattr(schema[name], "values", None)
            dtype = pandas.CategoricalDtype(values, ordered=dtype.ordered)
        columns[name] = _restore_series(pandas, table[name], dtype)
    return pandas.DataFrame(columns)


def _restore_series(pandas: Any, column: pa.ChunkedArray, dtype: Any) -> Any:
    holds_nulls = {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype()}
    if isinstance(dtype, pandas.CategoricalDtype):
        return column.to_pandas(types_mapper=holds_nulls.get).astype(dtype)
    if isinstance(dtype, pandas.ArrowDtype):
        array = fit(column, dtype.pyarrow_dtype).combine_chunks()
        return pandas.Series(pandas.array(array, dtype=pandas.ArrowDtype(array.type)))
    if isinstance(dtype, pandas.StringDtype):
        return column.to_pandas().astype(dtype) if is_text(column.type) else column.to_pandas()
    if dtype == np.dtype(object):
        return pandas.Series(column.to_pylist(), dtype=object)
    kind = _arrow_type(pandas, dtype)
    fitted = fit(column, kind)
    if pa.types.is_timestamp(kind):
        return fitted.to_pandas()
    fits = fitted.type == kind
    if fitted.null_count and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        fits = False  # these hold no null
    if not fits:
        return column.to_pandas(types_mapper=holds_nulls.get if column.null_count else None)
    return column.to_pandas(types_mapper=holds_nulls.get).astype(dtype)


def _arrow_type(pandas: Any, dtype: Any) -> pa.DataType:
    """The Arrow type of a pandas dtype."""
    if isinstance(dtype, pandas.DatetimeTZDtype):
        return pa.timestamp(dtype.unit, tz=str(dtype.tz))
    return pa.from_numpy_dtype(getattr(dtype, "numpy_dtype", dtype))


def restore_polars(table: pa.Table, empty: Any, schema: Schema) -> Any:
    """A Polars frame with the dtypes that came."""
    polars = require("polars", what="Giving back a Polars frame", extra="polars")
    came = empty.to_arrow().schema
    columns = []
    for name in table.column_names:
        dtype, kind = empty.schema[name], came.field(name).type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        series = polars.from_arrow(fit(table[name], values)).alias(name)
        if dtype in (polars.Enum, polars.Categorical) and series.dtype == polars.String:
            # The values that came may have been learned from the data: take the schema's.
            listed = [str(value) for value in getattr(schema[name], "values", ())]
            series = series.cast(polars.Enum(listed) if dtype == polars.Enum else dtype)
        columns.append(series)
    return polars.DataFrame(columns)
