"""A column that models will predict: who gets what, what is refused, and that models gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from private_gsd import (
    Adaptive,
    Categorical,
    GeneticSearch,
    NumbersFirst,
    Schema,
    Synthesizer,
    datasets,
    evolve,
)
from private_gsd.errors import BudgetError, GsdError, ProjectionError, WorkloadError
from private_gsd.mechanisms import Layered, OneShot, Task
from private_gsd.mechanisms.base import noise_scales
from private_gsd.mechanisms.one_shot import with_column
from private_gsd.mechanisms.registry import mechanism_for_models, mechanism_from_dict
from private_gsd.privacy.budget import RhoBudget
from private_gsd.runs.release import Release
from private_gsd.workloads import Neighbours
from private_gsd.workloads.specs import workload_of
from tests.fitting import QUICK
from tests.projection.denoising.test_latent_classes import measured_with

NAMES = ["sex", "age", "marital", "citizen", "tenure", "income"]
SCHEMA = datasets.census_schema().select(NAMES)
TABLE = datasets.census(600, seed=2).select(NAMES)
BUDGET = RhoBudget.from_epsilon(1.0, 1e-6)
RELATIONS: tuple[Neighbours, ...] = ("replace-one", "add-remove")


@pytest.mark.parametrize("specs", [["categorical:2"], ["tree:2", "prefix:10"], ["categorical:3"]])
@pytest.mark.parametrize("neighbours", RELATIONS)
def test_all_others_have_half_and_the_column_has_the_rest(
    specs: list[str], neighbours: Neighbours
) -> None:
    """In each layer: and less noise than all others, also where nearly all groups have it."""
    target = workload_of(SCHEMA, specs)
    even, favouring = Layered(), Layered(for_models="marital" if specs[0][0] == "c" else "income")
    measured = even.candidates(target)
    task = Task(measured, target, BUDGET, neighbours)
    before, after = (np.array(each.plan(task).units) for each in (even, favouring))
    assert after.sum() == pytest.approx(before.sum(), rel=1e-12)
    mine = with_column(measured, str(favouring.for_models))
    upper = np.array([measured.describe(g).count(" x ") > 1 for g in range(measured.num_groups)])
    noise = noise_scales(task, after.tolist()) / measured.max_contributions
    layers = [layer for layer in (upper, ~upper) if (layer & mine).any()]
    assert len(layers) == 1 + (specs == ["categorical:3"])
    for layer in layers:
        assert after[layer & ~mine] == pytest.approx(before[layer & ~mine] / 2, rel=1e-6)
        assert after[layer].sum() == pytest.approx(before[layer].sum(), rel=1e-6)
        assert noise[layer & mine].max() < 0.75 * noise[layer & ~mine].min()


def test_single_columns_are_not_favoured() -> None:
    workload = workload_of(SCHEMA, ["categorical:1", "categorical:2"])
    names = [workload.describe(group) for group in range(workload.num_groups)]
    expected = [" x " in name and "sex" in name for name in names]
    assert with_column(workload, "sex").tolist() == expected


def test_settings_survive_json_and_those_of_older_releases_are_read() -> None:
    for mechanism in (OneShot(), Layered(for_models="age"), NumbersFirst(OneShot("sex"), 0.25)):
        assert mechanism_from_dict(mechanism.to_dict()) == mechanism
    assert OneShot().to_dict() == {"name": "one-shot"}
    assert "for_models" not in GeneticSearch().to_dict()
    assert GeneticSearch(for_models="age").to_dict()["for_models"] == "age"
    for document in ({"name": "one-shot", "epochs": 3}, {"name": "adaptive"}):
        with pytest.raises(BudgetError, match="the settings of"):
            mechanism_from_dict(document)


def test_a_mechanism_favours_one_column_or_none() -> None:
    assert mechanism_for_models(NumbersFirst(), "age") == NumbersFirst(OneShot("age"))
    assert mechanism_for_models(OneShot("age"), "age") == OneShot("age")
    other: Any
    for other in (OneShot("sex"), Adaptive(), NumbersFirst(Adaptive())):
        with pytest.raises(BudgetError, match="for_models is a setting of one-shot and layered"):
            mechanism_for_models(other, "age")
    wrong: Any = 3
    for kind in (OneShot, GeneticSearch):
        with pytest.raises(GsdError, match="for_models is the name of a column, not 3"):
            kind(for_models=wrong)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"for_models": "incme"}, r"has no 'incme' \(did you mean 'income'\?\); it has sex, age"),
        ({"for_models": 3, "projector": "rap"}, "the schema has no 3; it has sex"),
        ({"for_models": "age", "mechanism": "mst"}, "not of MST()"),
        ({"for_models": "age", "workload": "categorical:2"}, "the workload has none; add"),
    ],
)
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(GsdError, match=message.replace("()", r"\(\)")):
        Synthesizer(SCHEMA, 1.0, **settings)


def test_a_search_refuses_a_column_that_is_not_there() -> None:
    workload = workload_of(SCHEMA, ["categorical:2"])
    measured = measured_with(workload, np.zeros((10, len(SCHEMA))), 0.1, 0)
    with pytest.raises(ProjectionError, match=r"no column 'six' \(did you mean 'sex'\?\); it has"):
        evolve(measured, GeneticSearch(rows=10, for_models="six"))


def test_a_release_has_the_column_in_its_settings_and_in_its_plan() -> None:
    synth = Synthesizer(SCHEMA, 1.0, rows=60, projector=QUICK, for_models="tenure")
    plan = synth.plan(TABLE)
    assert plan.mechanism.emphasis.startswith("marginals with tenure get half of what all others")
    assert Synthesizer(SCHEMA, 1.0).plan(TABLE).mechanism.emphasis == ""
    settings = synth.fit(TABLE, insecure_noise_seed=1).release_.settings
    assert settings.mechanism == plan.mechanism == NumbersFirst(OneShot("tenure"))
    assert settings.projector.to_dict()["for_models"] == "tenure"
    assert Release(synth.release_.folder).settings == settings


def test_pairs_are_measured_though_noise_or_columns_are_many() -> None:
    """Of few records and many columns; what cannot be measured is refused."""
    few = Synthesizer(SCHEMA, 0.1, for_models="sex").plan(expected_records=100)
    assert with_column(few.workload, "sex").any()
    assert not with_column(
        Synthesizer(SCHEMA, 0.1).plan(expected_records=100).workload, "sex"
    ).any()
    columns = [Categorical(f"c{number}", values=["a", "b"]) for number in range(102)]
    wide = Schema(columns[:40])
    assert Synthesizer(wide, 0.2).plan(expected_records=500).mechanism.name == "strongest-pairs"
    found = Synthesizer(wide, 0.2, for_models="c1").plan(expected_records=500)
    assert found.mechanism == OneShot("c1")
    with pytest.raises(WorkloadError, match="measures all pairs of columns, and this schema has"):
        Synthesizer(Schema(columns), 1.0, for_models="c1").plan(expected_records=500)


def test_weak_dependences_on_the_column_are_kept() -> None:
    """A column that depends a little on seven others, under noise that hides each of them.

    The energy of its dependence is nearer to the true one than that which denoising alone leaves.
    """
    rng = np.random.default_rng(4)
    table = rng.integers(0, 3, (6000, 8)).astype(np.float64)
    follows = rng.random(6000) < 0.7
    chosen = rng.integers(1, 8, 6000)
    table[follows, 0] = table[follows, chosen[follows]]
    schema = Schema([Categorical(f"n{place}", values=[0, 1, 2]) for place in range(8)])
    workload = workload_of(schema, ["categorical:2"])
    measured = measured_with(workload, table, 0.03, 7)

    def energy(rows: np.ndarray[Any, np.dtype[np.float64]]) -> float:
        return float(sum(np.corrcoef(rows[:, 0], rows[:, k])[0, 1] ** 2 for k in range(1, 8)))

    made = {
        name: energy(evolve(measured, GeneticSearch(rows=3000, for_models=name)).matrix)
        for name in (None, "n0")
    }
    assert made[None] < made["n0"] < 1.5 * energy(table)
