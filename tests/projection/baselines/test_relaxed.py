"""Relaxed rows: against hard counts where sigmoids are sharp, and by the formula where not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from private_gsd import workloads
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.projection.baselines import relaxed
from private_gsd.projection.baselines.optional import gradients
from private_gsd.projection.baselines.relaxed import Relaxation, RelaxedRows
from tests.projection.baselines.known import SCHEMA, at_most, on_the_line, table

pytestmark = pytest.mark.worker("baselines")

WORKLOAD = (
    workloads.tree_marginals(SCHEMA, 2, 3)
    + workloads.random_prefixes(SCHEMA, 40)
    + workloads.random_halfspaces(SCHEMA, 40)
    + workloads.categorical_marginals(SCHEMA, 2)
)
TOOLS = gradients("rap++")
POINTS = 200


def sure(rows: RelaxedRows) -> RelaxedRows:
    """Rows that are sure of every value."""
    return rows._replace(logits=50 * rows.logits, nulls=50 * rows.nulls)


def test_sharp_answers_are_hard_counts() -> None:
    matrix = table(POINTS)
    relaxation = Relaxation(TOOLS, WORKLOAD, POINTS)
    rows = sure(relaxation.begin(TOOLS.key(0), POINTS, matrix))
    found = np.empty(WORKLOAD.size)
    found[relaxation.queries] = TOOLS.jax.jit(relaxation.answers)(rows, 1e6)
    np.testing.assert_allclose(found, count(WORKLOAD, matrix) / POINTS, atol=1e-4)


def test_what_is_rounded_is_the_table_it_began_with() -> None:
    matrix = table(POINTS)
    relaxation = Relaxation(TOOLS, WORKLOAD, POINTS)
    rows = sure(relaxation.begin(TOOLS.key(0), POINTS, matrix))
    again = relaxation.round(rows, POINTS, np.random.default_rng(0))
    np.testing.assert_allclose(again, matrix, atol=1e-6)
    twice = relaxation.round(rows, 2 * POINTS, np.random.default_rng(0))
    np.testing.assert_allclose(twice, np.concatenate([matrix, matrix]), atol=1e-6)


def test_rounding_changes_no_answer() -> None:
    """Numbers between the points of a grid are cut half way between them."""
    asked = workloads.tree_marginals(SCHEMA, 1, 3) + workloads.random_prefixes(SCHEMA, 60)
    relaxation = Relaxation(TOOLS, asked, 500)
    rows = relaxation.begin(TOOLS.key(1), 500, None)
    rows = sure(rows._replace(logits=rows.logits + 10 * (rows.logits > 1)))
    found = np.empty(asked.size)
    found[relaxation.queries] = TOOLS.jax.jit(relaxation.answers)(rows, 1e7)
    hard = count(asked, relaxation.round(rows, 500, np.random.default_rng(0))) / 500
    # Values are drawn by probabilities that are almost, and not quite, 0 or 1.
    assert np.abs(found - hard).mean() < 2e-3


@pytest.mark.parametrize("sharpness", [2.0, 16.0, 512.0])
def test_soft_answers_are_sigmoids(sharpness: float) -> None:
    numbers = np.array([0.0, 0.2, 0.5, 0.9])
    relaxation = Relaxation(TOOLS, at_most([0.3, 0.5]), 4)
    rows = relaxation.begin(TOOLS.key(0), 4, on_the_line(numbers))
    answers = TOOLS.jax.jit(relaxation.answers)(rows, sharpness)[relaxation.weights > 0]
    for answer, threshold in zip(answers, (0.3, 0.5), strict=True):
        each = [1 / (1 + math.exp(-sharpness * (threshold - x))) for x in numbers]
        assert float(answer) == pytest.approx(np.mean(each), abs=1e-4)


def test_soft_categories_are_probabilities() -> None:
    asked = workloads.categorical_marginals(SCHEMA, 2, columns=["colour", "member"])
    relaxation = Relaxation(TOOLS, asked, 3)
    rows = relaxation.begin(TOOLS.key(2), 3, None)
    logits = np.asarray(rows.logits, dtype=np.float64)
    shares = np.zeros((4, 2))
    for point in range(3):
        colour, member = np.exp(logits[:4, point]), np.exp(logits[4:, point])
        shares += np.outer(colour / colour.sum(), member / member.sum()) / 3
    np.testing.assert_allclose(
        TOOLS.jax.jit(relaxation.answers)(rows, 2.0), shares.ravel(), atol=1e-6
    )


def test_queries_that_fill_up_do_not_count() -> None:
    """Queries of one kind come one by one, and all of them are asked together."""
    parts = [workloads.random_prefixes(SCHEMA, 7).select([n]) for n in range(7)]
    halves = [workloads.random_halfspaces(SCHEMA, 5).select([n]) for n in range(5)]
    asked = sum(parts[1:] + halves, start=parts[0]) + workloads.categorical_marginals(SCHEMA, 2)
    relaxation = Relaxation(TOOLS, asked, POINTS)
    assert len(relaxation.layout.conjunctions) == len(relaxation.layout.halfspaces) == 1
    counted = relaxation.queries[relaxation.weights > 0]
    np.testing.assert_array_equal(np.sort(counted), np.arange(asked.size))
    assert len(relaxation.queries) == asked.size + (16 - 7) + (16 - 5)
    assert relaxation.weights.sum() == asked.size
    matrix = table(POINTS)
    rows = sure(relaxation.begin(TOOLS.key(0), POINTS, matrix))
    found = TOOLS.jax.jit(relaxation.answers)(rows, 1e6)
    hard = count(asked, matrix) / POINTS
    np.testing.assert_allclose(found, hard[relaxation.queries], atol=1e-4)


def test_too_many_queries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaxed, "LARGEST", 1000)
    with pytest.raises(WorkloadError, match="60 queries are too many for 500 relaxed rows"):
        Relaxation(TOOLS, workloads.random_prefixes(SCHEMA, 60), 500)
