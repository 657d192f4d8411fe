"""How well models tell tables apart that are alike, and that are not."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Categorical, Schema
from private_gsd.evaluation.metrics.propensity import propensity
from private_gsd.evaluation.table_sample import sample_table
from tests.evaluation.tables import SCHEMA, TRAIN, census, constant, sample_of


def test_propensity_of_one_population_is_about_one() -> None:
    rows = [
        sample_of(sample_table(census(3000, seed), SCHEMA, limit=3000).sample) for seed in (1, 2)
    ]
    found = propensity(SCHEMA, *rows)
    assert found is not None
    assert 0.5 < found.ratio < 2
    assert 0.45 < found.auc < 0.55
    assert propensity(SCHEMA, sample_of(rows[0].sample[:10]), rows[1]) is None


def test_a_shuffled_copy_cannot_be_told_apart() -> None:
    rows = sample_table(TRAIN, SCHEMA, limit=2000)
    order = np.random.default_rng(3).permutation(len(rows.sample))
    found = propensity(SCHEMA, rows, sample_of(rows.sample[order]))
    assert found is not None
    assert abs(found.auc - 0.5) < 0.05
    assert found.pmse < 1e-6


def test_a_constant_table_is_told_apart() -> None:
    found = propensity(
        SCHEMA,
        sample_table(TRAIN, SCHEMA, limit=2000),
        sample_table(constant(TRAIN), SCHEMA, limit=2000),
    )
    assert found is not None
    assert found.auc > 0.99
    assert found.pmse > 0.2


@pytest.mark.slow
def test_tables_of_one_population_have_a_mean_ratio_of_about_one() -> None:
    """Ten columns of five values each, drawn twice."""
    schema = Schema([Categorical(f"c{n}", values=list("abcde")) for n in range(10)])
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(4):
        one, two = (sample_of(rng.integers(0, 5, (1000, 10)).astype(float)) for _ in range(2))
        found = propensity(schema, one, two)
        assert found is not None
        ratios.append(found.ratio)
    assert 0.7 < np.mean(ratios) < 1.3
