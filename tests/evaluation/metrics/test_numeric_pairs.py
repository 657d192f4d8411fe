"""Single statistics agree with the standard library, and with pandas."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Integer, Real
from private_gsd.evaluation.metrics.distributions import scale_of
from private_gsd.evaluation.metrics.numeric_pairs import (
    NumericPair,
    mean,
    one_sided,
    share,
    standard_deviation,
)

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50)
HUGE = 1.7e308


@given(NUMBERS)
def test_means_and_standard_deviations(numbers: list[float]) -> None:
    values = np.array(numbers)
    largest = max(1e-300, float(np.abs(values).max()))
    assert mean(values) == pytest.approx(statistics.fmean(numbers), rel=1e-12, abs=1e-12 * largest)
    assert standard_deviation(values) == pytest.approx(
        statistics.stdev(numbers), rel=1e-9, abs=1e-9 * largest
    )


def test_few_and_huge_values() -> None:
    assert mean(np.empty(0)) is None
    assert standard_deviation(np.array([3.0])) is None
    assert standard_deviation(np.full(3, 0.1)) == 0
    assert mean(np.array([HUGE, HUGE, HUGE])) == HUGE
    spread = standard_deviation(np.array([0.0, HUGE]))
    assert spread == pytest.approx(HUGE / math.sqrt(2))
    assert mean(np.zeros(3)) == 0
    assert mean(np.array([5e-324, 5e-324])) == 5e-324


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_scales_are_powers_of_two(numbers: list[float]) -> None:
    values = np.array(numbers)
    assert math.frexp(scale_of(values))[0] == 0.5
    assert np.abs(values / scale_of(values)).max() <= 2


def test_relative_differences_are_of_numbers_on_one_side_of_zero() -> None:
    assert one_sided(np.array([0.0, 1.0, 5.0]))
    assert one_sided(np.array([-1.0, -3.0]))
    assert one_sided(np.array([-1.0, 30.0, 20.0]))
    assert not one_sided(np.array([-1.0, 1.5]))
    assert not one_sided(np.zeros(4))
    assert not one_sided(np.empty(0))


def pair_of(real: list[float], synthetic: list[float]) -> NumericPair:
    column = Real("x", lower=-1e6, upper=1e6, nullable=True)
    return NumericPair.of(column, np.array(real, float), np.array(synthetic, float))


def test_a_statistic_is_compared_in_three_units() -> None:
    pair = pair_of([2.0, 4.0, 6.0, math.nan], [3.0])
    found = pair.place("mean", 4.0, 3.0)
    assert found[:6] == ("mean", 4.0, 3.0, -1.0, -0.25, -0.5)
    assert found.texts == ("4.000", "3.000", "-1.000")
    assert pair.width("width", 2.0, 3.0)[3:6] == (1.0, 0.5, None)
    absent = pair.place("mean", 4.0, None)
    assert absent[2:6] == (None, None, None, None)
    assert absent.texts == ("4.000", "", "")
    # Nothing is divided by zero, or by next to nothing.
    assert pair.place("median", 0.0, 3.0).relative is None
    assert pair.place("median", 5e-324, 3.0).relative is None
    assert pair_of([2.0, 2.0], [3.0, 3.0]).place("mean", 2.0, 3.0).standardised is None
    assert pair_of([-2.0, 2.0], [3.0, 3.0]).place("mean", 1.0, 3.0).relative is None


def test_shares_are_compared_in_percentage_points() -> None:
    assert share("x", 0.25, 0.125).texts == ("25.00%", "12.50%", "-12.50")
    assert share("x", 0.25, 0.25001).texts[2] == "0"
    assert share("x", 0.25, 0.125)[4:6] == (None, None)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_are_those_of_pandas_with_fewer_digits(numbers: list[float], at: float) -> None:
    pair = pair_of(numbers, numbers)
    [found] = pair.quantiles(pair.present[0], [at])
    slack = (pair.spread or 0.0) / 1000
    assert found == pytest.approx(pd.Series(numbers).quantile(at), abs=slack + 1e-9)
    assert pair.quantiles(np.empty(0), [0.5, at]) == [None, None]


def test_common_values_keep_all_of_their_digits() -> None:
    """A top code is not a thousandth of a standard deviation away from itself."""
    income = [123.45, 4321.09, 61_234.56, *[99_999.99] * 10]
    pair = pair_of(income, income)
    low, top = pair.quantiles(pair.present[0], [0.0, 0.9])
    assert (low, top) == (120.0, 99_999.99)
    assert pair.place("95th percentile", top, low).texts[:2] == ("99,999.99", "120")
    assert pair.common.tolist() == [99_999.99]


def test_few_rows_are_not_common() -> None:
    column = Integer("n", lower=0, upper=100)
    one = np.repeat([3.0, 4.0, np.nan], [5, 4, 9])
    assert NumericPair.of(column, one, np.empty(0)).common.tolist() == [3]
    assert NumericPair.of(column, np.empty(0), one).common.tolist() == [3]
    zeros = np.repeat([-0.0, 0.0], 3)
    assert str(NumericPair.of(column, zeros, zeros).common.tolist()) == "[0.0]"
