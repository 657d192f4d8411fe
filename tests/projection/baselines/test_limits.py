"""Wide columns, many rows, losses that are no numbers, and the paper's settings, pinned."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from private_gsd import Categorical, GeneticSearch, Schema, workloads
from private_gsd.errors import ProjectionError
from private_gsd.projection import projector_of
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.baselines import drawing, gem, pgm, rap_plus_plus
from private_gsd.projection.baselines.drawing import draw_places
from private_gsd.projection.baselines.gem import GEM
from private_gsd.projection.baselines.mixtures import drawn_times
from private_gsd.projection.baselines.optional import gradients
from private_gsd.projection.baselines.pgm import PGM, Summed
from private_gsd.projection.baselines.rap import RAP
from private_gsd.projection.baselines.rap_plus_plus import RAPPlusPlus
from private_gsd.projection.baselines.relaxed import Relaxation
from private_gsd.workloads.layout import tables_asked
from tests.projection.baselines.known import SCHEMA, measured, table

pytestmark = pytest.mark.worker("baselines")

TOOLS = gradients("rap")


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """No more than this is held by NumPy and Python at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()


WIDE = Schema([Categorical("postcode", values=[str(n) for n in range(30_000)])])


@pytest.mark.parametrize(
    "spec", ["rap:mixtures=2,iterations=1", "rap++:points=5,iterations=1", "pgm:iterations=50"]
)
def test_a_column_of_many_values_takes_no_matrix_of_its_square(spec: str) -> None:
    asked = workloads.categorical_marginals(WIDE, 1)
    codes = np.arange(60.0)[:, None] * 500
    with at_most(200):
        assert projector_of(spec).why_infeasible(asked) is None
        found = projector_of(spec).project(measured(asked, codes), rows=30)
    assert found.matrix.shape == (30, 1)


def test_values_are_drawn_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(2000), 20).T
    which = rng.integers(20, size=40_000)
    with at_most(150):  # all at once it would be 640 MB
        drawn = draw_places(chances, which, np.random.default_rng(1))
    assert drawn.min() >= 0
    assert drawn.max() < 2000
    # The slow twin, a row at a time, with the same shares.
    shares = np.random.default_rng(1).random(40_000)
    for row in range(0, 40_000, 997):
        ends = np.cumsum(chances[:, which[row]])
        assert drawn[row] == np.searchsorted(ends, shares[row] * ends[-1], side="right")
    monkeypatch.setattr(drawing, "AT_ONCE", 2000 * 7)
    again = draw_places(chances, which, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, again)


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


def test_batches_are_drawn_by_their_errors() -> None:
    errors = np.array([0.0, 0.1, 0.3, 0.0, 0.6], dtype=np.float32)
    times = np.asarray(drawn_times(TOOLS, TOOLS.key(0), TOOLS.jnp.asarray(errors), 20_000))
    assert times.sum() == 20_000
    assert times[0] == times[3] == 0
    np.testing.assert_allclose(times / 20_000, errors, atol=5 * 0.5 / math.sqrt(20_000))
    alike = np.asarray(drawn_times(TOOLS, TOOLS.key(1), TOOLS.jnp.ones(4), 20_000))
    np.testing.assert_allclose(alike / 20_000, 0.25, atol=5 * 0.5 / math.sqrt(20_000))


def test_inverse_temperatures_double_from_2_to_2048(monkeypatch: pytest.MonkeyPatch) -> None:
    met = []

    def compiled(*_: Any) -> Any:
        def run(rows: Any, moments: Any, asked: Any, sharpness: float, wanted: int) -> Any:
            met.append(sharpness)
            return rows, moments, 1, 0.0, 0.0

        return run, TOOLS.optax.adam(0.1)

    monkeypatch.setattr(rap_plus_plus, "compiled", compiled)
    asked = workloads.categorical_marginals(SCHEMA, 1)
    RAPPlusPlus().project(measured(asked, table(50)), rows=10)
    assert met == [2.0**number for number in range(1, 12)]
    assert rap_plus_plus.FIRST_TEMPERATURE == 2


def test_the_norm_of_what_sums_atoms() -> None:
    """Against the singular values of the whole matrix; and the sums themselves."""
    asked = workloads.tree_marginals(SCHEMA, 2, 2) + workloads.range_marginals(
        SCHEMA, {"age": [(1, 2), (2, 5)], "colour": ...}
    )
    tables = tables_asked(asked)
    atoms = Atoms.of(SCHEMA, tables)
    rng = np.random.default_rng(0)
    for each in tables:
        cells = [atoms.cells(feature) for feature in each.features]
        sizes = [feature.size for feature in each.features]
        dense = np.ones((1, 1))
        for mine, size in zip(cells, sizes, strict=True):
            dense = np.kron(dense, (np.arange(size)[:, None] == mine).astype(float))
        summed = Summed(TOOLS.jnp, cells, sizes)
        assert summed.op_norm_sq() == pytest.approx(np.linalg.norm(dense, 2) ** 2)
        values = rng.random([len(mine) for mine in cells])

        class Factor:
            def datavector(self, flatten: bool, values: Any = values) -> Any:  # noqa: ARG002
                return TOOLS.jnp.asarray(values)

        np.testing.assert_allclose(summed(Factor()), dense @ values.ravel(), rtol=1e-5)


def test_graphical_models_are_fitted_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = set()
    real = Summed.__call__

    def watched(self: Summed, factor: Any) -> Any:
        found = real(self, factor)
        kinds.add(str(found.dtype))
        return found

    monkeypatch.setattr(pgm.Summed, "__call__", watched)
    asked = workloads.tree_marginals(SCHEMA, 2, 2)
    projector_of("pgm:iterations=50").project(measured(asked, table(100)), rows=10)
    assert kinds == {"float64"}


def test_the_defaults_are_those_of_the_paper_s_table() -> None:
    assert (RAP().mixtures, RAP().batch, RAP().iterations) == (1000, 5000, 1000)
    assert (GEM().mixtures, GEM().batch, GEM().iterations) == (1000, 5000, 1000)
    assert (RAP().learning_rate, GEM().learning_rate) == (0.03, 0.0003)
    assert (gem.HIDDEN, gem.NOISE) == ((128, 256), 16)
    assert RAPPlusPlus().points == 1000
    assert 2.0 ** RAPPlusPlus().temperatures == 2048
    assert RAPPlusPlus().learning_rate in (0.0005, 0.001, 0.002, 0.005, 0.01)
    assert PGM().iterations == 250
    assert GeneticSearch().rows == 2000


def test_settings_may_have_spaces() -> None:
    assert projector_of(" rap : iterations = 5 , batch=7 ") == RAP(iterations=5, batch=7)
