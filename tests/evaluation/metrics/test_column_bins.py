"""The cells of columns: their labels, and the shares of rows in them."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Date, Integer, Real
from private_gsd.evaluation.metrics.column_bins import cells_of, quantile_cells, words_of


def test_cells() -> None:
    age = Integer("age", lower=0, upper=120, nullable=True)
    few = cells_of(age, [np.array([3.0, 5.0, np.nan])])
    assert few.labels == ("3", "4", "5", "null")
    assert few.shares(np.array([3.0, 5.0, 5.0, np.nan])).tolist() == [0.25, 0, 0.5, 0.25]
    many = cells_of(age, [np.arange(121.0)])
    assert many.labels[0].startswith("below ")
    assert many.labels[-2].endswith(" or more")
    assert many.shares(np.arange(121.0)).sum() == pytest.approx(1)
    assert cells_of(age, [np.full(3, np.nan)]).labels == ("any", "null")
    day = Date("day", lower="2020-01-01", upper="2020-12-31")  # type: ignore[arg-type]
    assert words_of(day, 18262.0) == "2020-01-01"
    real = Real("r", lower=0, upper=1e6)
    flat = cells_of(real, [np.full(5, 2.5)])
    assert flat.shares(np.full(5, 2.5)).max() == 1
    assert quantile_cells(real, np.arange(1000.0), 20).shares(np.arange(1000.0)) == pytest.approx(
        np.full(20, 0.05), abs=0.002
    )
