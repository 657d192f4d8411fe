"""Grids: cells of round widths that cover a column, down to single values."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Date, Datetime, Integer, Real
from private_gsd.schema import Numeric
from private_gsd.workloads.grids import BRANCHES, MOST_LEVELS, Grid

COLUMNS = [
    Integer("x", lower=0, upper=99),
    Integer("x", lower=0, upper=1),
    Integer("x", lower=-20_000, upper=2_000_000),
    Integer("x", lower=1990, upper=2030),
    Integer("x", lower=-(2**53) + 1, upper=2**53 - 1),
    Integer("x", lower=-50, upper=-7),
    Real("x", lower=0, upper=50_000, decimals=1),
    Real("x", lower=-1.25, upper=7.5, decimals=2),
    Real("x", lower=0, upper=1),
    Real("x", lower=1e-300, upper=1e300),
    Real("x", lower=0, upper=1e-300),
    Real("x", lower=1e15, upper=1e15 + 1),
    Real("x", lower=8.9e9, upper=8.9e9 + 0.01),
    Real("x", lower=8.9, upper=8.9000000001, decimals=15),
    Real("x", lower=0, upper=9, decimals=15),
    Date("x", lower=dt.date(1900, 1, 1), upper=dt.date(2026, 12, 31)),
    Date("x", lower=dt.date(1900, 1, 1), upper=dt.date(2026, 12, 31), resolution="month"),
    Datetime("x", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2024, 1, 1)),
    Datetime(
        "x", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2024, 1, 1), resolution="minute"
    ),
]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_the_first_cells_cover_the_column(column: Numeric) -> None:
    grid = Grid.of(column)
    starts = grid.first_cells()
    assert starts[0] == grid.first
    assert starts[-1] == grid.last  # the upper bound has a cell of its own
    assert (np.diff(starts) > 0).all()
    assert len(starts) < 120
    if grid.first <= 0 <= grid.last and column.kind in ("integer", "real"):
        zero = int(np.flatnonzero(starts == 0)[0])
        assert zero == len(starts) - 1 or starts[zero + 1] == 1


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_cut_points_are_inside_the_bounds_and_say_where_cells_begin(column: Numeric) -> None:
    grid = Grid.of(column)
    starts = grid.first_cells()
    breaks = grid.breaks(starts)
    low, high = column.bounds
    assert all(low < cut <= high for cut in breaks)
    assert list(breaks) == sorted(set(breaks))
    np.testing.assert_array_equal(grid.starts(breaks), starts)


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@given(data=st.data())
def test_a_cell_is_split_down_to_a_single_value(column: Numeric, data: Any) -> None:
    """Within the number of levels, unless that is the largest."""
    grid = Grid.of(column)
    value = data.draw(st.integers(grid.first, grid.last))
    starts = grid.first_cells().tolist()
    levels = 1
    while True:
        start = max(each for each in starts if each <= value)
        end = min((each for each in starts if each > value), default=grid.last + 1)
        if grid.is_single(np.array(start), np.array(end - start)) or levels == MOST_LEVELS:
            break
        starts = grid.split(start, end, levels - 1)
        assert starts[0] == start
        assert starts == sorted(set(starts))
        assert len(starts) > 1
        assert starts[-1] < end
        assert len(starts) <= BRANCHES[min(levels - 1, len(BRANCHES) - 1)] + 1
        starts.append(end)
        levels += 1
    assert levels <= grid.levels <= MOST_LEVELS


def test_cells_are_round() -> None:
    """Magnitudes first, and then multiples of 1, 2 or 5 times a power of ten."""
    grid = Grid.of(Integer("income", lower=0, upper=10_000_000))
    first = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
    assert grid.first_cells().tolist()[: len(first)] == first
    assert grid.split(20_000, 50_000, 0) == [20_000, 25_000, 30_000, 35_000, 40_000, 45_000]
    far = Grid.of(Integer("year", lower=1990, upper=2030))
    assert far.first_cells().tolist()[:4] == [1990, 1991, 1995, 2000]


def test_wide_bounds_cost_a_few_cells_and_a_level_or_two() -> None:
    grids = [Grid.of(Integer("x", lower=0, upper=10**power)) for power in (5, 6, 7, 8)]
    sizes = [len(grid.first_cells()) for grid in grids]
    assert np.diff(sizes).tolist() == [3, 3, 3]
    assert grids[-1].levels - grids[0].levels <= 2


def test_times_are_split_at_minutes_hours_and_days() -> None:
    grid = Grid.of(Datetime("x", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2020, 1, 31)))
    day = 86_400
    starts = grid.first_cells()
    assert (starts[2:-1] % (2 * day) == 0).all()
    inside = grid.split(int(starts[2]), int(starts[3]), 0)
    assert set(np.diff(inside)) == {6 * 3600}


def test_moments_are_split_at_round_times_whatever_the_resolution() -> None:
    for resolution, quarter in (("minute", 15), ("second", 900), ("millisecond", 900_000)):
        column = Datetime(
            "x", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2020, 1, 2), resolution=resolution
        )
        grid = Grid.of(column)
        start = grid.first
        parts = grid.split(start, start + 10 * quarter, 0)
        assert parts == [start + number * quarter for number in range(10)]


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_cut_points_of_deep_levels_can_be_told_apart(column: Numeric) -> None:
    """Cells down to single values begin where their cut points say, and cut points ascend."""
    grid = Grid.of(column)
    for start in {grid.first, (grid.first + grid.last) // 2, max(grid.first, grid.last - 40)}:
        starts = np.unique([grid.first, *range(start, min(start + 40, grid.last + 1))])
        breaks = grid.breaks(starts)
        assert list(breaks) == sorted(set(breaks))
        np.testing.assert_array_equal(grid.starts(breaks), starts)


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
def test_even_shares_are_positive_and_add_up(column: Numeric) -> None:
    """Also where the logarithms of the edges of a cell have the same digits."""
    grid = Grid.of(column)
    shares = grid.even_shares(grid.first_cells())
    assert (shares > 0).all()
    assert shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@given(data=st.data())
def test_a_cell_begins_with_the_first_step_at_its_cut_point(column: Numeric, data: Any) -> None:
    """Whatever the cut point, the next float after a step among them."""
    grid = Grid.of(column)
    step = data.draw(st.integers(grid.first, grid.last))
    value = step / grid.per_one
    cut = data.draw(st.sampled_from([value, float(np.nextafter(value, np.inf))]))
    found = int(grid.starts((cut,))[1])
    assert found / grid.per_one >= cut > (found - 1) / grid.per_one
    assert found == step + (cut > value)


def test_real_numbers_have_the_scale_of_their_values_not_of_their_bounds() -> None:
    """A cell of a single value is a millionth of the value wide, and begins with it."""
    grid = Grid.of(Real("x", lower=-1e9, upper=1e9))
    for value in (-100.0, 0.25, -0.1, 70.5, 3e8):
        starts, levels = grid.first_cells().tolist(), 1
        while True:
            place = round(value * grid.per_one)
            start = max(each for each in starts if each <= place)
            end = min((each for each in starts if each > place), default=grid.last + 1)
            if grid.is_single(np.array(start), np.array(end - start)):
                break
            starts, levels = [*grid.split(start, end, levels - 1), end], levels + 1
        assert start / grid.per_one == value
        assert end - start <= max(1, 1e-6 * abs(start))
        assert levels <= grid.levels
