"""Estimates of columns from marginals; see also the tests of derived statistics."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Real
from private_gsd.measurements.marginal_estimates import column_estimate


@pytest.mark.parametrize("level", [0.3, 0.5, 0.9])
def test_quantiles_where_the_upper_bound_has_a_segment_of_its_own(level: float) -> None:
    """Six tenths of the values are 500; the segment of 500 has no width."""
    column = Real("x", lower=0, upper=500)
    cells = np.array([400.0, 600.0])
    found = column_estimate(column, [((500.0,), cells, np.ones(2))], None)
    at, below = found.quantile(level)
    assert at == pytest.approx(min(level / 0.4, 1) * 500)
    assert below @ cells / 1000 == pytest.approx(min(level, 0.4))
