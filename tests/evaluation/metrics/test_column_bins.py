"""The cells of columns: their labels, and the shares of rows in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Date, Integer, Real
from private_gsd.evaluation.metrics.column_bins import (
    cells_of,
    common_values,
    quantile_cells,
    value_words,
    words_of,
)


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


def test_a_spike_has_a_cell_of_its_own() -> None:
    gain = Real("gain", lower=0, upper=1e5, decimals=2, nullable=True)
    rng = np.random.default_rng(0)
    real = np.concatenate([np.zeros(50), np.full(10, 99_999.99), rng.uniform(0, 1e5, 40)])
    cells = cells_of(gain, [real])
    assert cells.labels[-3:] == ("exactly 0.00", "exactly 99,999.99", "null")
    assert cells.shares(real)[-3:].tolist() == [0.5, 0.1, 0]
    # The bins have the other rows.
    assert cells.shares(real)[:-3].sum() == pytest.approx(0.4)
    assert cells.cuts is not None
    bins = len(cells.cuts) + 1
    assert list(cells.spike_places) == pytest.approx([0, bins], abs=0.1)
    # A spike of the second table is one, too.
    moved = cells_of(gain, [real[60:], np.where(real == 0, 500.0, real)])
    assert "exactly 500.00" in moved.labels
    assert "exactly 0.00" not in moved.labels


def test_few_values_have_bins_and_no_spikes() -> None:
    age = Integer("age", lower=0, upper=120)
    assert cells_of(age, [np.repeat([3.0, 5.0], 20)]).spikes == ()
    wide = cells_of(age, [np.concatenate([np.full(20, 40.0), np.arange(121.0)])])
    assert list(wide.spikes) == [40]
    assert wide.labels[-1] == "exactly 40"
    [place] = wide.spike_places
    assert wide.cuts is not None
    # A bin of 40 and more begins there, or the one before it contains it.
    assert int(place) == np.searchsorted(wide.cuts, 40, side="right")


def test_nearly_all_rows_with_one_value() -> None:
    gain = Integer("gain", lower=-(10**6), upper=10**6)
    real = np.zeros(2000)
    real[:15] = np.arange(1, 16) * 1000
    cells = cells_of(gain, [real])
    assert cells.labels == ("below 0", "0 or more", "exactly 0")
    assert cells.shares(real).tolist() == [0, 0.0075, 0.9925]
    assert cells.spike_places == (1,)


NUMBERS = st.lists(st.sampled_from([0.0, 1.5, 80.0, 7e4]) | st.floats(0, 1e5), max_size=80)


@given(NUMBERS, NUMBERS)
def test_every_row_is_in_one_cell(one: list[float], two: list[float]) -> None:
    column = Real("x", lower=0, upper=1e5, nullable=True)
    tables = [np.array([*each, np.nan]) for each in (one, two)]
    cells = cells_of(column, tables)
    spikes = {
        value
        for values in tables
        for value in values.tolist()
        if (values == value).sum() >= max(5, 0.05 * len(values))
    }
    assert set(cells.spikes) == spikes
    assert len(cells.spike_places) == len(spikes)
    for values in tables:
        shares = cells.shares(values)
        assert len(shares) == len(cells.labels)
        assert shares.sum() == pytest.approx(1)
        for number, spike in enumerate(cells.spikes, start=len(cells.labels) - 1 - len(spikes)):
            assert shares[number] == pytest.approx((values == spike).mean())
    assert cells.cuts is not None
    assert all(0 <= place <= len(cells.cuts) + 1 for place in cells.spike_places)
    assert list(cells.spike_places) == sorted(cells.spike_places)


def test_common_values_are_counted_in_rows_and_shares() -> None:
    values = np.repeat([1.0, 2.0, 3.0, np.nan], [4, 5, 11, 30])
    assert common_values(values, 0.1).tolist() == [2, 3]
    assert common_values(values, 0.2).tolist() == [3]
    assert common_values(np.full(9, np.nan), 0.1).tolist() == []


def test_values_have_all_of_their_digits() -> None:
    assert value_words(Real("x", lower=0, upper=1e6, decimals=2), 12_345.6) == "12,345.60"
    assert value_words(Real("x", lower=0, upper=1e6), 12_345.675) == "12,345.675"
    assert value_words(Integer("n", lower=0, upper=10**6), 12_345.0) == "12,345"
