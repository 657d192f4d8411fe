"""Mixtures: batches, losses that are no numbers, and columns of many values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from private_gsd import Categorical, Schema, workloads
from private_gsd.errors import ProjectionError
from private_gsd.projection import projector_of
from private_gsd.projection.baselines import rap_plus_plus
from private_gsd.projection.baselines.mixtures import batch_counts
from private_gsd.projection.baselines.optional import gradients
from tests.projection.baselines.known import SCHEMA, measured, memory_of_at_most, table

pytestmark = pytest.mark.worker("baselines")

TOOLS = gradients("rap")

WIDE = Schema([Categorical("postcode", values=[str(n) for n in range(30_000)])])


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["rap:mixtures=2,iterations=1", "rap++:points=5,iterations=1", "pgm:iterations=50"]
)
def test_a_column_of_many_values_takes_no_matrix_of_its_square(spec: str) -> None:
    asked = workloads.categorical_marginals(WIDE, 1)
    codes = np.arange(60.0)[:, None] * 500
    with memory_of_at_most(200):
        assert projector_of(spec).why_infeasible(asked) is None
        found = projector_of(spec).project(measured(asked, codes), rows=30)
    assert found.matrix.shape == (30, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rap", "gem", "rap++"])
def test_a_loss_that_is_no_number_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: Any) -> Any:
        return lambda rows, moments, *_: (rows, moments, 1, math.nan, 1.0), TOOLS.optax.adam(0.1)

    monkeypatch.setattr(rap_plus_plus, "compiled", compiled)
    quick = {"rap++": "rap++:points=10", "rap": "rap:mixtures=5,batch=20", "gem": "gem:mixtures=5"}
    projector: Any = projector_of(quick[name])
    object.__setattr__(projector, "learning_rate", 3e38)  # more than is allowed, to be quick
    asked = workloads.categorical_marginals(SCHEMA, 2)
    message = f"loss of the projector '{name.replace('+', '.')}' is nan: its learning rate of 3e.38"
    with pytest.raises(ProjectionError, match=message):
        projector.project(measured(asked, table(50)), rows=10)


def test_batches_are_drawn_by_their_errors() -> None:
    errors = np.array([0.0, 0.1, 0.3, 0.0, 0.6], dtype=np.float32)
    counts = np.asarray(batch_counts(TOOLS, TOOLS.key(0), TOOLS.jnp.asarray(errors), 20_000))
    assert counts.sum() == 20_000
    assert counts[0] == counts[3] == 0
    np.testing.assert_allclose(counts / 20_000, errors, atol=5 * 0.5 / math.sqrt(20_000))
    alike = np.asarray(batch_counts(TOOLS, TOOLS.key(1), TOOLS.jnp.ones(4), 20_000))
    np.testing.assert_allclose(alike / 20_000, 0.25, atol=5 * 0.5 / math.sqrt(20_000))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rap", "gem", "rap++", "pgm"])
def test_single_columns_alone_give_independent_columns(name: str) -> None:
    """As in the data, of which only single columns are known, or not."""
    schema = Schema([Categorical(f"c{place}", values=[0, 1]) for place in range(8)])
    alike = np.random.default_rng(0).random((2000, 1)) < 0.2
    rows = np.repeat(alike, 8, axis=1).astype(np.float64)
    asked = workloads.categorical_marginals(schema, 1)
    made = projector_of(name).project(measured(asked, rows), rows=4000).matrix
    assert made.mean(axis=0) == pytest.approx(alike.mean(), abs=0.03)
    correlations = np.asarray(np.corrcoef(made.T))[np.triu_indices(8, 1)]
    assert np.abs(correlations).mean() < 0.02  # 0.013 by chance
