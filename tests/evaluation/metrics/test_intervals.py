"""Estimates and their intervals agree with SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from private_gsd.evaluation.metrics.intervals import area_under_curve, excess, share

stats = pytest.importorskip("scipy.stats")


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


def test_excess_is_a_share_of_the_misses_of_others() -> None:
    right = [np.arange(1000) < hits for hits in (900, 600)]
    found = excess(*right)
    assert found.value == pytest.approx(0.75)
    assert 0.6 < found.low < found.value < found.high < 0.9
    assert excess(right[0], np.ones(5, dtype=bool)).value == 0
