"""The privacy statement: true for (ε, δ), with what it does not cover, and none without noise."""

from __future__ import annotations

from pathlib import Path

import pytest

import private_gsd as gsd
from private_gsd import Knowledge
from private_gsd.evaluation import release_page
from private_gsd.evaluation.report.privacy_statement import privacy_statement
from private_gsd.privacy.record import at_most
from tests.evaluation.tables import SCHEMA, parts, quick

pytestmark = pytest.mark.worker("evaluation")


def test_the_statement_says_what_a_test_can_reach(folder: Path) -> None:
    """The power of tests, for one row and for several, and no probability of δ."""
    record = gsd.Release.load(folder / "release").privacy
    text = privacy_statement(record)
    assert "chance" not in text
    assert "odds" not in text
    assert text.count("<svg ") == 1
    assert "the same ledger has paid for or will pay for, seen together" in text
    for test in record["tests"]:
        assert f"{at_most(100 * test['largest_power'], 3)} %" in text
    for group in record["groups_of_rows"]:
        assert f">{at_most(group['epsilon'], 4)}<" in text
    assert f"epsilon = {record['total']['epsilon']!r}" in text
    assert "accounting: rho spent so far" in text


def test_a_release_that_is_not_private_says_so() -> None:
    synth = quick(SCHEMA.select(["sex"]), rows=50).fit(
        parts(100)[0].select(["sex"]), insecure_noise_seed=0
    )
    text = release_page(synth.release_)
    assert "NOT PRIVATE" in text
    assert "made under differential privacy" not in text
    assert "NO: the noise" in synth.release_._repr_html_()
    assert "recognise" not in text
    assert "epsilon" not in privacy_statement(synth.release_.privacy)


def test_what_the_guarantee_does_not_cover_is_said() -> None:
    external = gsd.Measurements.from_marginals(
        SCHEMA, 100, [(["sex"], [50, 50], 3.0)], private=True
    )
    knowledge = Knowledge(
        public_counts={"sex = 'male'": 40},
        derived_statistics=["median(age)"],
        external_measurements=[external],
    )
    synth = quick(rows=50, knowledge=knowledge).fit(parts(100)[0])
    text = privacy_statement(synth.release_.privacy)
    assert "It does not cover what " in text
    assert "and external measurements, which were used too, disclose" in text
    assert "<caption>Public counts</caption>" in text
    assert (
        "Derived statistics, which follow from the measurements and cost nothing: median(age)"
        in text
    )
    assert "declares them to be private, which nobody has checked" in text
    assert "<td>external measurements</td>" in synth.release_._repr_html_()
    assert "NOT" not in text


def test_bounds_that_protect_nobody_are_called_so() -> None:
    synth = quick(SCHEMA.select(["sex"]), 50.0, rows=50).fit(parts(100)[0].select(["sex"]))
    text = privacy_statement(synth.release_.privacy)
    assert "that is little protection" in text
    assert "It is counted alone" in text
