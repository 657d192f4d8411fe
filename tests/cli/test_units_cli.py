"""Units of protection on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import Ledger, Release, Unit
from tests.cli.running import QUICK_SEARCH, run
from tests.counting.visits import schema, visits

COMMON = ["visits.csv", "--schema", "schema.toml", "--epsilon", "1"]
UNIT = ["--unit", "patient", "--at-most", "3"]
QUICK = ["--rows", "50", *QUICK_SEARCH]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(visits(200), tmp_path / "visits.csv")
    schema().with_unit(None).write(tmp_path / "schema.toml")
    return tmp_path


def test_the_whole_job(place: Path) -> None:
    terms = ["--dataset", "visits", "--epsilon", "2", "--delta", "1e-6", "--unit", "patient"]
    out, _ = run("ledger", "create", "ledger.db", *terms, cwd=place)
    assert "at delta 1e-06, replace-one of units by 'patient': rho" in out
    out, _ = run("plan", *COMMON, *UNIT, "--ledger", "ledger.db", cwd=place)
    assert "200 units, " in out
    unit = "all rows with the same 'patient', of which at most 3 are taken; each unit counts one"
    assert f"the unit of protection is {unit}" in out
    words = ["-o", "out.csv", "--release", "release", "--ledger", "ledger.db"]
    out, _ = run("synthesize", *COMMON, *UNIT, *QUICK, *words, cwd=place)
    assert "replace-one neighbours, all records with the same 'patient'" in out
    assert Release.load(place / "release").schema.unit == Unit("patient", 3)
    out, _ = run("ledger", "show", "ledger.db", cwd=place)
    assert "by 'patient'" in " ".join(out.split())
    with Ledger(place / "ledger.db", read_only=True) as ledger:
        assert ledger.account("visits").unit == "patient"
    again = ["-o", "two.csv", "--ledger", "ledger.db"]
    _, error = run("synthesize", *COMMON, *again, cwd=place, code=9)
    assert "protects all records with the same 'patient'" in error


def test_options_go_before_the_schema(place: Path) -> None:
    schema(5).write(place / "schema.toml")
    out, _ = run("plan", *COMMON, "--json", cwd=place)
    assert json.loads(out)["unit"] == "patient"
    guess = ["--expected-records", "500", "--delta", "1e-6"]
    out, _ = run("plan", *COMMON, "--weighting", "rows", "--at-most", "2", *guess, cwd=place)
    assert "of which at most 2 are taken; each of them counts one" in out
    assert "the number of rows that are taken of units gets noise of" in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--at-most", "3"], 3, "--at-most goes with a unit of protection: name the column"),
        (["--weighting", "rows"], 3, "--weighting goes with a unit of protection"),
        (["--unit", "patient"], 3, "unit: at_most missing"),
        (["--unit", "patient", "--at-most", "0"], 3, "a whole number from 1 to 1,000, not 0"),
        (["--unit", "ward", "--at-most", "3"], 3, "'ward' names the unit of protection, and"),
        (["--unit", "person", "--at-most", "3"], 4, "missing column 'person'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    place: Path, words: list[str], code: int, message: str
) -> None:
    _, error = run("plan", *COMMON, *words, cwd=place, code=code)
    assert message in " ".join(error.split())


def test_a_schema_is_checked_with_its_unit(place: Path) -> None:
    schema().write(place / "schema.toml")
    out, _ = run("schema", "check", "schema.toml", cwd=place)
    assert "the unit of protection is all rows with the same 'patient'" in " ".join(out.split())
    out, _ = run("schema", "check", "schema.toml", "visits.csv", cwd=place)
    assert "rows fit the schema, 200 units, of whose rows" in out
    text = (place / "visits.csv").read_text().splitlines()
    age, _, ward = text[1].split(",")
    (place / "visits.csv").write_text("\n".join([text[0], f"{age},,{ward}", *text[2:]]))
    _, error = run("schema", "check", "schema.toml", "visits.csv", cwd=place, code=5)
    assert "is null in 1 row; remove them" in " ".join(error.split())
