"""pandas frames: names of columns that are no texts."""

from __future__ import annotations

import pandas as pd

from private_gsd import (
    Integer,
    Schema,
    open_source,
)


def test_pandas_columns_in_levels() -> None:
    frame = pd.DataFrame([[1, "f"]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("c", "d")]))
    assert open_source(frame).columns == ("('a', 'b')", "('c', 'd')")


def test_columns_named_by_numbers() -> None:
    frame = pd.DataFrame({0: [1, 2]})
    schema = Schema([Integer("0", lower=0, upper=9)])
    assert [len(matrix) for matrix in open_source(frame, schema).encoded()] == [2]
