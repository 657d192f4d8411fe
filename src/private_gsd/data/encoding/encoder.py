"""The encoder: an Arrow record batch to one numeric row matrix and back.

The matrix is float64 with a row for each row and a column for each column of the schema:

- categorical and boolean columns hold the position in the list of values, 0, 1, 2, …;
- integer and real columns hold the number itself;
- date and datetime columns hold whole units of their resolution since 1970;
- NaN is null, in every kind.

Encoding a row looks at no other row: the same row always encodes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.data.encoding.arrow_values import read_array
from private_gsd.data.encoding.problems import Problems
from private_gsd.errors import DataError, SchemaError, did_you_mean
from private_gsd.schema import Categorical, Column, Date, Datetime, Discrete, Integer, Numeric, Real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]

OnInvalid = Literal["error", "coerce"]


class Encoder:
    """Turns record batches of one schema into row matrices, and back.

    >>> from private_gsd import Categorical, Encoder, Integer, Schema
    >>> schema = Schema([Integer("age", lower=0, upper=120), Categorical("sex", values=["f", "m"])])
    >>> encoder = Encoder(schema)
    >>> batch = pa.record_batch({"age": [31, 64], "sex": ["m", "f"]})
    >>> encoder.encode(batch)
    array([[31.,  1.],
           [64.,  0.]])
    >>> encoder.decode(encoder.encode(batch)).to_pydict()
    {'age': [31, 64], 'sex': ['m', 'f']}

    Args:
        schema: The public schema.
        on_invalid: What to do with values outside the schema. "error" names them and stops.
            "coerce" moves numbers and dates to the nearest bound, a fraction in an integer column
            to the nearest whole number, and what is unknown or unreadable to null where the column
            is nullable, else to its ``other``. A null where none is allowed and nothing stands for
            it is an error in both.
    """

    def __init__(self, schema: Schema, *, on_invalid: OnInvalid = "error") -> None:
        if on_invalid not in get_args(OnInvalid):
            raise ValueError(f"on_invalid must be 'error' or 'coerce', not {on_invalid!r}")
        self.schema = schema
        self.on_invalid = on_invalid
        if on_invalid == "coerce":
            for column in schema:
                if isinstance(column, Discrete) and not column.nullable and _other(column) is None:
                    raise SchemaError(
                        f"column {column.name!r}: nothing stands for an unknown value, which "
                        'on_invalid="coerce" needs; make it nullable'
                        + (" or declare other" * isinstance(column, Categorical))
                    )

    def encode(self, batch: pa.RecordBatch) -> Matrix:
        """Encode a batch; values outside the schema raise a DataError that names them all."""
        problems = Problems()
        matrix = self.encode_into(batch, problems)
        if problems:
            raise problems.error()
        return matrix

    def encode_into(self, batch: pa.RecordBatch, problems: Problems) -> Matrix:
        """Encode a batch and note what does not fit; the caller raises when the pass is over."""
        matrix = np.empty((batch.num_rows, len(self.schema)), order="F")
        for position, column in enumerate(self.schema):
            index = batch.schema.get_field_index(column.name)
            if index < 0:
                hint = did_you_mean(column.name, batch.schema.names)
                raise DataError(f"column {column.name!r} is missing or stands twice{hint}")
            matrix[:, position] = self._encode_column(column, batch.column(index), problems)
        return matrix

    def _encode_column(
        self, column: Column, array: pa.Array, problems: Problems
    ) -> NDArray[np.float64]:
        values, unreadable = read_array(column, array)
        outside = unreadable
        if isinstance(column, Numeric):
            low, high = column.bounds
            beyond = (values < low) | (values > high)  # both false for NaN
            if isinstance(column, Integer):
                beyond |= np.isfinite(values) & (values != np.rint(values))
            outside = beyond if unreadable is None else beyond | unreadable
        nulls = np.isnan(values)
        if unreadable is not None:
            nulls &= ~unreadable
        if self.on_invalid == "error":
            if outside is not None and outside.any():
                problems.add_outside(column, array, outside)
        elif outside is not None and outside.any():
            values = self._coerce(column, values)
            stuck = outside & np.isnan(values)
            if not column.nullable and stuck.any():
                problems.add_outside(column, array, stuck)
            problems.add_coerced(column, int(outside.sum() - stuck.sum() * (not column.nullable)))
        if not column.nullable and nulls.any():
            other = _other(column) if self.on_invalid == "coerce" else None
            if other is None:
                problems.add_nulls(column, int(nulls.sum()))
            else:
                values[nulls] = other
                problems.add_coerced(column, int(nulls.sum()))
        return values

    def _coerce(self, column: Column, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Move what can be moved into the domain; NaN stays where null is allowed."""
        if isinstance(column, Numeric):
            low, high = column.bounds
            values = np.clip(values, low, high)
            return np.rint(values) if isinstance(column, Integer) else values
        other = _other(column)
        if column.nullable or other is None:
            return values
        return np.where(np.isnan(values), other, values)

    def decode(self, matrix: Matrix) -> pa.RecordBatch:
        """Turn a row matrix back into values of exactly the schema's types."""
        if matrix.ndim != 2 or matrix.shape[1] != len(self.schema):
            raise ValueError(
                f"expected a matrix with {len(self.schema)} columns, not shape {matrix.shape}"
            )
        arrays = [
            _decode_column(column, np.asarray(matrix[:, position], dtype=np.float64))
            for position, column in enumerate(self.schema)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema.arrow_schema)

    def to_unit(self, matrix: Matrix) -> Matrix:
        """A copy with numeric columns scaled to [0, 1]; codes and nulls stay as they are."""
        bounds = np.array(
            [column.bounds if isinstance(column, Numeric) else (0, 1) for column in self.schema],
            dtype=np.float64,
        )
        offset, span = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
        return (matrix - offset) / span


def _other(column: Column) -> float | None:
    """The code of the value that stands for unknown ones."""
    if isinstance(column, Categorical) and column.other is not None:
        return float(column.values.index(column.other))
    return None


def _decode_column(column: Column, values: NDArray[np.float64]) -> pa.Array:
    null = np.isnan(values)
    if null.any() and not column.nullable:
        raise ValueError(f"column {column.name!r}: NaN in a column that is not nullable")
    if isinstance(column, Real):
        if column.decimals is not None:
            # Adding zero turns -0.0 into 0.0.
            values = np.round(values, column.decimals) + 0.0
        whole = values
    else:
        whole = np.rint(np.where(null, 0, values)).astype(np.int64)
    low, high = column.bounds
    if ((whole < low) | (whole > high))[~null].any():
        raise ValueError(f"column {column.name!r}: a value is not {column.expected}")
    if isinstance(column, Discrete):
        codes = pa.array(whole, mask=null)
        return pa.array(column.values, column.arrow_type).take(codes)
    if isinstance(column, Date):
        days = whole.astype(f"datetime64[{column.unit}]").astype("datetime64[D]")
        return pa.array(days, pa.date32(), mask=null)
    if isinstance(column, Datetime):
        moments = whole.astype(f"datetime64[{column.unit}]").astype("datetime64[us]")
        array = pa.array(moments, pa.timestamp("us"), mask=null)
        if column.timezone is None:
            return array
        # The clock shows an hour twice in autumn and skips one in spring.
        return pc.assume_timezone(
            array, column.timezone, ambiguous="earliest", nonexistent="latest"
        )
    return pa.array(whole, column.arrow_type, mask=null)
