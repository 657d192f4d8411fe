"""Binning equals a binary search, for any breaks and any values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.kernels.binning import bin_codes, bin_numbers

numbers = (
    st.floats(-1e300, 1e300)
    | st.integers(-5, 5).map(float)
    | st.floats(0, 1e-307)
    | st.integers(0, 40).map(lambda ulps: ulps * 5e-324)
)


@given(
    st.lists(numbers, unique=True).map(sorted),
    st.lists(numbers | st.sampled_from([float("nan"), float("inf"), float("-inf")])),
)
def test_numbers(breaks: list[float], values: list[float]) -> None:
    cuts = np.array(breaks, dtype=np.float64)
    mixed = np.array(values + breaks, dtype=np.float64)
    out = np.empty(len(mixed), dtype=np.uint16)
    bin_numbers(mixed, cuts, 999, out)
    expected = np.where(np.isnan(mixed), 999, np.searchsorted(cuts, mixed, side="right"))
    np.testing.assert_array_equal(out, expected)


def test_codes() -> None:
    out = np.empty(3, dtype=np.uint16)
    bin_codes(np.array([0.0, np.nan, 7.0]), 8, out)
    assert out.tolist() == [0, 8, 7]


@given(st.integers(1, 6), st.floats(5e-324, 1e-290))
def test_tiny_spans(depth: int, high: float) -> None:
    """Where the inverse of the span is infinite the guess must not leave the breaks."""
    cuts = np.unique([high * (cut / 2**depth) for cut in range(1, 2**depth)])
    values = np.concatenate([cuts, [0.0, high]])
    out = np.empty(len(values), dtype=np.uint16)
    bin_numbers(values, cuts, 999, out)
    np.testing.assert_array_equal(out, np.searchsorted(cuts, values, side="right"))
