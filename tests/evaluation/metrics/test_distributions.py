"""Distances of columns agree with other implementations of them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Boolean, Date, Real, Schema
from private_gsd.evaluation.metrics.distributions import (
    compare_columns,
    kolmogorov_smirnov,
    total_variation,
)
from tests.evaluation.tables import matrix_of, sample_of

stats = pytest.importorskip("scipy.stats")


@given(st.lists(st.integers(0, 9), min_size=1), st.lists(st.integers(0, 9), min_size=1))
def test_distances_of_columns(one: list[int], two: list[int]) -> None:
    a, b = np.array(one, dtype=float), np.array(two, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about its p-value
        expected = stats.ks_2samp(a, b, method="asymp").statistic
    assert kolmogorov_smirnov(a, b) == pytest.approx(expected)
    shares = [np.bincount(np.array(each), minlength=10) / len(each) for each in (one, two)]
    # The most that any set of values can differ by.
    worst = sum(max(0.0, p - q) for p, q in zip(*shares, strict=True))
    assert total_variation(*shares) == pytest.approx(worst)
    assert kolmogorov_smirnov(a, np.empty(0)) is None


def test_columns_are_compared_by_cells_nulls_and_means() -> None:
    schema = Schema(
        [
            Boolean("flag", nullable=True),
            Real("number", lower=0, upper=10),
            Date("day", lower="2020-01-01", upper="2020-12-31"),  # type: ignore[arg-type]
        ]
    )
    real = sample_of(matrix_of([0, 1, np.nan, 1], [1, 2, 3, 4], [18262, 18263, 18264, 18265]))
    synthetic = sample_of(matrix_of([0, 0], [2, 5], [18262, 18263]))
    flag, number, day = compare_columns(schema, real, synthetic)
    assert flag.labels == ("False", "True", "null")
    assert flag.distance == pytest.approx(0.75)
    assert list(flag.nulls) == [0.25, 0]
    assert flag.ks is None
    assert flag.means is None
    assert number.means == (2.5, 3.5)
    assert day.means == (18263.5, 18262.5)
    assert number.spikes == ()


def test_a_column_of_nulls_has_no_mean() -> None:
    schema = Schema([Real("empty", lower=0, upper=1, nullable=True)])
    nulls, numbers = sample_of(np.full((5, 1), np.nan)), sample_of(np.full((5, 1), 0.5))
    [compared] = compare_columns(schema, nulls, numbers)
    assert (compared.ks, compared.means, compared.distance) == (None, None, 1)


def test_spikes_count_for_the_distance() -> None:
    """A table without the spike at 0 is far off, however near to 0 its numbers are."""
    schema = Schema([Real("gain", lower=0, upper=1e5)])
    real = np.concatenate([np.zeros(60), np.arange(1, 41) * 2500.0])
    near = sample_of(matrix_of(np.where(real == 0, np.arange(1, 101), real)))
    [compared] = compare_columns(schema, sample_of(matrix_of(real)), near)
    assert compared.distance >= 0.6
    assert compared.labels[-1] == "exactly 0"
    assert compared.spikes == (0,)


def test_means_of_the_largest_numbers() -> None:
    schema = Schema([Real("huge", lower=0, upper=1.7e308)])
    rows = sample_of(matrix_of([1.7e308, 1.7e308, 1.6e308]))
    [compared] = compare_columns(schema, rows, rows)
    assert compared.means is not None
    assert compared.means[0] == pytest.approx(1.7e308 - 1e307 / 3)
