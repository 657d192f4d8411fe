"""What is known beside the data, from the command line: rules, totals, given columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import Measurements, Release, Schema, datasets
from tests.cli.test_cli import run

pytestmark = pytest.mark.worker("large")

NAMES = ["sex", "age", "marital"]
RULE = "NOT (age < 20 AND marital = 'married')"
ASKED = ["--schema", "schema.toml", "--epsilon", "1", "--rows", "200"]
ASKED += ["--workload", "categorical:2", "--workload", "tree:2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a schema with a rule, totals, evidence, and a release of all of it."""
    folder = tmp_path_factory.mktemp("known")
    columns = datasets.census_schema().select(NAMES).columns
    schema = Schema(columns, [RULE])
    schema.write(folder / "schema.toml")
    Schema(columns, [RULE, "age < 15", "marital = 'married'"]).write(folder / "contrary.toml")
    Schema(columns, ["age < 40"]).write(folder / "young.toml")
    Schema(columns, ["aeg < 3"]).write(folder / "misspelt.toml")
    pyarrow.csv.write_csv(datasets.census(600).select(NAMES), folder / "table.csv")
    (folder / "totals.csv").write_text("condition,count\nsex = 'male',200\n")
    (folder / "bad.csv").write_text("condition,count\nsex = 'male',two\n")
    Measurements.from_marginals(schema, 600, [(["sex"], [400, 200], 3.0)], private=True).save(
        folder / "outside"
    )
    out, _ = run(
        *("synthesize", "table.csv", *ASKED, "--release", "release", "-o", "made.csv"),
        *("--totals", "totals.csv", "--derived", "median(age)", "--evidence", "outside"),
        cwd=folder,
    )
    assert "not covered: counts that are claimed to be public" in out
    assert "not covered: external measurements" in out
    return folder


def test_all_that_is_known_is_used_and_recorded(folder: Path) -> None:
    made = pyarrow.csv.read_csv(folder / "made.csv").to_pandas()
    assert not ((made.age < 20) & (made.marital == "married")).any()
    assert abs((made.sex == "male").mean() - 200 / 600) < 0.02
    claims = Release.load(folder / "release").privacy["claims"]
    assert claims == {
        "public_counts": {"sex = 'male'": 200},
        "external_groups": 1,
        "external_private": True,
        "derived_statistics": ["median(age)"],
    }
    assert json.loads((folder / "release" / "release.json").read_text())["settings"]["totals"]


def test_rows_of_the_data_that_break_a_rule_are_told(folder: Path) -> None:
    _, said = run("schema", "check", "young.toml", "table.csv", cwd=folder)
    assert "rows break the rule 'age < 40'; no synthetic row will" in " ".join(said.split())


def test_rows_by_condition_and_around_given_ones(folder: Path) -> None:
    run("sample", "release", "--where", "age >= 40", "-o", "old.csv", cwd=folder)
    assert min(pyarrow.csv.read_csv(folder / "old.csv")["age"].to_pylist()) >= 40
    (folder / "given.csv").write_text("age,sex\n30,male\n12,female\n")
    run("sample", "release", "--given", "given.csv", "-o", "around.csv", cwd=folder)
    around = pyarrow.csv.read_csv(folder / "around.csv")
    assert around["age"].to_pylist() == [30, 12]
    assert around["marital"].to_pylist()[1] != "married"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["schema", "check", "contrary.toml"], 3, "no row can meet these rules together"),
        (["schema", "check", "misspelt.toml"], 3, "in rule 1 of constraints"),
        (["synthesize", "table.csv", *ASKED, "-o", "x.csv", "--totals", "bad.csv"], 7, "line 2"),
        (["synthesize", "table.csv", *ASKED, "-o", "x.csv", "--totals", "none.csv"], 7, "none.csv"),
        (["synthesize", "table.csv", *ASKED, "-o", "x.csv", "--derived", "mode(age)"], 7, "write"),
        (["synthesize", "table.csv", *ASKED, "-o", "x.csv", "--evidence", "none"], 10, "no such"),
        (["sample", "release", "--where", "aeg > 3", "-o", "x.csv"], 7, "did you mean 'age'"),
        (["sample", "release", "--where", "age > 119", "-o", "x.csv"], 12, "none of the 200"),
        (["sample", "release", "--given", "none.csv", "-o", "x.csv"], 4, "none.csv"),
        (["sample", "release", "--given", "table.csv", "-n", "3", "-o", "x.csv"], 2, "leave the"),
        (["synthesize", "table.csv", *ASKED, "-o", "x.csv", "--projector", "rap"], 7, "no rules"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    folder: Path, words: list[str], code: int, said: str
) -> None:
    _, told = run(*words, cwd=folder, code=code)
    assert said in " ".join(told.split())
    assert not (folder / "x.csv").exists()
