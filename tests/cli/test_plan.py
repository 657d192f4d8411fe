"""``private-gsd plan``: what it shows, and that it spends and discloses nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.cli.running import COMMON, run


def test_plan_spends_nothing(folder: Path) -> None:
    out, _ = run("plan", *COMMON, cwd=folder)
    assert "500 records" in out
    assert "Nothing was spent." in out
    out, _ = run("plan", *COMMON, "--json", cwd=folder)
    document = json.loads(out)
    assert document["n_records"] == 500
    assert document["epsilon"] == pytest.approx(1)
    adaptive = ("--mechanism", "adaptive", "--epochs", "4", "--queries-per-epoch", "2")
    out, _ = run("plan", *COMMON, *adaptive, cwd=folder)
    assert "4 epochs of 2, selected by their error" in out
    assert "Each group, if it is selected:" in out
    out, _ = run("plan", *COMMON, "--mechanism", "strongest-pairs", cwd=folder)
    assert "10 of 10 pairs" in out
    assert "What is measured in any case:" in out
    assert sorted(path.name for path in folder.iterdir()) == [
        "schema.toml",
        "table.csv",
        "there.csv",
    ]


def test_plan_shows_every_group_on_request(folder: Path) -> None:
    wide = ["--workload", "categorical:2", "--workload", "categorical:3", "--workload", "tree:2"]
    out, _ = run("plan", *COMMON, *wide, cwd=folder)
    assert "mean error" in out
    assert "... and 2 more (--all shows them)" in out
    out, _ = run("plan", *COMMON, *wide, "--all", cwd=folder)
    assert "more (--all" not in out
    assert out.count(" x ") == 18  # ten pairs, four triples
    unknown = ("--neighbours", "add-remove", "--expected-records", "450")
    out, _ = run("plan", *COMMON, *unknown, "--delta", "1e-6", cwd=folder)
    assert "the number of records gets noise of" in out
    _, err = run("plan", *COMMON, *unknown, cwd=folder, code=8)
    assert "give a delta" in err


def test_a_plan_under_add_remove_does_not_look_at_the_data(folder: Path) -> None:
    """The number of records is private there: a public guess takes its place."""
    unknown = ("--neighbours", "add-remove", "--delta", "1e-6")
    _, err = run("plan", *COMMON, *unknown, cwd=folder, code=8)
    assert "give a public guess instead: --expected-records N" in err
    assert "500" not in err
    guess = (*unknown, "--expected-records", "450", "--all")
    with_data, _ = run("plan", *COMMON, *guess, cwd=folder)
    assert with_data.startswith("about 450 records")
    (folder / "table.csv").unlink()
    assert run("plan", *COMMON, *guess, cwd=folder)[0] == with_data
    assert run("plan", *COMMON[1:], *guess, cwd=folder)[0] == with_data
    public, _ = run("plan", *COMMON[1:], "--expected-records", "450", "--json", cwd=folder)
    assert json.loads(public)["n_records_is_a_guess"] is True
    _, err = run("plan", *COMMON[1:], cwd=folder, code=4)
    assert "a plan needs the table, for its number of records, or --expected-records N" in err


def test_a_plan_takes_the_terms_of_a_ledger(folder: Path) -> None:
    terms = ("--dataset", "table", "--epsilon", "2", "--delta", "1e-7")
    run("ledger", "create", "ledger.db", *terms, cwd=folder)
    out, _ = run("plan", *COMMON, "--ledger", "ledger.db", "--json", cwd=folder)
    assert json.loads(out)["delta"] == 1e-7
    _, err = run("plan", *COMMON, "--ledger", "ledger.db", "--dataset", "x", cwd=folder, code=9)
    assert "no dataset 'x'" in err


def test_a_plan_tells_a_mechanism_and_a_projector_what_they_cannot_do(folder: Path) -> None:
    pairs = (*COMMON, "--workload", "categorical:2")
    out, _ = run("plan", *pairs, "--mechanism", "mst", cwd=folder)
    assert "a tree of pairs that is selected" in out
    out, _ = run("plan", *pairs, "--mechanism", "aim", "--json", cwd=folder)
    assert json.loads(out)["mechanism"] == "aim"
    _, err = run("plan", *pairs, "--projector", "pgm:cells=20", cwd=folder, code=7)
    assert "more than the 20 allowed" in err
    _, err = run("plan", *pairs, "--mechanism", "mst", "--epochs", "3", cwd=folder, code=8)
    assert "the mechanism 'mst' has no setting 'epochs'; it has no settings" in err
    _, err = run("plan", *pairs, "--public-counts", "none.csv", cwd=folder, code=7)
    assert "none.csv" in err


def test_a_flipped_bit_of_a_zipped_table(folder: Path) -> None:
    zipped = bytearray(gzip.compress((folder / "table.csv").read_bytes()))
    zipped[-6] ^= 1
    (folder / "table.csv.gz").write_bytes(zipped)
    _, err = run("plan", "table.csv.gz", *COMMON[1:], cwd=folder, code=4)
    assert "table.csv.gz: not a gzip file, or a damaged one: " in err


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            'kind = "date"\nlower = 1900-01-01\nupper = 2020-12-31\nformat = "%Y%Y"',
            "column 'x': format '%Y%Y' says the year twice",
        ),
        (
            f'kind = "integer"\nlower = -{"9" * 5000}\nupper = 9',
            "a number has too many digits",
        ),
    ],
    ids=["format", "digits"],
)
def test_schemas_that_make_no_sense(folder: Path, column: str, message: str) -> None:
    (folder / "schema.toml").write_text(f"[columns.x]\n{column}\n")
    _, err = run("plan", *COMMON, cwd=folder, code=3)
    assert f"schema.toml: {message}" in err
