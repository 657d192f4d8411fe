"""Each metric agrees with an independent implementation of it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif
from sklearn.metrics import roc_auc_score

from private_gsd import Boolean, Categorical, Date, Integer, Real, Schema
from private_gsd.evaluation.metrics.associations import correlation_ratio, cramers_v, spearman
from private_gsd.evaluation.metrics.column_bins import cells_of, quantile_cells, words_of
from private_gsd.evaluation.metrics.distributions import kolmogorov_smirnov, total_variation
from private_gsd.evaluation.metrics.intervals import area_under_curve, excess, share
from private_gsd.evaluation.metrics.k_marginals import kmarginal
from private_gsd.evaluation.metrics.model_features import Features
from private_gsd.evaluation.metrics.nearness import occurs
from private_gsd.evaluation.metrics.propensity import propensity
from private_gsd.evaluation.table_sample import TableSample, sample_table, take
from private_gsd.kernels.nearest import nearest_rows
from tests.evaluation.tables import SCHEMA, census, matrix_of

stats = pytest.importorskip("scipy.stats")
RNG = np.random.default_rng(0)


def rows_of(matrix: np.ndarray) -> TableSample:
    none = np.empty(0, dtype=np.int64)
    return TableSample(matrix, len(matrix), np.isnan(matrix).sum(axis=0), none, none)


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


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=200))
def test_associations_of_categories(pairs: list[tuple[int, int]]) -> None:
    one, two = np.array(pairs).T
    found = cramers_v(one, 4, two, 6)
    table = pd.crosstab(one, two).to_numpy()
    if min(table.shape) < 2:
        assert found == 0
    else:
        expected = stats.contingency.association(table, method="cramer", correction=False)
        assert found == pytest.approx(expected)


def test_associations_with_numbers() -> None:
    codes = RNG.integers(0, 4, 500)
    numbers = codes + RNG.normal(size=500)
    f = float(f_classif(numbers[:, None], codes)[0][0])
    share_between = f * 3 / (f * 3 + (500 - 4))  # from F back to sums of squares
    assert correlation_ratio(codes, 5, numbers) == pytest.approx(np.sqrt(share_between))
    other = numbers.round() + RNG.integers(0, 3, 500)
    assert spearman(numbers, other) == pytest.approx(stats.spearmanr(numbers, other).statistic)
    holes = np.where(RNG.random(500) < 0.3, np.nan, other)
    expected = stats.spearmanr(numbers, holes, nan_policy="omit").statistic
    assert spearman(numbers, holes) == pytest.approx(expected)
    there = ~np.isnan(holes)
    assert correlation_ratio(codes, 5, holes) == pytest.approx(
        correlation_ratio(codes[there], 5, holes[there])
    )
    still = np.full(500, 7.0)
    assert spearman(numbers, still) == 0
    assert correlation_ratio(codes, 5, still) == 0
    assert correlation_ratio(codes, 5, np.full(500, np.nan)) == 0


@pytest.mark.parametrize("k", [1, 2, 3])
def test_kmarginal_is_that_of_sdnist(k: int) -> None:
    schema = Schema(
        [
            Categorical("a", values=list("xyz"), nullable=True),
            Boolean("b"),
            Integer("c", lower=0, upper=9),
            Categorical("d", values=["1", "2"]),
        ]
    )

    def table(rows: int) -> np.ndarray:
        sizes = (4, 2, 10, 2)
        matrix = np.column_stack([RNG.integers(0, size, rows) for size in sizes]).astype(float)
        matrix[matrix[:, 0] == 3, 0] = np.nan
        return matrix

    one, two = table(300), table(100)
    frames: list[Any] = [pd.DataFrame(each, columns=list("abcd")).fillna(-1) for each in (one, two)]
    differences = []
    for columns in kmarginal_sets(k):
        shares = [frame.groupby(columns).size() / len(frame) for frame in frames]
        differences.append(shares[0].subtract(shares[1], fill_value=0).abs().sum())
    found = kmarginal(schema, rows_of(one), rows_of(two), k=k)
    assert found.score == pytest.approx((2 - np.mean(differences)) * 500)
    assert (found.k, found.sets, found.of) == (k, len(differences), len(differences))
    assert kmarginal(schema, rows_of(one), rows_of(one), k=k).score == pytest.approx(1000)
    assert {name for name, _ in found.columns} == set("abcd")


def kmarginal_sets(k: int) -> list[list[str]]:
    return {
        1: [["a"], ["b"], ["c"], ["d"]],
        2: [["a", "b"], ["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"], ["c", "d"]],
        3: [["a", "b", "c"], ["a", "b", "d"], ["a", "c", "d"], ["b", "c", "d"]],
    }[k]


def test_kmarginal_of_columns_with_many_values() -> None:
    values = [f"v{number}" for number in range(1000)]
    schema = Schema([Categorical(name, values=values) for name in "abc"])
    one = RNG.integers(0, 1000, (500, 3)).astype(float)
    assert kmarginal(schema, rows_of(one), rows_of(one), k=3).score == pytest.approx(1000)
    other = (one + 500) % 1000  # other values in every row, the same ones in every column
    assert kmarginal(schema, rows_of(one), rows_of(other), k=3).score < 10


def test_kmarginal_names_the_part_that_scores_alike() -> None:
    rows = sample_table(census(2000), SCHEMA, limit=10_000)
    found = kmarginal(SCHEMA, rows, rows_of(take(rows.sample, 400, 9)))
    assert found.like in (0.1, 0.2, 0.3)
    assert [score for _, score in found.subsamples] == sorted(
        (score for _, score in found.subsamples), reverse=True
    )


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=50),
    st.lists(st.integers(0, 5), min_size=1, max_size=50),
)
def test_area_under_the_curve(ones: list[int], zeros: list[int]) -> None:
    found = area_under_curve(np.array(ones, dtype=float), np.array(zeros, dtype=float))
    truth = [1] * len(ones) + [0] * len(zeros)
    assert found.value == pytest.approx(roc_auc_score(truth, ones + zeros))
    assert 0 <= found.low <= found.value <= found.high <= 1


@given(st.integers(0, 40), st.integers(1, 40))
def test_intervals_of_shares(hits: int, more: int) -> None:
    number = hits + more
    found = share(np.arange(number) < hits)
    expected = stats.binomtest(hits, number).proportion_ci(method="wilson")
    assert found.value == hits / number
    assert found.low == pytest.approx(expected.low, abs=1e-4)
    assert found.high == pytest.approx(expected.high, abs=1e-4)


def test_excess_is_a_part_of_what_others_miss() -> None:
    right = [np.arange(1000) < hits for hits in (900, 600)]
    found = excess(*right)
    assert found.value == pytest.approx(0.75)
    assert 0.6 < found.low < found.value < found.high < 0.9
    assert excess(right[0], np.ones(5, dtype=bool)).value == 0


def slow_nearest(rows: np.ndarray, others: np.ndarray, discrete: np.ndarray) -> list[float]:
    def distance(one: np.ndarray, two: np.ndarray) -> float:
        total = 0.0
        for a, b, kind in zip(one, two, discrete, strict=True):
            if np.isnan(a) or np.isnan(b):
                total += not (np.isnan(a) and np.isnan(b))
            else:
                total += (a != b) if kind else abs(a - b)
        return total / len(one)

    return [min(distance(one, two) for two in others) for one in rows]


def test_nearest_distances() -> None:
    discrete = np.array([True, False, True, False])
    for _ in range(20):
        tables = []
        for number in RNG.integers(1, 12, 2):
            matrix = RNG.random((number, 4))
            matrix[:, discrete] = RNG.integers(0, 3, (number, 2))
            matrix[RNG.random(matrix.shape) < 0.2] = np.nan
            tables.append(matrix)
        found, places = np.empty(len(tables[0])), np.empty(len(tables[0]), dtype=np.int64)
        nearest_rows(tables[0], tables[1], discrete, found, places)
        assert found == pytest.approx(slow_nearest(tables[0], tables[1], discrete))
        for row, place in enumerate(places):
            alone = slow_nearest(tables[0][[row]], tables[1][[place]], discrete)
            assert alone == pytest.approx(found[[row]])


def test_rows_that_occur() -> None:
    one = matrix_of([0.0, -0.0, 1.0], [np.nan, 2.0, -np.nan])
    two = matrix_of([-0.0, 1.0], [-np.nan, np.nan])
    assert occurs(one, two).tolist() == [True, False, True]


def test_propensity_of_one_population_is_about_one() -> None:
    rows = [rows_of(sample_table(census(3000, seed), SCHEMA, limit=3000).sample) for seed in (1, 2)]
    found = propensity(SCHEMA, *rows)
    assert found is not None
    assert 0.5 < found.ratio < 2
    assert 0.45 < found.auc < 0.55
    assert propensity(SCHEMA, rows_of(rows[0].sample[:10]), rows[1]) is None


def test_features_of_models() -> None:
    schema = Schema(
        [
            Categorical("many", values=[str(each) for each in range(300)]),
            Integer("n", lower=0, upper=100, nullable=True),
            Boolean("b", nullable=True),
        ]
    )
    matrix = matrix_of([0, 299, 5], [np.nan, 10, 30], [1, 0, np.nan])
    features = Features(schema, [0, 1, 2], matrix)
    assert features.categories == [False, False, True]
    dense = features.linear(matrix).toarray()
    assert dense.shape == (3, features.width)
    # One value of each category, the number in units of its spread, whether it is null.
    assert dense[:, :31].sum(axis=1).tolist() == [1, 1, 1]
    assert dense[:, 31].tolist() == [0, -1, 1]
    assert dense[:, 32].tolist() == [1, 0, 0]
    assert dense[:, 33:].sum(axis=1).tolist() == [1, 1, 1]
    assert len({tuple(row) for row in dense[:, 33:].tolist()}) == 3


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


def test_a_sample_is_uniform_and_counts_are_of_all_rows() -> None:
    schema = Schema([Integer("n", lower=0, upper=200_000)])
    table = pd.DataFrame({"n": np.arange(150_000)})
    rows = sample_table(table, schema, limit=1000, seed=3)
    assert rows.total == 150_000
    assert len(rows.sample) == 1000
    assert len(np.unique(rows.sample)) == 1000
    assert (np.diff(rows.sample[:, 0]) > 0).all()
    assert stats.kstest(rows.sample[:, 0] / 150_000, "uniform").pvalue > 0.001
    assert "redacted" in repr(rows)
