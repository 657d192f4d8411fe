"""MST: the tree that it selects, and what it spends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_gsd import (
    AIM,
    MST,
    Measurements,
    Synthesizer,
)
from private_gsd import workloads as asked
from private_gsd.counting.comparison import query_errors
from private_gsd.errors import MeasurementError, WorkloadError
from private_gsd.mechanisms.candidates import scopes_of
from private_gsd.mechanisms.mst import independent_shares, nearest_probabilities
from private_gsd.privacy.budget import RhoBudget
from private_gsd.projection import projector_of
from private_gsd.workloads.specs import workload_of
from tests.fitting import fitted
from tests.mechanisms.tables import CENSUS, chain, names_of, spent


@pytest.mark.parametrize("projector", ["gsd", "pgm:iterations=50"])
def test_mst_finds_the_tree_of_a_markov_chain(projector: str, tmp_path: Path) -> None:
    schema, table = chain()
    synth = Synthesizer(
        schema, 100.0, workload=["categorical:2"], mechanism="mst", projector=projector, rows=1000
    ).fit(table, release=tmp_path / "r")
    found = {frozenset(name.split(" x ")) for name in names_of(synth.release_, MST())}
    assert found == {frozenset((f"c{n}", f"c{n + 1}")) for n in range(4)}
    measured = synth.release_.measurements()
    assert measured is not None
    assert measured.workload.num_groups == 5 + 4
    # The tree says it all: also of pairs that were not measured.
    far = asked.categorical_marginals(schema, sets=[["c0", "c2"], ["c1", "c4"]])
    assert query_errors(far, table, synth.sample()).max < 0.06
    budget = RhoBudget.from_epsilon(100.0, 1 / table.num_rows**2)
    assert spent(synth.release_) == budget.units


def test_the_thirds_of_mst(tmp_path: Path) -> None:
    schema, table = chain(500)
    synth = Synthesizer(schema, 1.0, mechanism="mst", rows=50).fit(table, release=tmp_path / "r")
    charges = synth.release_.privacy["charges"]
    steps = [charge["run"].split(" ", 1)[1] for charge in charges]
    pairs = [f"pair {n}: select" for n in (1, 2, 3, 4)]
    assert steps == ["columns: measure", *pairs, "pairs: measure"]
    rho = [charge["rho"] for charge in charges]
    assert rho[0] == pytest.approx(sum(rho) / 3)
    assert rho[1:5] == [pytest.approx(sum(rho) / 12)] * 4
    assert rho[5] == pytest.approx(sum(rho) / 3)
    measured = synth.release_.measurements()
    assert measured is not None
    for part in (measured.scales[:5], measured.scales[5:]):
        np.testing.assert_allclose(part, part[0], rtol=1e-9)


@pytest.mark.slow
def test_mst_with_pairs_that_a_model_cannot_take(tmp_path: Path) -> None:
    """The tree is smaller, and what was not spent on selecting measures its pairs."""
    schema, table = chain(500)
    cells = 3 * 9 - 1  # two pairs and a column have 9 + 9 + 3
    settings: dict[str, Any] = {"rows": 50, "mechanism": "mst", "workload": ["categorical:2"]}
    settings["projector"] = f"pgm:iterations=10,cells={cells}"
    synth = fitted(schema, 1.0, table, release=tmp_path / "r", **settings)
    assert 0 < len(synth.release_.selections()) < 4
    assert spent(synth.release_) == RhoBudget.from_epsilon(1.0, 1 / 500**2).units
    measured = synth.release_.measurements()
    assert measured is not None
    assert projector_of(settings["projector"]).why_infeasible(measured.workload) is None
    pairs = MST().candidates(workload_of(schema, ["categorical:2"]))
    assert MST().needs_feasibility_checks(projector_of(settings["projector"]), pairs)
    assert not MST().needs_feasibility_checks(projector_of("pgm"), pairs)
    assert MST().needs_feasibility_checks(projector_of("pgm"), pairs, external=pairs)
    assert AIM().needs_feasibility_checks(projector_of("pgm"), pairs)
    assert not AIM().needs_feasibility_checks(projector_of("gsd"), pairs)
    settings["projector"] = "pgm:cells=17"  # a pair and three columns have 18
    files: dict[str, Any] = {"release": tmp_path / "s", "ledger": tmp_path / "l"}
    again = Synthesizer(schema, 1.0, **settings)
    with pytest.raises(WorkloadError, match=r"more than the 17 allowed.*use another projector"):
        again.fit(table, create_ledger=True, **files)
    assert not (tmp_path / "l").exists()


def test_probabilities_nearest_to_noisy_shares() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        noisy = rng.normal(0.2, 0.3, size=rng.integers(1, 8))
        found = nearest_probabilities(noisy, exhaustive=True)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        # No other probabilities are nearer.
        for other in rng.dirichlet(np.ones(len(noisy)), 20):
            assert ((found - noisy) ** 2).sum() <= ((other - noisy) ** 2).sum() + 1e-12
    assert nearest_probabilities(np.array([0.2, -0.1]), exhaustive=False).tolist() == [0.2, 0]
    assert nearest_probabilities(np.array([0.9, 0.5]), exhaustive=False).sum() == pytest.approx(1)


def test_independent_shares_are_products() -> None:
    questions = workload_of(CENSUS, ["categorical:2", "tree:2:2"])
    pairs = MST().candidates(questions)
    singles = pairs.select(range(3))
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, size=singles.size).astype(float)
    measured = Measurements(singles, counts, np.ones(3), 100, ("",) * 3, False)
    shares = independent_shares(pairs, measured)
    assert ((shares >= 0) & (shares <= 1)).all()
    both = scopes_of(pairs).index((0, 2))
    found = shares[pairs.offsets[both] : pairs.offsets[both + 1]]
    sex, marital = (shares[pairs.offsets[g] : pairs.offsets[g + 1]] for g in (0, 2))
    np.testing.assert_allclose(found, np.outer(sex, marital).ravel())


def test_a_resumed_run_that_finds_other_cut_points_says_so() -> None:
    """Another version may cut numbers elsewhere, from the same histograms."""
    pairs = MST().candidates(workload_of(CENSUS, ["categorical:2", "tree:2:3"]))
    singles = MST().candidates(workload_of(CENSUS, ["categorical:2", "tree:2:2"])).select(range(3))
    measured = Measurements(singles, np.ones(singles.size), np.ones(3), 100, ("",) * 3, False)
    with pytest.raises(MeasurementError, match=r"other cut points.*version of private-gsd"):
        independent_shares(pairs, measured)
