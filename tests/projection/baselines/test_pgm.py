"""PGM: models that stay small, sums of atoms, noise, and double precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from private_gsd import (
    Adaptive,
    Categorical,
    Measurements,
    Schema,
    Synthesizer,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import (
    WorkloadError,
)
from private_gsd.mechanisms import EndedEarlyWarning
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.projection import projector_of
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.baselines import pgm
from private_gsd.projection.baselines.optional import gradients
from private_gsd.projection.baselines.pgm import CellSums
from private_gsd.runs.run_folder import RunFolder
from private_gsd.workloads.layout import marginal_tables
from tests.projection.baselines.known import SCHEMA, measured, table

pytestmark = pytest.mark.worker("baselines")

TOOLS = gradients("rap")

MANY = Schema([Categorical(f"c{n}", values=list("abcdefgh")) for n in range(5)])

SMALL = "pgm:iterations=50,cells=300"  # four pairs have 256 cells; a triangle would have 512

ROWS = 4000

TABLE = table(ROWS)


class Killed(BaseException):
    """A kill."""


def new_files(folder: Path) -> dict[str, Any]:
    """A release and a ledger that a fit makes."""
    return {"release": folder / "r", "ledger": folder / "l", "create_ledger": True}


def test_a_model_that_would_be_too_large(tmp_path: Path) -> None:
    pairs = workloads.categorical_marginals(MANY, 2)
    projector = projector_of(SMALL)
    reason = projector.why_infeasible(pairs)
    assert reason is not None
    assert "these 10 marginals would have 32,768 cells" in reason
    assert "join c0 x c1 x c2 x c3 x c4" in reason
    assert projector.why_infeasible(pairs.select(range(4))) is None  # a star
    rows = np.zeros((5, 5))
    with pytest.raises(WorkloadError, match="Measure fewer marginals, or adaptively"):
        projector.project(measured(pairs, rows), rows=5)
    data = {name: ["a", "b"] * 30 for name in MANY.names}
    for settings, message in (
        ({"mechanism": "one-shot"}, "use the adaptive mechanism, which selects some"),
        ({"mechanism": Adaptive(queries_per_epoch=2)}, "say queries_per_epoch=1"),
        ({"mechanism": "adaptive", "projector": "pgm:cells=63"}, "no marginal alone is small"),
    ):
        options: dict[str, Any] = {"workload": pairs, "projector": SMALL, **settings}
        synth = Synthesizer(MANY, 1.0, **options)
        with pytest.raises(WorkloadError, match=message):
            synth.fit(pyarrow.table(data), **new_files(tmp_path))
        with pytest.raises(WorkloadError, match=message):
            synth.plan(pyarrow.table(data))
        assert list(tmp_path.iterdir()) == []  # nothing was spent


@pytest.mark.slow
def test_a_model_is_kept_small_by_what_is_selected(tmp_path: Path) -> None:
    """Only groups that still fit are selected; where none is left, the run ends with its table."""
    data = pyarrow.table({name: ["a", "b", "c"] * 30 for name in MANY.names})
    synth = Synthesizer(
        MANY,
        1.0,
        workload=["categorical:2"],
        projector=SMALL,
        mechanism=Adaptive(epochs=5),
        rows=20,
    )
    message = r"ended after 4 epochs and cancelled .* none of the 6 groups that are left .* fewer"
    with (
        pytest.MonkeyPatch.context() as patch,
        pytest.warns(EndedEarlyWarning, match=message),
        pytest.raises(Killed),
    ):
        patch.setattr(RunFolder, "finish", lambda *_: (_ for _ in ()).throw(Killed()))
        synth.fit(data, release=tmp_path / "r")
    # Killed after the rest of the reserve was cancelled, it is still resumed to its end.
    with pytest.warns(EndedEarlyWarning, match=message):
        release = Synthesizer.resume(tmp_path / "r", data).release_
    assert release.synthetic.num_rows == 20
    measurements = release.measurements()
    assert measurements is not None
    assert measurements.workload.num_groups == 4
    assert projector_of(SMALL).why_infeasible(measurements.workload) is None
    with Ledger(tmp_path / "r.ledger.db", create=True) as ledger:
        account = ledger.account("table")
        assert account.reserved == 0
        assert account.spent == pytest.approx(0.8 * account.budget.units, rel=1e-6)
        assert account.remaining == account.budget.units - account.spent
        assert release.privacy["spent"]["rho"] == pytest.approx(0.8 * account.budget.rho, rel=1e-6)


def test_noise_is_weighed_by_the_graphical_model() -> None:
    """Of two measurements of one column, the better one counts."""
    asked = workloads.categorical_marginals(SCHEMA, 1, columns=["member"])
    good, bad = measured(asked, TABLE, 0.01), measured(asked, TABLE[::-1], 1000.0)
    wrong = Measurements(asked, bad.counts[::-1].copy(), bad.scales, ROWS, ("",), False)
    found = projector_of("pgm").project(good + wrong, rows=ROWS)
    shares = count(asked, found.matrix) / ROWS
    np.testing.assert_allclose(shares, good.shares, atol=1e-3)


@pytest.mark.slow
def test_the_norm_of_what_sums_atoms() -> None:
    """Against the singular values of the whole matrix; and the sums themselves."""
    asked = workloads.tree_marginals(SCHEMA, 2, 2) + workloads.range_marginals(
        SCHEMA, {"age": [(1, 2), (2, 5)], "colour": ...}
    )
    tables = marginal_tables(asked)
    atoms = Atoms.of(SCHEMA, tables)
    rng = np.random.default_rng(0)
    for each in tables:
        cells = [atoms.cells(feature) for feature in each.features]
        sizes = [feature.size for feature in each.features]
        dense = np.ones((1, 1))
        for mine, size in zip(cells, sizes, strict=True):
            dense = np.kron(dense, (np.arange(size)[:, None] == mine).astype(float))
        summed = CellSums(TOOLS.jnp, cells, sizes)
        assert summed.op_norm_sq() == pytest.approx(np.linalg.norm(dense, 2) ** 2)
        values = rng.random([len(mine) for mine in cells])

        class Factor:
            def datavector(self, flatten: bool, values: Any = values) -> Any:  # noqa: ARG002
                return TOOLS.jnp.asarray(values)

        np.testing.assert_allclose(summed(Factor()), dense @ values.ravel(), rtol=1e-5)


@pytest.mark.slow
def test_graphical_models_are_fitted_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    types = set()
    real = CellSums.__call__

    def watched(self: CellSums, factor: Any) -> Any:
        found = real(self, factor)
        types.add(str(found.dtype))
        return found

    monkeypatch.setattr(pgm.CellSums, "__call__", watched)
    asked = workloads.tree_marginals(SCHEMA, 2, 2)
    projector_of("pgm:iterations=50").project(measured(asked, table(100)), rows=10)
    assert types == {"float64"}
