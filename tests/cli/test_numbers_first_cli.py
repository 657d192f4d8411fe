"""Numbers first by its name, and what a plan says of its histograms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from private_gsd import NumbersFirst, Synthesizer, datasets
from private_gsd.mechanisms.forecast import HEADERS
from private_gsd.runs.release import Release
from tests.cli.running import QUICK, run
from tests.fitting import QUICK as QUICK_PROJECTOR

COMMON = ["table.csv", "--schema", "schema.toml", "--epsilon", "20"]
OWN = ["--mechanism", "numbers-first", "--workload", "tree:2", "--workload", "categorical:1"]
SCHEMA = datasets.census_schema().select(["sex", "age", "marital", "citizen", "tenure"])
TABLE = datasets.census(500).select(SCHEMA.names)


@pytest.mark.parametrize("words", [[], OWN], ids=["by default", "by name"])
def test_a_plan_lists_histograms_with_their_noise(folder: Path, words: list[str]) -> None:
    out, _ = run("plan", *COMMON, *words, "--all", cwd=folder)
    assert "numbers-first" in out.partition("\n")[0]
    [line] = [line for line in out.splitlines() if line.startswith("age (histogram of")]
    out, _ = run("plan", *COMMON, *words, "--json", cwd=folder)
    document = json.loads(out)
    assert document["mechanism"] == "numbers-first"
    [group] = [each for each in document["groups"] if each["name"].startswith("age (histogram")]
    noise = line.split()[-1 - (len(HEADERS) - 1 - HEADERS.index("noise, rows"))]
    assert float(noise) == pytest.approx(group["noise"], rel=1e-3)
    assert group["queries"] == int(group["name"].split()[3])


def test_what_is_planned_for_a_histogram_is_its_noise(folder: Path) -> None:
    """Of a release that the command makes with a workload of one's own."""
    out, _ = run("plan", *COMMON, *OWN, "--json", cwd=folder)
    groups = {each["name"]: each for each in json.loads(out)["groups"]}
    run("synthesize", *COMMON, *QUICK[len(COMMON) :], *OWN, "--release", "made", cwd=folder)
    release = Release.load(folder / "made")
    assert release.settings.mechanism == NumbersFirst()
    measured = release.measurements()
    assert measured is not None
    names = [measured.workload.describe(each) for each in range(measured.workload.num_groups)]
    assert names[0].startswith("age (histogram of")
    assert measured.scales[0] == pytest.approx(groups[names[0]]["noise"], rel=1e-6)
    assert {"sex", "sex x age"} <= set(names)


def test_settings_of_numbers_first_are_for_python(folder: Path) -> None:
    _, err = run("plan", *COMMON, *OWN, "--epochs", "3", cwd=folder, code=8)
    assert "the mechanism 'numbers-first' has no setting 'epochs'" in err
    assert "then, fraction" in err


def test_numbers_first_by_name_with_a_workload_of_ones_own() -> None:
    """The same as the mechanism itself; by default a stated workload has one-shot."""
    fits = [
        Synthesizer(
            SCHEMA,
            20.0,
            mechanism=mechanism,
            workload=["tree:1", "tree:2", "categorical:1"],
            rows=60,
            threads=1,
            projector=QUICK_PROJECTOR,
        ).fit(TABLE, insecure_noise_seed=1)
        for mechanism in ("numbers-first", NumbersFirst(), "auto")
    ]
    named, given, auto = (each.release_ for each in fits)
    assert named.synthetic.equals(given.synthetic)
    assert named.settings.mechanism == given.settings.mechanism == NumbersFirst()
    assert auto.settings.mechanism.name == "one-shot"
    scopes = []
    for release in (named, auto):
        measured = release.measurements()
        assert measured is not None
        families = measured.workload.families
        scopes.append({each.positions for family in families for each in family.marginals})
    # Marginals are those that were asked, but for single numbers, of which histograms say more.
    assert scopes[1] - scopes[0] == {(1,)}
    assert scopes[0] < scopes[1]
