"""``evaluate`` and ``report``: what they write, what they say, and what they refuse."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import datasets
from tests.cli.running import run

NAMES = ["sex", "age", "marital", "citizen", "tenure"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, the table it was made from, and rows that were held out."""
    folder = tmp_path_factory.mktemp("evaluate")
    schema = datasets.census_schema().select(NAMES)
    schema.write(folder / "schema.toml")
    table = datasets.census(1000).select(NAMES)
    pyarrow.csv.write_csv(table.slice(0, 500), folder / "table.csv")
    pyarrow.csv.write_csv(table.slice(500), folder / "held.csv")
    options = ["--schema", "schema.toml", "--epsilon", "1", "--rows", "200"]
    run("synthesize", "table.csv", *options, "--release", "release", "-o", "made.csv", cwd=folder)
    return folder


def test_evaluate(folder: Path) -> None:
    out, _ = run(
        *("evaluate", "release", "--data", "table.csv", "--holdout", "held.csv"),
        *("--target", "citizen", "-o", "report.html", "--json", "report.json"),
        cwd=folder,
    )
    assert "NOT FOR PUBLICATION" in out
    assert "F1 of predicting citizen" in out
    assert "2-marginal score" in out
    text = (folder / "report.html").read_text()
    assert "NOT FOR PUBLICATION" in text
    document = json.loads((folder / "report.json").read_text())
    assert document["publishable"] is False
    assert document["tables"]["held"] == 500
    assert [task["target"] for task in document["tasks"]] == ["citizen"]


def test_evaluate_a_table_that_is_no_release(folder: Path) -> None:
    table = ("evaluate", "made.csv", "--data", "table.csv", "--target", "sex", "-o", "made.html")
    _, error = run(*table, cwd=folder, code=2)
    assert "give its --schema" in error
    out, _ = run(*table, "--schema", "schema.toml", "--quiet", cwd=folder)
    assert out == ""
    assert "none of these answers was measured" in (folder / "made.html").read_text()


def test_report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("sklearn", "scipy"):  # a report needs no extra
        monkeypatch.setitem(sys.modules, module, None)
    (folder / "table.csv").rename(folder / "away.csv")
    (folder / "release.ledger.db").rename(folder / "away.db")
    try:
        out, _ = run("report", "release", "-o", "release.html", cwd=folder)
    finally:
        (folder / "away.csv").rename(folder / "table.csv")
        (folder / "away.db").rename(folder / "release.ledger.db")
    assert "release.html" in out
    assert "made under differential privacy" in (folder / "release.html").read_text()
    _, error = run("report", "release", "-o", "release.html", cwd=folder, code=1)
    assert "--force" in error


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-o", "release/report.html"], 1, "is the release, or in it"),
        (["-o", "x.html", "--json", "release/all.json"], 1, "is the release, or in it"),
        (["-o", "report.txt"], 1, "must end in .html"),
        (["-o", "x.html", "--json", "x.txt"], 1, "must end in .json"),
        (["-o", "nowhere/x.html"], 1, "no folder"),
        (["-o", "x.html", "--target", "citzen"], 3, "did you mean 'citizen'"),
        (["-o", "x.html", "--holdout", "nowhere.csv"], 4, "nowhere.csv"),
    ],
)
def test_mistakes(folder: Path, options: list[str], code: int, words: str) -> None:
    _, error = run("evaluate", "release", "--data", "table.csv", *options, cwd=folder, code=code)
    assert words in error
    assert not (folder / "x.html").exists()
