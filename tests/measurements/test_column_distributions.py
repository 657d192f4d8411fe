"""Column distributions: least squares by their definition, spikes, empty cells, tails."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_gsd import Integer, Measurements, Real, Schema
from private_gsd.counting.exact import count
from private_gsd.measurements.column_distributions import (
    ColumnDistribution,
    column_distributions,
    without_histograms,
)
from private_gsd.measurements.level_estimates import Level, combined, estimated_counts
from private_gsd.schema import Numeric
from private_gsd.workloads import Workload, categorical_marginals, tree_marginals
from private_gsd.workloads.grids import Grid
from private_gsd.workloads.histograms import Histograms, first_histograms, histogram_feature
from tests.sql.people import SCHEMA

Vector = NDArray[np.float64]


def learned(
    column: Numeric,
    values: Vector,
    noise: float,
    seed: int = 0,
    *,
    nulls: int = 0,
    levels: int = 99,
) -> ColumnDistribution:
    """The distribution of a column from histograms with Gaussian noise, level by level."""
    rng = np.random.default_rng(seed)
    grid = Grid.of(column)
    steps = np.floor(values * grid.per_one + 1e-6)
    starts = grid.first_cells()
    found: list[Level] = []
    while True:
        cells = np.bincount(
            np.searchsorted(starts, steps, side="right") - 1, minlength=len(starts)
        ).astype(np.float64)
        if column.nullable:
            starts, cells = np.append(starts, grid.last + 1), np.append(cells, nulls)
        found.append(Level(starts, cells + rng.normal(0, noise, len(cells)), noise**2))
        column_found = ColumnDistribution(
            0, grid, column.nullable, tuple(found), len(values) + nulls
        )
        finer = column_found.refined(2**15)
        if finer is None or len(found) == levels:
            return column_found
        starts = finer


def ks_distance(column: ColumnDistribution, steps: NDArray[np.int64]) -> float:
    """The largest difference of the distribution functions, where cells end."""
    below = np.cumsum(column.shares) / column.shares.sum()
    ends = np.append(column.starts[1:], column.grid.last + 1)
    real = np.searchsorted(np.sort(steps), ends) / len(steps)
    return float(np.abs(below - real).max())


@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4))
def test_levels_are_combined_by_least_squares(seed: int, depth: int) -> None:
    """The same as the normal equations of all levels at once."""
    rng = np.random.default_rng(seed)
    starts = [np.unique(np.append(0, rng.integers(1, 60, 3)))]
    for _ in range(depth - 1):
        starts.append(np.unique(np.append(starts[-1], rng.integers(1, 60, 4))))
    levels = [Level(each, rng.normal(50, 20, len(each)), rng.uniform(1, 9)) for each in starts]
    means, variances, parents = combined(levels)
    finest = starts[-1]
    rows, answers, weights = [], [], []
    for level in levels:
        owners = np.searchsorted(level.starts, finest, side="right") - 1
        for cell, answer in enumerate(level.counts):
            rows.append((owners == cell).astype(float))
            answers.append(answer)
            weights.append(level.variance**-0.5)
    matrix = np.array(rows) * np.array(weights)[:, None]
    inverse = np.linalg.inv(matrix.T @ matrix)
    solved = inverse @ (matrix.T @ (np.array(answers) * np.array(weights)))
    owners = np.searchsorted(levels[0].starts, finest, side="right") - 1
    np.testing.assert_allclose(means[0], np.bincount(owners, solved), atol=1e-8)
    sums = np.array([owners == cell for cell in range(len(levels[0].starts))], dtype=float)
    np.testing.assert_allclose(variances[0], np.diag(sums @ inverse @ sums.T), atol=1e-8)
    assert [len(each) for each in parents] == [len(each) for each in starts[1:]]


@given(seed=st.integers(0, 10**6), noise=st.floats(0.01, 1e6))
def test_counts_are_never_negative_and_add_up(seed: int, noise: float) -> None:
    values = np.random.default_rng(seed).integers(0, 1000, 50).astype(np.float64)
    column = Integer("x", lower=0, upper=10_000, nullable=True)
    found = learned(column, values, noise, seed, nulls=7)
    assert (found.shares >= 0).all()
    assert 0 <= found.null_share <= 1
    assert found.shares.sum() + found.null_share == pytest.approx(1)
    assert (found.widths >= 1).all()
    assert found.shares_between(found.starts[:1]).sum() == pytest.approx(1 - found.null_share)


def test_single_values_are_found_wherever_they_are() -> None:
    """Zero, a top code, a sentinel, and a value that is not round; ten seeds, noise of 40 rows."""
    rng = np.random.default_rng(0)
    smooth = np.rint(np.exp(rng.normal(10, 0.8, 6000)))
    spikes = {0: 1500, 9999: 900, 123_457: 800, 500_000: 1000}
    values = np.concatenate([smooth, *(np.full(n, value) for value, n in spikes.items())])
    column = Integer("x", lower=0, upper=500_000)
    for seed in range(10):
        found = learned(column, values, 40.0, seed)
        for value, number in spikes.items():
            place = int(np.searchsorted(found.starts, value, side="right")) - 1
            assert found.widths[place] == 1
            assert found.shares[place] == pytest.approx(number / len(values), abs=0.015)
        assert ks_distance(found, values.astype(np.int64)) < 0.03


@pytest.mark.parametrize("upper", [200_000, 2_000_000, 20_000_000, 2_000_000_000])
def test_bounds_that_are_far_too_wide_cost_little(upper: int) -> None:
    rng = np.random.default_rng(1)
    values = np.minimum(np.rint(np.exp(rng.normal(10, 0.7, 20_000))), 200_000)
    column = Integer("x", lower=0, upper=upper)
    errors = []
    for seed in range(5):
        found = learned(column, values, 60.0, seed)
        middles = found.starts + (found.widths - 1) / 2
        errors.append(float((found.shares * middles).sum() / values.mean() - 1))
        assert ks_distance(found, values.astype(np.int64)) < 0.03
    assert np.abs(errors).mean() < 0.04


def test_noise_alone_splits_nothing_and_fills_no_tail() -> None:
    """All rows have one value: whatever is far from it must stay empty."""
    column = Integer("x", lower=0, upper=10_000_000)
    values = np.full(5000, 30_000.0)
    for seed in range(20):
        found = learned(column, values, 50.0, seed)
        far = found.starts > 200_000
        assert found.shares[far].sum() == 0
        place = int(np.searchsorted(found.starts, 30_000, side="right")) - 1
        assert found.widths[place] == 1
        assert found.shares[place] > 0.9


def test_reals_without_decimals_have_their_round_values() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.random(4000) * 100, np.full(2000, 12.5), np.full(1000, 0.0)])
    found = learned(Real("x", lower=0, upper=100), values, 30.0)
    for value, share in ((12.5, 2 / 7), (0.0, 1 / 7)):
        place = int(np.searchsorted(found.starts, value * found.grid.per_one, side="right")) - 1
        assert found.is_single[place]
        assert found.starts[place] / found.grid.per_one == value
        assert found.shares[place] == pytest.approx(share, abs=0.03)


def test_cut_points_have_about_the_same_mass_and_spikes_stand_alone() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.integers(0, 1000, 8000).astype(float), np.full(2000, 500.0)])
    found = learned(Integer("x", lower=0, upper=1000), values, 20.0)
    starts = found.cut_points(16)
    assert 10 <= len(starts) <= 16
    assert {500, 501} <= set(starts.tolist())
    shares = found.shares_between(starts)
    assert shares.max() < 0.25
    assert np.isin(starts, found.starts).all()
    coarse = found.joined(starts, 4)
    assert 3 <= len(coarse) <= 4
    assert np.isin(coarse, starts).all()
    np.testing.assert_allclose(found.shares_between(coarse).sum(), shares.sum())


def test_the_scale_of_coarser_cells_is_that_of_their_least_squares() -> None:
    """Over many draws of the noise of two levels, within a third."""
    grid = Grid.of(Integer("x", lower=0, upper=999))
    first = np.array([0, 100, 500])
    second = np.array([0, 20, 40, 60, 80, 100, 200, 300, 400, 500])
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        levels = tuple(
            Level(starts, 1e6 + rng.normal(0, 30, len(starts)), 900.0) for starts in (first, second)
        )
        found.append(combined(levels)[0][0])
        column = ColumnDistribution(0, grid, nullable=False, levels=levels, n_records=10**7)
    spread = np.std(found, axis=0).mean()
    assert column.scale_of(first) == pytest.approx(spread, rel=1 / 3)


@given(seed=st.integers(0, 10**6), most=st.integers(1, 20), spikes=st.integers(0, 40))
@settings(max_examples=30)
def test_there_are_never_more_cells_than_allowed(seed: int, most: int, spikes: int) -> None:
    """However many values stand out, and whatever the noise."""
    rng = np.random.default_rng(seed)
    values = np.concatenate(
        [rng.integers(0, 991, 500), np.repeat(rng.integers(0, 991, spikes), 300)]
    )
    found = learned(Integer("x", lower=0, upper=990), values.astype(float), 3.0, seed)
    starts = found.cut_points(most)
    assert 1 <= len(starts) <= most
    assert starts[0] == 0
    assert np.isin(starts, found.starts).all()
    for fewer in (1, 2, 4, 8):
        joined = found.joined(starts, fewer)
        assert 1 <= len(joined) <= fewer
        assert np.isin(joined, starts).all()
        if len(starts) <= fewer:
            assert joined is starts


def test_cells_of_little_mass_are_not_cells_of_their_own() -> None:
    """Above the largest value there is no cell that noise could put rows into."""
    values = np.random.default_rng(5).gamma(2.0, 100.0, 20_000)
    found = learned(Integer("x", lower=0, upper=1_000_000), np.floor(values), 30.0)
    starts = found.cut_points(16)
    assert starts.max() < 1000
    assert found.shares_between(starts).min() > 1 / 64


def test_the_fullest_cells_are_split_first_where_not_all_can_be() -> None:
    values = np.concatenate(
        [np.random.default_rng(6).integers(0, 10_000, 20_000), np.full(9000, 77)]
    )
    found = learned(Integer("x", lower=0, upper=10_000), values.astype(float), 1.0, levels=1)
    everything, some = found.refined(2**15), found.refined(40)
    assert everything is not None
    assert some is not None
    assert len(some) <= 40 < len(everything)
    assert np.isin(found.starts, some).all()
    assert {60, 65, 70, 75, 80} <= set(some.tolist())
    assert found.refined(len(found.starts)) is None


def test_distributions_are_read_from_measurements_of_several_families() -> None:
    """Histograms are found among other queries; nulls are the last cell."""
    rng = np.random.default_rng(4)
    matrix = np.column_stack(
        [
            rng.integers(int(column.bounds[0]), int(column.bounds[1]) + 1, 300).astype(np.float64)
            for column in SCHEMA
        ]
    )
    age = SCHEMA.names.index("age")
    first = first_histograms(SCHEMA)
    workload = (
        categorical_marginals(SCHEMA, 1)
        + Workload(SCHEMA, (first,))
        + tree_marginals(SCHEMA, 1, 2)
        + Workload(
            SCHEMA,
            (Histograms(SCHEMA, [histogram_feature(SCHEMA, age, np.arange(0, 60, 5))]),),
        )
    )
    counts = count(workload, matrix).astype(np.float64)
    groups = workload.num_groups
    measured = Measurements(
        workload, counts, np.full(groups, 0.01), 300, ("",) * groups, private=False
    )
    found = column_distributions(measured)
    assert list(found) == [feature.position for feature in first.histograms]
    assert [len(each.levels) for each in found.values()].count(2) == 1
    assert len(found[age].levels) == 2
    rest = without_histograms(measured)
    assert rest is not None
    assert rest.workload.num_groups == groups - len(found) - 1
    np.testing.assert_array_equal(rest.counts, count(rest.workload, matrix))
    fine = np.concatenate([np.full(len(f.group_sizes), f.fine) for f in workload.families])
    assert without_histograms(measured.select(np.flatnonzero(fine))) is None


def test_an_empty_column_is_all_null() -> None:
    column = Integer("x", lower=0, upper=100, nullable=True)
    found = learned(column, np.zeros(0), 5.0, nulls=400)
    assert found.null_share > 0.9
    assert estimated_counts(
        found.levels, np.ones(len(found.levels[0].starts) - 1), 102, 400.0
    ).sum() == pytest.approx(400)


def test_schema_of_one_value_pair() -> None:
    """Two values: one level, and nothing to split."""
    schema = Schema([Integer("x", lower=0, upper=1)])
    found = learned(schema.columns[0], np.array([0.0, 1.0, 1.0, 1.0] * 100), 3.0)  # type: ignore[arg-type]
    assert len(found.levels) == 1
    assert found.shares[1] == pytest.approx(0.75, abs=0.05)


def test_few_values_each_have_a_cell_where_noise_tells_them_apart() -> None:
    """Also rare ones: another column may follow from them, as a degree from years of school."""
    rng = np.random.default_rng(7)
    column = Integer("x", lower=1, upper=16)
    values = np.append(rng.integers(8, 17, 9000), rng.integers(1, 8, 500)).astype(np.float64)
    for seed in range(5):
        found = learned(column, values, 5.0, seed)
        assert found.cut_points(16, least=15 / 9500).tolist() == list(range(1, 17))
        # Where there is more noise, the rare ones are one cell.
        joined = found.cut_points(16, least=600 / 9500)
        assert joined.tolist()[:1] == [1]
        assert len(joined) < 14
        assert {9, 10, 11, 12, 13, 14, 15, 16} <= set(joined.tolist())


@given(seed=st.integers(0, 30), number=st.sampled_from([1, 2, 4, 8, 16]))
def test_halves_hold_the_same_mass(seed: int, number: int) -> None:
    rng = np.random.default_rng(seed)
    column = Integer("n", lower=0, upper=9999)
    values = np.floor(rng.beta(rng.uniform(0.8, 5), rng.uniform(0.8, 5), 20_000) * 9999)
    starts = learned(column, values, 3.0, seed).halved(number)
    assert starts[0] == 0
    assert len(starts) == number
    shares = np.histogram(values, [*starts, 10_000])[0] / len(values)
    np.testing.assert_allclose(shares, 1 / number, atol=0.02)


def test_a_spike_is_on_one_side_of_the_middle() -> None:
    column = Integer("n", lower=0, upper=1000)
    rng = np.random.default_rng(0)
    for spike in (0, 400, 1000):
        values = np.where(rng.random(5000) < 0.7, spike, rng.integers(0, 1001, 5000)).astype(float)
        found = learned(column, values, 2.0)
        (_, cut) = found.halved(2)
        assert cut in (spike, spike + 1)
        assert 2 < len(found.halved(4)) <= 4
    # A column of one value has one cell.
    single = learned(Integer("n", lower=0, upper=1), np.zeros(500), 1.0)
    assert single.halved(16).tolist() in ([0], [0, 1])
