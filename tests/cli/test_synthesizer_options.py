"""Every setting of a synthesizer has an option, and arrives."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from private_gsd import (
    Adaptive,
    Budget,
    JointLast,
    Knowledge,
    Measurements,
    NumbersFirst,
    Synthesizer,
    datasets,
)
from private_gsd.cli.app import loaded
from private_gsd.cli.synthesizer_options import SynthesizerOptions
from private_gsd.errors import BudgetError, expect_type
from private_gsd.mechanisms import MECHANISMS
from private_gsd.workloads import Workload

SCHEMA = datasets.census_schema().select(["sex", "age", "marital"])


def parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "cls"}


def options_of(command: str) -> set[str]:
    return {each.name for each in loaded(command).params}


def settings() -> set[str]:
    """All settings of a synthesizer, of its budget, its mechanism and its knowledge."""
    # Fine histograms come before any mechanism, unless a workload or one-shot is named; the joint
    # table comes after where it is worth it.
    beside = NumbersFirst, JointLast
    mechanisms = [each for each in MECHANISMS.values() if each not in beside]
    parts = [Budget, Knowledge, *mechanisms]
    found = {each.name for part in parts for each in fields(part)}
    return found | parameters(Synthesizer) - {"budget", "knowledge"}


@pytest.mark.parametrize("command", ["plan", "synthesize"])
def test_every_setting_has_an_option(command: str) -> None:
    assert settings() <= options_of(command)


def test_every_parameter_of_a_method_has_an_option() -> None:
    """But progress, which is shown unless --quiet is given."""
    assert parameters(Synthesizer.fit) - {"progress"} <= options_of("synthesize")
    assert parameters(Synthesizer.plan) <= options_of("plan")
    assert parameters(Synthesizer.resume) - {"progress"} <= options_of("resume")
    assert parameters(Synthesizer.sample) - {"n"} <= options_of("sample")
    assert parameters(Synthesizer.sample_given) <= options_of("sample")


def test_every_option_arrives(tmp_path: Path) -> None:
    SCHEMA.write(tmp_path / "schema.toml")
    (tmp_path / "counts.csv").write_text("condition,count\nsex = 'male',200\n")
    marginals = [(["sex"], [400, 200], 3.0)]
    Measurements.from_marginals(SCHEMA, 600, marginals, private=True).save(tmp_path / "external")
    given = SynthesizerOptions(
        schema=tmp_path / "schema.toml",
        epsilon=2.0,
        delta=1e-7,
        neighbours="add-remove",
        conversion="paper",
        workload=["categorical:1", "tree:1"],
        public_counts=tmp_path / "counts.csv",
        derived_statistics=["median(age)"],
        external_measurements=[tmp_path / "external"],
        mechanism="adaptive",
        epochs=4,
        queries_per_epoch=2,
        selection_fraction=0.25,
        projector="gsd:denoise=false",
        rows=300,
        random_state=5,
        threads=1,
    )
    found = given.synthesizer().get_params()
    knowledge = found.pop("knowledge")
    assert knowledge.to_dict() == {
        "public_counts": {"sex = 'male'": 200},
        "derived_statistics": ["median(age)"],
    }
    assert knowledge.external_measurements[0].n_records == 600
    assert found == {
        "schema": SCHEMA,
        "budget": Budget(2.0, 1e-7, "add-remove", "paper"),
        "epsilon": None,
        "workload": ["categorical:1", "tree:1"],
        "mechanism": Adaptive(epochs=4, queries_per_epoch=2, selection_fraction=0.25),
        "projector": "gsd:denoise=false",
        "rows": 300,
        "random_state": 5,
        "threads": 1,
        "for_models": None,
    }


def test_the_column_for_models_arrives(tmp_path: Path) -> None:
    SCHEMA.write(tmp_path / "schema.toml")
    stated = SynthesizerOptions(tmp_path / "schema.toml", 1.0, for_models="age")
    assert stated.synthesizer().for_models == "age"


def test_defaults_are_those_of_python(tmp_path: Path) -> None:
    SCHEMA.write(tmp_path / "schema.toml")
    found = SynthesizerOptions(tmp_path / "schema.toml", 1.0).synthesizer().get_params()
    assert not found.pop("knowledge")
    usual = Synthesizer(SCHEMA, Budget(1.0)).get_params()
    assert found == {name: usual[name] for name in found}


def test_conditions_in_a_file_are_asked_beside_names(tmp_path: Path) -> None:
    (tmp_path / "queries.sql").write_text("age < 18\nage >= 18\n")
    for names, size in ((None, 2), (["categorical:1"], 9)):
        stated = SynthesizerOptions(tmp_path, 1.0, workload=names, queries=tmp_path / "queries.sql")
        target = expect_type(Workload, stated.target(SCHEMA))
        assert (target.size, target.query(size - 1)) == (size, "age >= 18")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mst", "the mechanism 'mst' has no setting 'epochs'; it has no settings"),
        ("auto", "the mechanism 'auto' has no setting 'epochs'; it has no settings"),
        ("adaptiv", r"did you mean 'adaptive'\?"),
    ],
)
def test_settings_that_a_mechanism_does_not_have(tmp_path: Path, name: str, message: str) -> None:
    SCHEMA.write(tmp_path / "schema.toml")
    stated = SynthesizerOptions(tmp_path / "schema.toml", 1.0, mechanism=name, epochs=3)
    with pytest.raises(BudgetError, match=message):
        stated.synthesizer()
