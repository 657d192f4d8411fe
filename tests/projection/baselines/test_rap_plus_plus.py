"""RAP++: its temperatures and rows, and the paper's examples of a relaxation that goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from private_gsd import Measurements, workloads
from private_gsd.counting.exact import count
from private_gsd.projection import projector_of
from private_gsd.projection.baselines import rap_plus_plus
from private_gsd.projection.baselines.optional import gradients
from private_gsd.projection.baselines.rap_plus_plus import RAPPlusPlus
from private_gsd.projection.baselines.relaxed import Relaxation
from tests.projection.baselines.known import SCHEMA, at_most, measured, on_the_line, table

pytestmark = pytest.mark.worker("baselines")

TOOLS = gradients("rap")

ROWS = 1000

# All numbers are 0.5, and three prefixes end close to it.
FIGURE_1 = measured(at_most([0.49, 0.5, 0.51]), on_the_line(np.full(ROWS, 0.5)))

# Half of the numbers are 0 and half are 1, and one prefix ends between them.
HALVES = measured(at_most([0.5]), on_the_line(np.repeat([0.0, 1.0], ROWS // 2)))


def largest_error(measurements: Measurements, spec: str, start: np.ndarray | None = None) -> float:
    found = projector_of(spec).project(measurements, rows=ROWS, seed=0, start=start)
    shares = count(measurements.workload, found.matrix) / ROWS
    return float(np.abs(shares - measurements.shares).max())


def test_figure_1_the_genetic_search_is_exact() -> None:
    assert largest_error(FIGURE_1, "gsd") == 0


@pytest.mark.parametrize("steps", [50, 100])
def test_figure_1_relaxed_rows_are_left_behind(steps: int) -> None:
    """At the paper's smallest learning rate, where sigmoids are made sharp before rows get there.

    Many end far below 0.49, as in the figure, where no gradient reaches them any more.
    """
    spec = f"rap++:learning_rate=0.0005,iterations={steps}"
    found = projector_of(spec).project(FIGURE_1, rows=ROWS, seed=0)
    assert (found.matrix[:, 1] < 0.4).mean() > 0.2
    assert largest_error(FIGURE_1, spec) > 0.2


def test_figure_1_relaxed_rows_get_there_with_more_steps() -> None:
    """What the paper does not say: with 500 steps at each temperature nothing goes wrong."""
    assert largest_error(FIGURE_1, "rap++") == 0


def test_half_zeros_half_ones() -> None:
    """All rows at 0.5 have no relaxed error and no gradient, and answer wrongly by a half."""
    middle = on_the_line(np.full(ROWS, 0.5))
    assert largest_error(HALVES, "gsd", middle) == 0
    assert largest_error(HALVES, "rap++", middle) == 0.5


def test_half_zeros_half_ones_from_random_rows() -> None:
    """The bad minimum is one to begin in: random rows do not fall into it."""
    assert largest_error(HALVES, "gsd") == 0
    assert largest_error(HALVES, "rap++") < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "points"), [(41, 40), (40, 40), (30, 30), (100, 40)])
def test_as_many_relaxed_rows_as_there_are_to_be(
    rows: int, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    real = Relaxation.begin

    def watched(self: Relaxation, key: Any, number: int, start: Any) -> Any:
        begun.append(number)
        return real(self, key, number, start)

    monkeypatch.setattr(Relaxation, "begin", watched)
    projector = projector_of("rap++:points=40,temperatures=1,iterations=1")
    asked = workloads.categorical_marginals(SCHEMA, 1)
    found = projector.project(measured(asked, table(50)), rows=rows)
    assert begun == [points]
    assert found.matrix.shape == (rows, len(SCHEMA))


def test_inverse_temperatures_double_from_2_to_2048(monkeypatch: pytest.MonkeyPatch) -> None:
    temperatures = []

    def compiled(*_: Any) -> Any:
        def run(rows: Any, moments: Any, asked: Any, sharpness: float, wanted: int) -> Any:
            temperatures.append(sharpness)
            return rows, moments, 1, 0.0, 0.0

        return run, TOOLS.optax.adam(0.1)

    monkeypatch.setattr(rap_plus_plus, "compiled", compiled)
    asked = workloads.categorical_marginals(SCHEMA, 1)
    RAPPlusPlus().project(measured(asked, table(50)), rows=10)
    assert temperatures == [2.0**number for number in range(1, 12)]
    assert rap_plus_plus.FIRST_TEMPERATURE == 2
