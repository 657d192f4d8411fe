"""Knowledge: all that is known beside the measurements of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from private_gsd import (
    Categorical,
    Integer,
    Knowledge,
    Measurements,
    Real,
    Release,
    Schema,
    Synthesizer,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count, exact_counts
from private_gsd.errors import GsdError, MeasurementError
from private_gsd.measurements.knowledge import resized
from tests.fitting import QUICK, fitted
from tests.measurements.census import COUNTS, DATA, SCHEMA, measured, share
from tests.releases import reopen

pytestmark = pytest.mark.worker("large")


def test_external_measurements_count_by_their_variance(tmp_path: Path) -> None:
    """A sharp measurement made elsewhere mends what little budget leaves of our own."""
    exact = exact_counts(workloads.categorical_marginals(SCHEMA, sets=[["sex", "marital"]]), DATA)
    external = Measurements.from_marginals(
        SCHEMA, 12_000, [(["sex", "marital"], exact.counts * 2.0, 4.0)], private=True
    )
    external.save(tmp_path / "elsewhere")
    settings: dict[str, Any] = {"workload": ["categorical:2"], "projector": QUICK}
    errors = []
    for number, given in enumerate(([], [Measurements.load(tmp_path / "elsewhere")])):
        synth = fitted(
            SCHEMA,
            0.05,
            DATA,
            knowledge=Knowledge(external_measurements=given),
            release=tmp_path / f"r{number}",
            insecure_noise_seed=2,
            **settings,
        )
        found = count(exact.workload, synth.release_.matrix) / len(synth.release_.matrix)
        errors.append(np.abs(found - exact.counts / 6000).max())
    assert errors[1] < 0.002 < errors[0]
    release = Release.load(tmp_path / "r1")
    assert release.privacy["claims"]["external_groups"] == 1
    copy = release.save(tmp_path / "copy")
    assert (copy.folder / "external" / "measurements.json").exists()
    saved = copy.external()
    assert saved is not None
    np.testing.assert_array_equal(saved.counts, external.counts)


def test_a_run_with_knowledge_resumes_to_the_same_table(tmp_path: Path) -> None:
    exact = exact_counts(workloads.categorical_marginals(SCHEMA, 1), DATA)
    groups = exact.workload.num_groups
    external = Measurements(
        exact.workload, exact.counts.astype(np.float64), np.ones(groups), 6000, ("",) * groups, True
    )
    release = tmp_path / "r"
    synth = Synthesizer(
        SCHEMA,
        0.3,
        projector=QUICK,
        workload=["categorical:2", "tree:1"],
        knowledge=Knowledge(
            external_measurements=[external],
            public_counts=COUNTS,
            derived_statistics=["median(age)"],
        ),
    ).fit(DATA, release=release, insecure_noise_seed=4)
    before = synth.sample()
    for name in ("synthetic.parquet", "table-0.npy"):
        (release / name).unlink()
    reopen(release)
    assert Synthesizer.resume(release).sample().equals(before)
    (release / "external" / "measurements.json").write_text("{}")
    (release / "synthetic.parquet").unlink()
    with pytest.raises(GsdError, match="was changed or is torn"):
        Synthesizer.resume(release)


def test_external_measurements_of_other_columns_are_refused() -> None:
    other = Measurements.from_marginals(
        datasets.census_schema().select(["sex"]), 100, [(["sex"], [50, 50], 1.0)], private=True
    )
    with pytest.raises(MeasurementError, match="about the columns of the schema"):
        Synthesizer(
            SCHEMA, 1.0, projector=QUICK, knowledge=Knowledge(external_measurements=[other])
        ).fit(DATA)
    with pytest.raises(MeasurementError, match="is a list of Measurements, and one is str"):
        Knowledge(external_measurements=["folder"])  # type: ignore[list-item]


def test_resizing_keeps_shares_and_their_noise() -> None:
    one = measured(workloads.categorical_marginals(SCHEMA, 1))
    other = resized(one, 123_456)
    np.testing.assert_allclose(other.shares, one.shares)
    np.testing.assert_allclose(other.variances, one.variances)


def test_nothing_beside_our_own_changes_nothing() -> None:
    one = measured(workloads.categorical_marginals(SCHEMA, 1))
    assert Knowledge().of(SCHEMA).supplement(one) is one


@pytest.mark.slow
def test_rules_and_all_knowledge_go_together() -> None:
    schema = Schema(SCHEMA.columns, ["NOT (age < 15 AND marital = 'married')"])
    synth = Synthesizer(
        schema,
        1.0,
        projector=QUICK,
        workload=["categorical:2", "tree:2"],
        knowledge=Knowledge(
            public_counts={"marital = 'single'": 2500}, derived_statistics=["mean(age)"]
        ),
    ).fit(DATA, insecure_noise_seed=1)
    assert share(synth.sample(), "age < 15 AND marital = 'married'") == 0
    assert abs(share(synth.sample(), "marital = 'single'") - 2500 / 6000) < 0.002


def test_claims_that_were_changed_are_noticed(tmp_path: Path) -> None:
    synth = Synthesizer(
        SCHEMA,
        0.3,
        projector=QUICK,
        workload=["categorical:1"],
        knowledge=Knowledge(public_counts=COUNTS),
    ).fit(DATA, release=tmp_path / "r", insecure_noise_seed=4)
    assert synth.release_.finished
    path = tmp_path / "r" / "release.json"
    reopen(tmp_path / "r")
    text = path.read_text()
    condition = next(iter(COUNTS))
    assert condition in text
    path.write_text(text.replace(f": {COUNTS[condition]}", f": {COUNTS[condition] + 1}"))
    with pytest.raises(GsdError, match="was changed or is torn"):
        Synthesizer.resume(tmp_path / "r")


@pytest.mark.slow
def test_external_measurements_of_a_default_release() -> None:
    """Its histograms become marginals: two runs' levels do not refine one another."""
    schema = Schema(
        [
            Integer("a", lower=0, upper=100),
            Real("b", lower=0, upper=1e5, nullable=True),
            Categorical("c", values=["x", "y"]),
        ]
    )
    rng = np.random.default_rng(0)
    rows = rng.gamma(2, 1e4, 5000).clip(0, 1e5)
    table = pa.table(
        {
            "a": rng.integers(0, 50, 5000),
            "b": pa.array(rows, mask=rng.random(5000) < 0.1),
            "c": rng.choice(["x", "y"], 5000),
        }
    )
    # Graphical models fit a joint table of all columns badly, and are given none.
    for projector, mechanism in (("gsd", "auto"), ("pgm", "numbers-first")):
        first = Synthesizer(schema, 3.0, rows=500, mechanism=mechanism)
        measured = first.fit(table, insecure_noise_seed=1).release_.measurements()
        assert measured is not None
        assert any(family.fine for family in measured.workload.families)
        knowledge = Knowledge(external_measurements=[measured])
        known = knowledge.of(schema).external
        assert known is not None
        assert not any(family.fine for family in known.workload.families)
        made = Synthesizer(schema, 0.05, rows=500, knowledge=knowledge, projector=projector)
        found = made.fit(table, insecure_noise_seed=2).sample().to_pandas()
        assert found.b.mean() == pytest.approx(rows.mean(), rel=0.15)
        assert found.b.isna().mean() == pytest.approx(0.1, abs=0.02)
        assert (found.a > 60).mean() < 0.06
