"""Within cells: values are drawn again as histograms say, and no row changes its cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import Categorical, Integer, Measurements, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import expect_type
from private_gsd.measurements.column_distributions import (
    ColumnDistribution,
    column_distributions,
    without_histograms,
)
from private_gsd.measurements.level_estimates import Level
from private_gsd.measurements.summed_histograms import summed_histograms
from private_gsd.projection.constraints import broken_rows
from private_gsd.projection.likely_values import LikelyValues
from private_gsd.projection.within_cells import CellValues, looks_at_numbers, redrawn
from private_gsd.schema import Numeric
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import (
    Histograms,
    first_histograms,
    histogram_feature,
    numeric_positions,
)
from private_gsd.workloads.marginals import Marginal

Matrix = NDArray[np.float64]
SCHEMA = Schema(
    [
        Categorical("a", values=["x", "y"]),
        Integer("n", lower=0, upper=1000, nullable=True),
        Real("r", lower=0, upper=10, decimals=2),
    ]
)


def table(rows: int, seed: int = 0) -> Matrix:
    """Numbers with spikes at 0 and 300, and two decimals of which half are 2.50."""
    rng = np.random.default_rng(seed)
    spikes = np.array([0, 300, 700, 40])[rng.integers(0, 4, rows)]
    n = np.where(rng.random(rows) < 0.6, spikes, rng.integers(0, 1001, rows)).astype(float)
    n[rng.random(rows) < 0.2] = np.nan
    r = np.where(rng.random(rows) < 0.5, 2.5, np.round(rng.random(rows) * 10, 2))
    return np.column_stack([rng.integers(0, 2, rows).astype(float), n, r])


def measured_of(matrix: Matrix, more: Workload | None = None) -> Measurements:
    """Measurements almost without noise: two levels of histograms, and a pair with coarse cells."""
    fine = [
        histogram_feature(SCHEMA, 1, np.arange(1001)),
        histogram_feature(SCHEMA, 2, np.arange(1001)),
    ]
    coarse = histogram_feature(SCHEMA, 1, np.array([0, 200, 600]))
    pair = Marginal(
        (
            (
                workloads.categorical_marginals(SCHEMA, 1).families[0].marginals[0].tables[0][0],
                coarse,
            ),
        )
    )
    workload = (
        Workload(SCHEMA, (first_histograms(SCHEMA),))
        + Workload(SCHEMA, (Histograms(SCHEMA, fine),))
        + Workload(SCHEMA, (Marginals(SCHEMA, [pair]),))
    )
    if more is not None:
        workload = workload + more
    groups = workload.num_groups
    return Measurements(
        workload,
        count(workload, matrix).astype(np.float64),
        np.full(groups, 0.01),
        len(matrix),
        ("",) * groups,
        private=False,
    )


def uniform(rows: int) -> Matrix:
    """A table that knows nothing of the numbers within the cells of the pair."""
    rng = np.random.default_rng(9)
    real = table(rows, 3)
    cells = np.searchsorted([200, 600], real[:, 1], side="right")
    lows, highs = np.array([0, 200, 600])[cells], np.array([199, 599, 1000])[cells]
    n = np.where(np.isnan(real[:, 1]), np.nan, rng.integers(lows, highs + 1))
    return np.column_stack([real[:, 0], n, np.round(rng.random(rows) * 10, 2)])


def test_histograms_are_summed_to_the_cells_of_marginals() -> None:
    matrix = table(2000)
    measured = measured_of(matrix)
    summed = summed_histograms(measured)
    marginals = [each for family in summed.workload.families for each in family.marginals]
    assert not any(family.histograms for family in summed.workload.families)
    single = {each.positions: each.tables[0][0] for each in marginals if len(each.positions) == 1}
    assert single[(1,)].breaks == (200.0, 600.0)
    assert 5 <= single[(2,)].size <= 70  # no marginal cuts it: cells of about the same mass
    np.testing.assert_allclose(
        summed.counts, count(summed.workload, matrix).astype(float), atol=1.0
    )
    assert (summed.scales > 0).all()


def test_without_histograms_nothing_changes() -> None:
    workload = workloads.categorical_marginals(SCHEMA, 1)
    measured = Measurements(workload, np.array([1.0, 1.0]), np.ones(1), 2, ("",), private=False)
    assert summed_histograms(measured) is measured
    matrix = table(10)
    assert redrawn(matrix, measured, workload.families, 0) is matrix


def test_values_are_as_measured_and_stay_in_their_cells() -> None:
    real, start = table(5000), uniform(5000)
    measured = measured_of(real)
    rest = without_histograms(measured)
    assert rest is not None
    fitted = rest.workload
    made = redrawn(start, measured, fitted.families, 1)
    np.testing.assert_array_equal(count(fitted, made), count(fitted, start))
    np.testing.assert_array_equal(np.isnan(made), np.isnan(start))
    np.testing.assert_array_equal(made[:, 0], start[:, 0])
    for value in (0, 40, 300, 700):
        assert (made[:, 1] == value).mean() == pytest.approx((real[:, 1] == value).mean(), abs=0.02)
    assert (made[:, 2] == 2.5).mean() == pytest.approx((real[:, 2] == 2.5).mean(), abs=0.03)
    steps = made[:, 2] * 100
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    again = redrawn(start, measured, fitted.families, 1)
    np.testing.assert_array_equal(made, again)
    assert not np.array_equal(made, redrawn(start, measured, fitted.families, 2), equal_nan=True)


def test_which_row_has_which_value_is_random() -> None:
    """Rows of a cell get its values in random order, whatever order they have."""
    real, start = table(4000), uniform(4000)
    start = start[np.argsort(start[:, 0], kind="stable")]
    measured = measured_of(real)
    made = redrawn(start, measured, summed_histograms(measured).workload.families, 1)
    known = ~np.isnan(made[:, 1])
    spikes = np.isin(made[:, 1], [0, 40, 300, 700])
    shares = [spikes[known & (made[:, 0] == code)].mean() for code in (0, 1)]
    assert shares[0] == pytest.approx(shares[1], abs=0.05)


def test_cut_points_of_conditions_are_kept() -> None:
    """A public count of a condition stays as it is."""
    real, start = table(3000), uniform(3000)
    more = workloads.predicates(SCHEMA, ["n > 250", "r <= 2.49"])
    measured = measured_of(real, more)
    made = redrawn(start, measured, summed_histograms(measured).workload.families, 0)
    np.testing.assert_array_equal(count(more, made), count(more, start))


def test_rules_hold() -> None:
    schema = replace(SCHEMA, constraints=("a = 'x' OR n IS NULL OR n <= 100 * r",))
    start = uniform(2000)
    start = start[~broken_rows(schema, np.ascontiguousarray(start))]
    measured = measured_of(table(3000))

    def ruled(given: Measurements) -> Measurements:
        families = tuple(_with_schema(family, schema) for family in given.workload.families)
        return replace(given, workload=Workload(schema, families))

    mine = ruled(measured)
    made = redrawn(start, mine, summed_histograms(mine).workload.families, 0)
    assert not broken_rows(schema, np.ascontiguousarray(made)).any()
    changed = (made[:, 1] != start[:, 1]) & ~np.isnan(made[:, 1])
    assert changed.mean() > 0.4


def _with_schema(family: Any, schema: Schema) -> Any:
    if family.histograms:
        return Histograms(schema, family.histograms)
    return Marginals(schema, family.marginals)


def test_values_of_a_cell_without_mass_stay_in_it() -> None:
    """Where the histograms have nothing, values are drawn all the same, within the cell."""
    real = table(1000)
    real[:, 1] = 5.0
    measured = measured_of(real)
    start = table(50)
    start[:, 1] = 650.0
    made = redrawn(start, measured, summed_histograms(measured).workload.families, 0)
    cuts = [cut for each in measured.workload.families[-1].marginals for t in each.tables
            for f in t if f.position == 1 for cut in f.breaks]  # fmt: skip
    before, after = (
        np.searchsorted(np.unique(cuts), each[:, 1], side="right") for each in (start, made)
    )
    np.testing.assert_array_equal(after, before)
    assert len(np.unique(made[:, 1])) > 10
    empty = redrawn(start[:0], measured, measured.workload.families, 0)
    assert len(empty) == 0


def test_reals_without_decimals_stay_inside_their_bounds() -> None:
    schema = Schema([Real("r", lower=-1.0, upper=2.0)])
    rng = np.random.default_rng(0)
    matrix = np.concatenate([np.full(500, 2.0), np.full(500, -1.0), rng.random(500)])[:, None]
    workload = Workload(schema, (first_histograms(schema),))
    measured = Measurements(
        workload, count(workload, matrix).astype(float), np.ones(1), 1500, ("",), private=False
    )
    made = redrawn(rng.random((900, 1)), measured, (), 0)
    assert made.min() == -1.0
    assert made.max() == 2.0
    assert (made == 2.0).mean() == pytest.approx(1 / 3, abs=0.02)
    assert list(column_distributions(measured)) == [0]


def test_which_queries_look_at_numbers() -> None:
    for workload, looks in (
        (workloads.tree_marginals(SCHEMA, 2), False),
        (workloads.random_prefixes(SCHEMA, 3), False),
        (workloads.random_halfspaces(SCHEMA, 3), True),
        (workloads.sums(SCHEMA), True),
    ):
        assert looks_at_numbers(workload.families) is looks


def test_rows_of_an_empty_stretch_stand_where_the_histogram_hints() -> None:
    """Other marginals know of 300 rows above 0, of which noise hides the place: not evenly wide."""
    whole = Integer("x", lower=0, upper=100_000)
    schema = Schema([whole])
    feature = first_histograms(schema).histograms[0]
    starts = Grid.of(whole).starts(feature.breaks)
    counts = np.zeros(feature.size)
    counts[0], counts[np.flatnonzero(starts == 2000)] = 9700.0, 300.0
    level = Level(starts, counts, 100.0**2)
    column = ColumnDistribution(
        position=0, grid=Grid.of(whole), nullable=False, levels=(level,), n_records=10_000
    )
    assert column.shares[starts > 0].sum() == 0
    places = column.likely_places(starts[1:], np.append(starts[2:], 100_001), 300.0)
    shares = places / places.sum()
    assert shares[starts[1:] == 2000] > 0.8
    even = np.diff(np.append(starts[1:], 100_001)) / 100_000
    assert shares @ starts[1:] < 0.2 * (even @ starts[1:])


def fitted_by(schema: Schema, real: Matrix, *more: Workload) -> Measurements:
    """Exact histograms of all levels, and other queries."""
    columns = {
        place: Grid.of(expect_type(Numeric, schema.columns[place]))
        for place in numeric_positions(schema)
    }
    levels: list[NDArray[np.int64] | None] = [grid.first_cells() for grid in columns.values()]
    found: Measurements | None = None
    while levels:
        features = [
            histogram_feature(schema, place, starts)
            for place, starts in zip(columns, levels, strict=False)
            if starts is not None
        ]
        if not features:
            break
        workload = Workload(schema, (Histograms(schema, features),))
        found = measured_exactly(workload, real, found)
        levels = [column.refined(2**12) for column in column_distributions(found).values()]
    assert found is not None
    for workload in more:
        found = measured_exactly(workload, real, found)
    return found


def measured_exactly(
    workload: Workload, real: Matrix, before: Measurements | None = None
) -> Measurements:
    groups = workload.num_groups
    counts = count(workload, np.asfortranarray(real)).astype(float)
    measured = Measurements(
        workload, counts, np.ones(groups), len(real), ("",) * groups, private=False
    )
    return measured if before is None else before + measured


def test_strict_conditions_on_real_numbers_keep_their_counts() -> None:
    """The cut point of "r > x" is the next float after x, which is within a step of the grid."""
    schema = Schema([Real("r", lower=0, upper=1e5), Categorical("c", values=["x"])])
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.gamma(2, 1e4, 3000).clip(0, 1e5), np.zeros(3000)])
    rows[:300, 0] = 12_500
    more = workloads.predicates(schema, ["r > 12345.678", "r <= 20000", "r > 12500", "r >= 12500"])
    measured = fitted_by(schema, rows, more)
    start = np.column_stack([rng.random(4000) * 1e5, np.zeros(4000)])
    start[:500, 0] = 12_500
    fitted = summed_histograms(measured).workload.families
    made = redrawn(start, measured, fitted, 0)
    np.testing.assert_array_equal(count(more, made), count(more, start))
    assert len(np.unique(made[:, 0])) > 2000


def test_columns_that_a_rule_makes_equal_are_drawn_together() -> None:
    schema = Schema(
        [Integer("a", lower=0, upper=1000), Integer("b", lower=0, upper=1000)],
        constraints=("a = b",),
    )
    rng = np.random.default_rng(0)
    values = np.where(
        rng.random(3000) < 0.5, rng.choice([10, 40], 3000), rng.integers(0, 300, 3000)
    )
    measured = fitted_by(schema, np.column_stack([values, values]).astype(float))
    start = np.repeat(rng.integers(0, 1001, (2000, 1)), 2, axis=1).astype(float)
    made = redrawn(start, measured, summed_histograms(measured).workload.families, 0)
    np.testing.assert_array_equal(made[:, 0], made[:, 1])
    cells = CellValues.of(
        LikelyValues.of(column_distributions(measured)[0], []), np.zeros(0), (0.0, 1000.0)
    )
    assert len(cells.starts) > 30  # the histograms are fine
    made = redrawn(start, measured, (), 0)  # without marginals, all values are in one cell
    np.testing.assert_array_equal(made[:, 0], made[:, 1])
    assert (made[:, 0] > 300).mean() < 0.01
    assert (made[:, 0] == 10).mean() == pytest.approx(0.25, abs=0.03)


def test_rows_that_all_new_values_would_break_get_some_of_them() -> None:
    schema = Schema([Real(name, lower=0, upper=1e6) for name in "pqt"], constraints=("p + q <= t",))
    rng = np.random.default_rng(0)
    parts = rng.gamma(2, 5e3, (3000, 3))
    real = np.column_stack([parts[:, 0], parts[:, 1], parts.sum(axis=1)])
    measured = fitted_by(schema, real)
    start = rng.random((1000, 3)) * 1e6
    start = start[start[:, 0] + start[:, 1] <= start[:, 2]]
    made = redrawn(start, measured, (), 0)
    assert not broken_rows(schema, np.ascontiguousarray(made)).any()
    assert (made[:, :2] < 60_000).mean() > 0.97  # before, a tenth of the rows were uniform
