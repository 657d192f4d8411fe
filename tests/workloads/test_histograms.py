"""Histograms: every value is in one cell at every level, and cells are what their words say."""

from __future__ import annotations

import datetime as dt
import math
from bisect import bisect_right
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Categorical, Date, Datetime, Integer, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.schema import Numeric
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import TRUE
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import Workload
from private_gsd.workloads.features import range_features
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import (
    Histograms,
    first_histograms,
    histogram_feature,
    numeric_positions,
)
from private_gsd.workloads.serialisation import load_workload
from tests.strategies import columns as any_columns
from tests.strategies import encoded_values

Steps = NDArray[np.int64]


@st.composite
def columns(draw: st.DrawFn) -> Numeric:
    """Numbers with wide and narrow bounds on either side of 0, and dates of recent times."""
    nullable = draw(st.booleans())
    kind = draw(st.sampled_from(["integer", "decimals", "real", "date", "datetime", "any"]))
    if kind == "any":
        found = draw(any_columns("x", ("integer", "real", "date", "datetime")))
        assert isinstance(found, Numeric)
        return found
    if kind in ("date", "datetime"):
        first = draw(st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2020, 1, 1)))
        last = first + dt.timedelta(days=draw(st.integers(1, 30_000)))
        if kind == "date":
            return Date("x", lower=first.date(), upper=last.date(), nullable=nullable)
        unit = draw(st.sampled_from(["day", "minute", "second", "millisecond", "microsecond"]))
        return Datetime("x", lower=first, upper=last, resolution=unit, nullable=nullable)
    widest = 10 ** draw(st.integers(1, 7))
    low, high = sorted(draw(st.lists(st.integers(-widest, widest), min_size=2, max_size=2)))
    low = draw(st.sampled_from([low, 0])) if high > 0 else low
    high += high == low
    if kind == "integer":
        return Integer("x", lower=low, upper=high, nullable=nullable)
    if kind == "real":
        scale = draw(st.floats(1e-6, 1e6))
        return Real("x", lower=low * scale, upper=high * scale, nullable=nullable)
    decimals = draw(st.integers(0, 6))
    least, most = (float(Decimal(each).scaleb(-decimals)) for each in (low, high))
    return Real("x", lower=least, upper=most, decimals=decimals, nullable=nullable)


def all_levels(draw: st.DrawFn, column: Numeric) -> list[Steps]:
    """The first steps of the cells of every level, as if a few cells of each held enough."""
    grid = Grid.of(column)
    found = [grid.first_cells()]
    while len(found) < grid.levels:
        starts = found[-1].tolist()
        ends = [*starts[1:], grid.last + 1]
        single = grid.is_single(np.array(starts), np.subtract(ends, starts))
        wide = np.flatnonzero(~single).tolist()
        if not wide:
            break
        chosen = draw(st.sets(st.sampled_from(wide), min_size=1, max_size=3))
        finer: list[int] = []
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            split = number in chosen
            finer += grid.split(start, end, len(found) - 1) if split else [start]
        found.append(np.array(finer, dtype=np.int64))
    return found


def step_of(column: Numeric, grid: Grid, value: float) -> int:
    """The step of a value, in whole numbers of Python."""
    if not isinstance(column, Real):
        return int(value)
    if column.decimals is not None:
        return int(Decimal(repr(value)).scaleb(column.decimals))
    raise AssertionError(grid)


def cell_of(column: Numeric, grid: Grid, starts: list[int], value: float) -> int:
    """The cell of a value, by definition; null is the last."""
    if math.isnan(value):
        return len(starts)
    if isinstance(column, Real) and column.decimals is None:
        # A cell begins at the float that is nearest to its first step, the first one at the bound.
        return sum(value >= start / grid.per_one for start in starts[1:])
    return bisect_right(starts, step_of(column, grid, value)) - 1


def edges_of(column: Numeric, grid: Grid, starts: Steps) -> list[float]:
    """The values where cells begin and end."""
    low, high = column.bounds
    near = [each / grid.per_one for start in starts.tolist() for each in (start - 1, start)]
    if isinstance(column, Real) and column.decimals is None:
        near += [math.nextafter(each, -math.inf) for each in near]
    return [low, high, *(each for each in near if low <= each <= high)]


@given(data=st.data())
def test_every_value_is_in_one_cell_at_every_level(data: Any) -> None:
    """Counted as a run counts, held against whole numbers of Python."""
    column = data.draw(columns())
    schema, grid = Schema([column]), Grid.of(column)
    found = all_levels(data.draw, column)
    family = Histograms(schema, [histogram_feature(schema, 0, starts) for starts in found])
    workload = Workload(schema, (family,))
    drawn = data.draw(st.lists(encoded_values(column), min_size=1, max_size=20))
    values = np.array([*drawn, *edges_of(column, grid, found[-1])])
    counts = np.split(count(workload, values[:, None], threads=1), workload.offsets[1:-1])
    for starts, feature, mine in zip(found, family.histograms, counts, strict=True):
        places = starts.tolist()
        cells = [cell_of(column, grid, places, value) for value in values.tolist()]
        expected = np.bincount(cells, minlength=len(places) + column.nullable)
        np.testing.assert_array_equal(mine, expected)
        assert mine.sum() == len(values)
        assert feature.size == len(places) + column.nullable
        assert not feature.has_gap


@given(data=st.data())
def test_cells_are_read_back_from_their_cut_points(data: Any) -> None:
    """At every level, and each level has all cut points of the one before."""
    column = data.draw(columns())
    schema, grid = Schema([column]), Grid.of(column)
    low, high = column.bounds
    before: set[float] = set()
    for starts in all_levels(data.draw, column):
        feature = histogram_feature(schema, 0, starts)
        np.testing.assert_array_equal(grid.starts(feature.breaks), starts)
        assert all(low < cut <= high for cut in feature.breaks)
        assert before <= set(feature.breaks)
        before = set(feature.breaks)


@pytest.mark.parametrize(
    "bounds",
    [(0.1, 0.7), (1.000001, 2.000002), (6997.19, 7802.18), (-5108.2377, -5108.2353323223115)],
)
def test_cut_points_of_reals_are_inside_their_bounds(bounds: tuple[float, float]) -> None:
    """Also where a bound times the number of steps is rounded."""
    low, high = bounds
    feature = first_histograms(Schema([Real("x", lower=low, upper=high)])).histograms[0]
    assert low < feature.breaks[0]
    assert feature.breaks[-1] <= high


@settings(max_examples=15)
@given(data=st.data())
def test_the_words_of_a_cell_are_met_by_its_rows_alone(data: Any) -> None:
    """Each row meets the condition of one cell, the one that it is counted in."""
    column = data.draw(columns())
    if isinstance(column, Datetime):
        column = replace(column, timezone=None)  # AT TIME ZONE is for databases alone
    schema = Schema([column])
    starts = all_levels(data.draw, column)[-1][:40]
    workload = Workload(schema, (Histograms(schema, [histogram_feature(schema, 0, starts)]),))
    edges = edges_of(column, Grid.of(column), starts)
    values = [*data.draw(st.lists(encoded_values(column), max_size=5)), *edges]
    truths = [parse_predicate(schema, workload.query(cell)) for cell in range(workload.size)]
    for value in values:
        met = [int(truth_of(truth, [value]) == TRUE) for truth in truths]
        assert met == count(workload, np.array([[value]]), threads=1).tolist()
        assert sum(met) == 1


@given(data=st.data())
def test_a_row_changes_no_more_than_the_sensitivity(data: Any) -> None:
    """Whatever the rest of the table; and two rows attain it."""
    column = data.draw(columns())
    schema = Schema([column, Categorical("a", values=["x", "y"])])
    family = Histograms(
        schema, [histogram_feature(schema, 0, starts) for starts in all_levels(data.draw, column)]
    )
    workload = Workload(schema, (family,))
    values = np.array(data.draw(st.lists(encoded_values(column), min_size=2, max_size=10)))
    table = np.column_stack([values, np.zeros(len(values))])
    other = table.copy()
    other[0] = data.draw(encoded_values(column)), 1.0
    low, high = column.bounds
    ends = np.array([[low, 0.0], [low, 0.0]])
    moved = np.array([[low, 0.0], [high, 0.0]])
    for neighbours, tables, worst in (
        ("replace-one", (table, other), (ends, moved)),
        ("add-remove", (table, table[1:]), (ends, ends[1:])),
    ):
        limits = workload.squared_sensitivities(neighbours)  # type: ignore[arg-type]
        for (one, two), attained in ((tables, False), (worst, True)):
            changes = count(workload, one, threads=1) - count(workload, two, threads=1)
            squares = np.add.reduceat(changes**2, workload.offsets[:-1])
            assert (squares <= limits).all()
            if attained:
                np.testing.assert_array_equal(squares, limits)


SCHEMA = Schema(
    [
        Categorical("a", values=["x", "y"]),
        Integer("n", lower=0, upper=50, nullable=True),
        Date("day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31)),
        Real("r", lower=-1, upper=1, decimals=1),
    ]
)


def test_histograms_in_words() -> None:
    family = first_histograms(SCHEMA)
    assert numeric_positions(SCHEMA) == [1, 2, 3]
    assert family.describe(0) == "n (histogram of 8 cells)"
    assert [family.query(0, cell) for cell in (0, 1, 3, 6, 7)] == [
        "n < 1",
        "n >= 1 AND n < 2",
        "n >= 5 AND n < 10",
        "n >= 50",
        "n IS NULL",
    ]
    assert family.query(1, 0) == "day < DATE '2020-01-02'"
    assert family.query(2, 0) == "r < -0.9"


@pytest.mark.parametrize(
    "feature",
    [
        range_features(SCHEMA, 1, [(0, 9), (20, 50)])[0].to_dict(),  # a gap
        workloads.categorical_marginals(SCHEMA, 1).families[0].marginals[0].tables[0][0].to_dict(),
    ],
    ids=["gap", "categorical"],
)
def test_bad_documents_are_refused(feature: dict[str, Any]) -> None:
    document = [{"family": "histograms", "features": [feature]}]
    with pytest.raises(WorkloadError, match="not sound: histograms"):
        load_workload(SCHEMA, document, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nullable": False}, "nulls"),
        ({"breaks": [2.0, 1.0, *[float(n) for n in range(3, 7)]]}, "breaks"),
        ({"breaks": [1.0]}, "breaks"),
        ({"breaks": [math.nan, *[float(n) for n in range(3, 8)]]}, "breaks"),
        ({"segments": [0, 1, 2, 3, 4, 6, 5]}, "segments"),
        ({"segments": [0] * 7}, "segments"),
        ({"position": 4}, "position"),
        ({"position": -1}, "position"),
    ],
)
def test_damaged_cells_are_refused(change: dict[str, Any], message: str) -> None:
    document, _ = first_histograms(SCHEMA).to_document()
    [feature, *_] = document["features"]
    assert len(feature["segments"]) == 7
    changed = [{"family": "histograms", "features": [{**feature, **change}]}]
    with pytest.raises(WorkloadError, match=message):
        load_workload(SCHEMA, changed, {})
