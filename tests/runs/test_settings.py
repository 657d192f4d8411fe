"""The settings of a run, as they are saved in a release."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from private_gsd import (
    Adaptive,
    Budget,
    GeneticSearch,
    GsdError,
    Knowledge,
    Layered,
    ReleaseError,
    SchemaError,
)
from private_gsd.mechanisms.registry import MECHANISMS
from private_gsd.privacy.budget import RhoBudget
from private_gsd.projection import projector_of
from private_gsd.projection.projectors import NAMES
from private_gsd.runs.settings import RunSettings, check_dataset

SETTINGS = RunSettings(
    budget=Budget(1.0, 1e-6, "add-remove", "zcdp"),
    mechanism=Adaptive(epochs=3),
    projector=GeneticSearch(denoise=False),
    knowledge=Knowledge(public_counts={"sex = 'F'": 12}, derived_statistics=["median(age)"]),
    rows=70,
    random_state=4,
    dataset="people",
    on_invalid="coerce",
    insecure_noise_seed=9,
)


def again(settings: RunSettings) -> RunSettings:
    return RunSettings.from_dict(json.loads(json.dumps(settings.to_dict())), None)


def test_they_are_read_as_they_were_written() -> None:
    """Knowledge has no equality: it is compared as it is written."""
    found = again(SETTINGS)
    assert found.to_dict() == SETTINGS.to_dict()
    assert replace(found, knowledge=SETTINGS.knowledge) == SETTINGS


@pytest.mark.parametrize("name", [*MECHANISMS])
def test_every_mechanism(name: str) -> None:
    assert again(replace(SETTINGS, mechanism=MECHANISMS[name]())).mechanism == MECHANISMS[name]()


@pytest.mark.parametrize("name", NAMES)
def test_every_projector(name: str) -> None:
    settings = replace(SETTINGS, projector=projector_of(name))
    assert again(settings).projector == projector_of(name)


def test_the_budget_is_in_units() -> None:
    assert SETTINGS.rho == RhoBudget.from_epsilon(1.0, 1e-6, "zcdp")
    with pytest.raises(ReleaseError, match="has its conversion"):
        _ = replace(SETTINGS, budget=Budget(1.0, 1e-6)).rho


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": {"epsilon": -1}}, "epsilon"),
        ({"budget": None}, ""),
        ({"mechanism": {"name": "magic"}}, "magic"),
        ({"mechanism": {"name": "adaptive"}}, "the settings of adaptive are"),
        ({"mechanism": {**Layered().to_dict(), "epochs": 3}}, "the settings of layered are"),
        ({"projector": {"name": "rop"}}, "rop"),
        ({"projector": {"name": "gsd", "colour": 1}}, "colour"),
        ({"knowledge": {"public_counts": 3}}, ""),
        ({"rows": 0}, "rows"),
        ({"rows": "70"}, "rows"),
        ({"random_state": -1}, "random_state"),
        ({"random_state": 2**31}, "random_state"),
        ({"dataset": "two\nlines"}, "dataset"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"insecure_noise_seed": True}, "insecure_noise_seed"),
        ({"insecure_noise_seed": 2**70}, "insecure_noise_seed"),
    ],
)
def test_what_is_damaged_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ReleaseError, match=rf"release.json is damaged: .*{words}"):
        RunSettings.from_dict({**SETTINGS.to_dict(), **change}, None)


@pytest.mark.parametrize("name", list(SETTINGS.to_dict()))
def test_what_is_missing_is_named(name: str) -> None:
    saved = {key: value for key, value in SETTINGS.to_dict().items() if key != name}
    with pytest.raises(ReleaseError, match=rf"release.json is damaged: no '{name}'"):
        RunSettings.from_dict(saved, None)


def test_what_fit_is_given_is_checked() -> None:
    check_dataset("table", "error", None)
    with pytest.raises(GsdError, match="dataset"):
        check_dataset("", "error", None)
    with pytest.raises(SchemaError, match="on_invalid must be 'error' or 'coerce', not 'drop'"):
        check_dataset("table", "drop", None)
    with pytest.raises(GsdError, match="insecure_noise_seed"):
        check_dataset("table", "error", "1")
