"""Likely values: drawn values are as round as was measured, and never leave their cells.

Of 20,000 draws a share has a standard deviation of 0.0035 at most, and shares may differ by five of
them, 0.018: a right program fails once in a million. A share that is wrong by 0.035 is found with a
probability of more than 0.999999, since it then differs by ten.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Date, Datetime, Integer, Measurements, Real, Schema
from private_gsd.measurements.column_distributions import ColumnDistribution
from private_gsd.measurements.level_estimates import Level
from private_gsd.projection.likely_values import (
    LikelyValues,
    MeasuredPattern,
    multiples,
    patterns_by_column,
)
from private_gsd.schema import Numeric
from private_gsd.workloads import Workload
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import first_histograms
from private_gsd.workloads.patterns import Pattern, Patterns, patterns_of

Vector = NDArray[np.float64]
Steps = NDArray[np.int64]

DRAWS = 20_000
NEAR = 0.018
N_RECORDS = 100_000

PAY = Integer("x", lower=0, upper=100_000)
DAY = Date("x", lower=dt.date(2016, 1, 1), upper=dt.date(2023, 12, 31))
CLOCK = Datetime("x", lower=dt.datetime(2020, 1, 1), upper=dt.datetime(2021, 1, 1))
SHARE = Real("x", lower=0, upper=1)


def distribution(column: Numeric, starts: Steps, shares: Vector | None = None) -> Any:
    """A distribution with cells that were measured with little noise; even by default."""
    grid = Grid.of(column)
    widths = np.diff(starts, append=grid.last + 1)
    shares = widths / widths.sum() if shares is None else shares
    level = Level(starts, shares * N_RECORDS, 1.0)
    return ColumnDistribution(0, grid, nullable=False, levels=(level,), n_records=N_RECORDS)


def pattern_of(column: Numeric, kind: str) -> Pattern:
    [found] = [each for each in patterns_of(Schema([column])) if each.kind == kind]
    return found


def even_cells(column: Numeric, number: int) -> Steps:
    grid = Grid.of(column)
    return grid.first + np.arange(number) * ((grid.last + 1 - grid.first) // number)


def measured_as(pattern: Pattern, shares: dict[int, float], scale: float = 10.0) -> MeasuredPattern:
    """A pattern whose classes have the given shares of the records."""
    counts = np.zeros(pattern.num_classes)
    for number, share in shares.items():
        counts[number] = share * N_RECORDS
    return MeasuredPattern(pattern, counts, scale)


def drawn_from(likely: LikelyValues, seed: int = 0, draws: int = DRAWS) -> tuple[Steps, Steps]:
    """Cells as likely as was measured, and steps drawn in them; these stay in their cells."""
    rng = np.random.default_rng([seed, 1])
    column = likely.column
    cells = rng.choice(len(column.starts), draws, p=column.shares / column.shares.sum())
    starts = column.starts[cells]
    ends = starts + column.widths[cells]
    steps = np.floor(likely.draw(starts, ends, rng)).astype(np.int64)
    assert (starts <= steps).all()
    assert (steps < ends).all()
    return cells, steps


def shares_of(pattern: Pattern, steps: Steps) -> Vector:
    return np.bincount(pattern.classes(steps), minlength=pattern.num_classes) / len(steps)


# Multiples of 1000 (class 6), of 100 but not of 500 (4), of 10 (2), and other values.
MIXED = {6: 0.5, 4: 0.2, 2: 0.1, 0: 0.2}


@pytest.mark.parametrize("cells", [1, 20, 49])
def test_values_are_as_round_as_was_measured(cells: int) -> None:
    pattern = pattern_of(PAY, "round")
    assert [pattern.divisors[number] for number in MIXED] == [1000, 100, 10, 1]
    likely = LikelyValues.of(
        distribution(PAY, even_cells(PAY, cells)), [measured_as(pattern, MIXED)]
    )
    found = shares_of(pattern, drawn_from(likely)[1])
    for number, share in enumerate(found):
        assert share == pytest.approx(MIXED.get(number, 0.0), abs=NEAR)
    # Without the pattern hardly any value is a multiple of 1000.
    even = LikelyValues.of(distribution(PAY, even_cells(PAY, cells)), [])
    assert shares_of(pattern, drawn_from(even)[1])[6:].sum() < NEAR


def test_cells_keep_their_shares_whatever_is_round() -> None:
    """The estimated shares of cells come first; roundness says which values of them are likely."""
    starts = np.array([0, 6000, 6500, 40_000])
    shares = np.array([0.2, 0.4, 0.3, 0.1])
    pattern = pattern_of(PAY, "round")
    likely = LikelyValues.of(
        distribution(PAY, starts, shares), [measured_as(pattern, {6: 0.6, 0: 0.4})]
    )
    cells, steps = drawn_from(likely)
    np.testing.assert_allclose(np.bincount(cells) / DRAWS, shares, atol=NEAR)
    # A class has one weight in all cells, and the count that was measured over all of them.
    assert shares_of(pattern, steps)[[0, 6]] == pytest.approx([0.4, 0.6], abs=NEAR)
    weights = likely.mass(np.array([6000, 6001]), np.array([1, 1]))
    share = (steps[cells == 1] == 6000).mean()
    assert share == pytest.approx(weights[0] / (weights[0] + weights[1] * 400), abs=NEAR)


def test_times_are_as_round_as_was_measured() -> None:
    pattern = pattern_of(CLOCK, "round")
    clock = {pattern.divisors.index(1800): 0.6, pattern.divisors.index(60): 0.4}
    likely = LikelyValues.of(
        distribution(CLOCK, even_cells(CLOCK, 30)), [measured_as(pattern, clock)]
    )
    found = shares_of(pattern, drawn_from(likely)[1])
    for number, share in enumerate(found):
        assert share == pytest.approx(clock.get(number, 0.0), abs=NEAR)


def test_reals_without_decimals_are_as_round_as_was_measured() -> None:
    """Half of them have two decimals at most, and the others have all."""
    pattern = pattern_of(SHARE, "round")
    half = {pattern.divisors.index(10**13): 0.5, 0: 0.45, 1: 0.05}
    likely = LikelyValues.of(
        distribution(SHARE, even_cells(SHARE, 10)), [measured_as(pattern, half)]
    )
    rng = np.random.default_rng(5)
    starts = even_cells(SHARE, 10)[rng.integers(0, 10, DRAWS)]
    steps = likely.draw(starts, starts + 10**14, rng)
    values = steps / likely.column.grid.per_one
    rounded = np.round(values, 2) == values
    assert rounded.mean() == pytest.approx(0.5, abs=NEAR)
    assert len(np.unique(values[rounded])) < 101
    assert len(np.unique(values[~rounded])) > DRAWS * 0.45


def test_what_noise_explains_changes_nothing() -> None:
    """Not the draws, and not how likely cells are."""
    rng = np.random.default_rng(3)
    for column in (PAY, DAY, CLOCK):
        cells = distribution(column, even_cells(column, 7))
        patterns = patterns_of(Schema([column]))
        likely = LikelyValues.of(cells, [])
        even = [
            np.mean(
                [shares_of(each, drawn_from(likely, seed, 50_000)[1]) for seed in (1, 2)], axis=0
            )
            for each in patterns
        ]
        # The shares above are off by a standard deviation of 0.002, which are 200 records.
        scale = 2000.0
        noisy = [
            MeasuredPattern(
                each,
                shares * N_RECORDS + rng.uniform(-1.8, 1.8, len(shares)) * scale,
                scale,
            )
            for each, shares in zip(patterns, even, strict=True)
        ]
        given_all = LikelyValues.of(cells, noisy)
        np.testing.assert_array_equal(drawn_from(given_all)[1], drawn_from(likely)[1])
        starts, widths = cells.starts, cells.widths
        np.testing.assert_array_equal(given_all.mass(starts, widths), widths)
        # And a class beyond noise does change them.
        noisy[0].counts[0] += 6 * scale
        given_all = LikelyValues.of(cells, noisy)
        assert (drawn_from(given_all)[1] != drawn_from(likely)[1]).any()


def test_weekdays_are_as_measured() -> None:
    pattern = pattern_of(DAY, "weekday")
    week = dict(enumerate([0.3, 0.1, 0.1, 0.1, 0.35, 0.05, 0.0]))
    likely = LikelyValues.of(distribution(DAY, even_cells(DAY, 40)), [measured_as(pattern, week)])
    found = shares_of(pattern, drawn_from(likely)[1])
    # A value is one of twelve, so that shares are nearer to even ones, by a few hundredths.
    np.testing.assert_allclose(found, list(week.values()), atol=NEAR + 0.03)
    assert found[6] < 0.001


def test_cells_are_as_likely_as_their_days() -> None:
    """But for the days that even shares are estimated from."""
    pattern = pattern_of(DAY, "weekday")
    week = [0.3, 0.1, 0.1, 0.1, 0.35, 0.05, 0.0]
    likely = LikelyValues.of(
        distribution(DAY, even_cells(DAY, 1)), [measured_as(pattern, dict(enumerate(week)))]
    )
    monday = (dt.date(2020, 6, 1) - dt.date(1970, 1, 1)).days
    days = likely.mass(monday + np.arange(7), np.ones(7, dtype=np.int64))
    np.testing.assert_allclose(days, np.array(week) * 7, atol=0.08)


def test_months_are_as_measured() -> None:
    pattern = pattern_of(DAY, "month")
    months = dict.fromkeys(range(12), 0.05) | {11: 0.3, 5: 0.2}
    likely = LikelyValues.of(distribution(DAY, even_cells(DAY, 1)), [measured_as(pattern, months)])
    found = shares_of(pattern, drawn_from(likely)[1])
    np.testing.assert_allclose(found, list(months.values()), atol=NEAR + 0.05)
    assert found[11] > 0.2


def test_roundness_and_weekdays_together() -> None:
    """Of a moment: whole hours, on weekdays."""
    hours, week = pattern_of(CLOCK, "round"), pattern_of(CLOCK, "weekday")
    whole = {hours.divisors.index(3600): 0.9, 0: 0.1}
    likely = LikelyValues.of(
        distribution(CLOCK, even_cells(CLOCK, 10)),
        [measured_as(hours, whole), measured_as(week, dict.fromkeys(range(5), 0.2))],
    )
    _, steps = drawn_from(likely)
    assert (steps % 3600 == 0).mean() == pytest.approx(0.9, abs=NEAR)
    assert shares_of(week, steps)[5:].sum() < 0.001


@st.composite
def measured_columns(draw: st.DrawFn) -> tuple[ColumnDistribution, list[MeasuredPattern]]:
    """A column with cells of any width, and patterns with any counts."""
    column = draw(
        st.sampled_from(
            [
                PAY,
                Integer("x", lower=-3000, upper=-100),
                Real("x", lower=-50, upper=70.5, decimals=2),
                DAY,
                CLOCK,
                SHARE,
                Real("x", lower=-3e6, upper=7e9),
            ]
        )
    )
    grid = Grid.of(column)
    inside = st.integers(grid.first + 1, grid.last)
    cuts = draw(st.sets(inside, max_size=6))
    if draw(st.booleans()):  # cells of a single step
        cuts |= {min(cut + 1, grid.last) for cut in cuts}
    starts = np.array([grid.first, *sorted(cuts)])
    weights = np.array(
        draw(st.lists(st.integers(0, 9), min_size=len(starts), max_size=len(starts))), float
    )
    weights[0] += 1
    counts = st.sampled_from([-50.0, 0.0, 3.0, 5000.0, 60_000.0])
    patterns = [
        MeasuredPattern(
            each,
            np.array(draw(st.lists(counts, min_size=each.num_classes, max_size=each.num_classes))),
            10.0,
        )
        for each in patterns_of(Schema([column]))
    ]
    return distribution(column, starts, weights / weights.sum()), patterns


@given(measured=measured_columns(), seed=st.integers(0, 99))
def test_draws_never_leave_their_cells(measured: Any, seed: int) -> None:
    """Of the finest level, or any others; they are steps of the grid where all values are."""
    column, patterns = measured
    likely = LikelyValues.of(column, patterns)
    rng = np.random.default_rng(seed)
    lows = rng.integers(column.grid.first, column.grid.last + 1, 40)
    highs = np.array([rng.integers(low, column.grid.last + 1) for low in lows])
    starts = np.concatenate([column.starts, lows, lows])
    ends = np.concatenate([column.starts + column.widths, highs + 1, lows + 1])
    steps = likely.draw(starts, ends, rng)
    assert (starts <= steps).all()
    assert (steps < ends).all()
    if column.grid.exact:
        np.testing.assert_array_equal(steps, np.floor(steps))
    single = column.grid.is_single(starts, ends - starts)
    np.testing.assert_array_equal(steps[single], starts[single])
    mass = likely.mass(column.starts, column.widths)
    assert (mass >= 0).all()
    assert np.isfinite(mass).all()


def test_a_cell_without_a_multiple() -> None:
    """All values are round, and this cell has none: any of its values may be drawn."""
    pattern = pattern_of(PAY, "round")
    cells = distribution(PAY, np.array([0, 1001, 1100]))
    likely = LikelyValues.of(cells, [measured_as(pattern, {6: 1.0})])
    rng = np.random.default_rng(0)
    starts, ends = np.full(DRAWS, 1001), np.full(DRAWS, 1100)
    steps = likely.draw(starts, ends, rng)
    assert set(np.unique(steps)) == set(range(1001, 1100))
    assert likely.mass(np.array([1001]), np.array([99])) == 0
    assert (likely.draw(ends, np.full(DRAWS, 100_001), rng) % 1000 == 0).all()


@given(data=st.data())
def test_multiples_are_counted_as_they_are(data: Any) -> None:
    column = data.draw(st.sampled_from([PAY, Integer("x", lower=-4000, upper=900)]))
    pattern = pattern_of(column, "round")
    start = data.draw(st.integers(column.lower, column.upper))
    width = data.draw(st.integers(1, min(3000, column.upper + 1 - start)))
    [found] = multiples(pattern, np.array([start]), np.array([width]))
    classes = pattern.classes(np.arange(start, start + width))
    assert found.tolist() == np.bincount(classes, minlength=pattern.num_classes).tolist()


def test_seeds_decide() -> None:
    for column in (PAY, DAY, CLOCK, SHARE):
        patterns = [
            measured_as(each, {0: 0.5, each.num_classes - 1: 0.5})
            for each in patterns_of(Schema([column]))
        ]
        first, again = (
            LikelyValues.of(distribution(column, even_cells(column, 5)), patterns) for _ in range(2)
        )
        np.testing.assert_array_equal(drawn_from(first, 1)[1], drawn_from(again, 1)[1])
        assert (drawn_from(first, 1)[1] != drawn_from(first, 2)[1]).any()


def test_no_rows_are_drawn_of_none() -> None:
    likely = LikelyValues.of(
        distribution(DAY, even_cells(DAY, 3)),
        [measured_as(pattern_of(DAY, "weekday"), {0: 1.0})],
    )
    none = np.array([], dtype=np.int64)
    assert len(likely.draw(none, none, np.random.default_rng(0))) == 0


def test_patterns_are_found_among_measurements() -> None:
    """Those of a column together, each with its counts, without those of nulls."""
    schema = Schema(
        [Integer("a", lower=0, upper=5000, nullable=True), Date(**{**vars(DAY), "name": "b"})]
    )
    patterns = Patterns(schema, patterns_of(schema))
    workload = Workload(schema, (first_histograms(schema), patterns))
    scales = np.arange(1.0, workload.num_groups + 1)
    measured = Measurements(
        workload,
        np.arange(workload.size, dtype=np.float64),
        scales,
        N_RECORDS,
        ("",) * workload.num_groups,
        private=False,
    )
    found = patterns_by_column(measured)
    assert {place: [each.pattern.kind for each in mine] for place, mine in found.items()} == {
        0: ["round"],
        1: ["weekday", "month"],
    }
    begin = int(workload.families[0].size)
    round_, week, month = [*found[0], *found[1]]
    assert round_.counts.tolist() == list(range(begin, begin + round_.pattern.num_classes))
    begin += round_.pattern.size  # one more than classes: null
    assert week.counts.tolist() == list(range(begin, begin + 7))
    assert month.counts.tolist() == list(range(begin + 7, begin + 19))
    assert [each.scale for each in (round_, week, month)] == [3.0, 4.0, 5.0]
