"""Associations agree with SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_selection import f_classif

from private_gsd import Boolean, Real, Schema
from private_gsd.evaluation.metrics.associations import (
    compare_associations,
    correlation_ratio,
    cramers_v,
    spearman,
)
from tests.evaluation.tables import matrix_of, sample_of

stats = pytest.importorskip("scipy.stats")
RNG = np.random.default_rng(0)


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


def test_pairs_come_with_their_measures_the_largest_difference_first() -> None:
    schema = Schema([Boolean("a"), Boolean("b"), Real("x", lower=0, upper=1)])
    flag, number = RNG.integers(0, 2, 400), RNG.random(400)
    real = sample_of(matrix_of(flag, flag, number))
    synthetic = sample_of(matrix_of(flag, RNG.permutation(flag), number))
    found = compare_associations(schema, real, synthetic)
    assert found.pairs[0][:2] == ("a", "b")
    assert {pair.measure for pair in found.pairs} == {"Cramér's V", "correlation ratio"}
    assert found.pairs[0].real == pytest.approx(1)
    differences = [abs(pair.synthetic - pair.real) for pair in found.pairs]
    assert differences == sorted(differences, reverse=True)
    assert found.mean_difference == pytest.approx(np.mean(differences))
    assert (found.rows, found.left_out) == (400, 0)
