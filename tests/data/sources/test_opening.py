"""Opening: what is no table is refused, with a message that says what is one."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pytest

from private_gsd import (
    open_source,
)
from private_gsd.errors import MissingExtraError, SourceError
from tests.data.sources.small_table import SCHEMA


@pytest.mark.parametrize("data", [5, None, [1, 2], {"age": [1]}, np.zeros((2, 2))])
def test_what_is_no_table(data: Any) -> None:
    with pytest.raises(SourceError, match="cannot read a table from"):
        open_source(data, SCHEMA)


@pytest.mark.parametrize("data", [pd.Series([1]), pl.Series([1]), pa.chunked_array([[1]])])
def test_a_single_column_is_no_table(data: Any) -> None:
    with pytest.raises(SourceError, match=r"not a table of named columns|cannot read a table"):
        open_source(data, SCHEMA)


def test_a_missing_extra_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"age": [1], "sex": ["m"]})
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'private-gsd\[polars\]'"):
        open_source(frame, SCHEMA)
