"""The k-marginal score is that of SDNist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from private_gsd import Boolean, Categorical, Integer, Schema
from private_gsd.evaluation.metrics.k_marginals import kmarginal
from private_gsd.evaluation.table_sample import sample_table, take
from tests.evaluation.tables import SCHEMA, census, sample_of

RNG = np.random.default_rng(0)


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
    found = kmarginal(schema, sample_of(one), sample_of(two), k=k)
    assert found.score == pytest.approx((2 - np.mean(differences)) * 500)
    assert (found.k, found.sets, found.of) == (k, len(differences), len(differences))
    assert kmarginal(schema, sample_of(one), sample_of(one), k=k).score == pytest.approx(1000)
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
    assert kmarginal(schema, sample_of(one), sample_of(one), k=3).score == pytest.approx(1000)
    other = (one + 500) % 1000  # other values in every row, the same ones in every column
    assert kmarginal(schema, sample_of(one), sample_of(other), k=3).score < 10


def test_kmarginal_scores_subsamples_for_comparison() -> None:
    rows = sample_table(census(2000), SCHEMA, limit=10_000)
    found = kmarginal(SCHEMA, rows, sample_of(take(rows.sample, 400, 9)))
    # A fifth of the rows scores about as much as another fifth.
    scores = dict(found.subsamples)
    assert scores[0.1] <= found.score <= scores[0.3]
    assert [score for _, score in found.subsamples] == sorted(
        (score for _, score in found.subsamples), reverse=True
    )
