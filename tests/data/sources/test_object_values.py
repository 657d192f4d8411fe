"""Columns of mixed objects: each object is read by itself."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from private_gsd import (
    Categorical,
    Datetime,
    Schema,
    open_source,
)
from private_gsd.errors import DataError, SourceError
from tests.data.sources.small_table import SCHEMA


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
