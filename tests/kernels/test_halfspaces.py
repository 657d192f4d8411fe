"""The boundary belongs to the halfspace."""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.halfspaces import count_halfspaces


def test_a_sum_that_equals_the_threshold_is_inside() -> None:
    categories = np.array([[0], [1]], dtype=np.int32)
    dimensions = np.array([[2], [2]], dtype=np.int32)
    units = np.array([[0.5], [0.25]], dtype=np.float32)
    coefficients = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, -4.0]], dtype=np.float32)
    thresholds = np.array([3.0, -1.0], dtype=np.float32)
    counts = np.zeros(2, dtype=np.int64)
    count_halfspaces(categories, dimensions, units, coefficients, thresholds, counts)
    # 1 + 0.5 * 4 = 3 and 2 + 0.25 * 4 = 3 are both at the threshold; 1 - 2 = -1 too, 2 - 1 is not.
    assert counts.tolist() == [2, 1]
