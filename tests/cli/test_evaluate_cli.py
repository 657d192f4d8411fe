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
    options += ["--projector", "gsd:denoise=false"]
    run("synthesize", "table.csv", *options, "--release", "release", "-o", "made.csv", cwd=folder)
    return folder


def test_evaluate(folder: Path) -> None:
    out, _ = run(
        *("evaluate", "release", "table.csv", "--holdout", "held.csv"),
        *("--target", "citizen", "-o", "report.html"),
        cwd=folder,
    )
    assert "NOT FOR PUBLICATION" in out
    assert "macro F1, logistic regression: citizen" in out
    assert "2-marginal score" in out
    assert "evaluation report (confidential): report.html" in out
    assert "NOT FOR PUBLICATION" in (folder / "report.html").read_text()


def test_json_is_printed_or_written(folder: Path) -> None:
    command = ("evaluate", "release", "table.csv", "--target", "citizen", "--json", "--quiet")
    printed = json.loads(run(*command, cwd=folder)[0])
    assert printed["publishable"] is False
    assert printed["tables"]["holdout"] is None
    assert [task["target"] for task in printed["tasks"]] == ["citizen"]
    # Beside a page the document is printed; a file that ends in .json gets it.
    again, _ = run(*command, "-o", "both.html", cwd=folder)
    assert json.loads(again) == printed
    assert "<h1>" in (folder / "both.html").read_text()
    out, _ = run(*command, "-o", "figures.json", cwd=folder)
    assert out == ""
    assert json.loads((folder / "figures.json").read_text()) == printed


def test_without_a_file_the_summary_is_printed(folder: Path) -> None:
    out, _ = run("evaluate", "release", "table.csv", "--target", "citizen", cwd=folder)
    assert "mean query error" in out
    assert "evaluation report" not in out


def test_evaluate_a_table_that_is_no_release(folder: Path) -> None:
    table = ("evaluate", "made.csv", "table.csv", "--target", "sex", "-o", "made.html")
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
        printed, _ = run("report", "release", "--json", cwd=folder)
        quiet, _ = run("report", "release", "-o", "quiet.html", "--quiet", cwd=folder)
        run("report", "release", "--json", "-o", "report.json", cwd=folder)
    finally:
        (folder / "away.csv").rename(folder / "table.csv")
        (folder / "away.db").rename(folder / "release.ledger.db")
    assert "release report: release.html" in out
    assert quiet == ""
    assert "made under differential privacy" in (folder / "release.html").read_text()
    document = json.loads(printed)
    assert document["settings"]["rows"] == 200
    assert document["privacy"]["private"] is True
    assert json.loads((folder / "report.json").read_text()) == document
    _, error = run("report", "release", "-o", "release.html", cwd=folder, code=1)
    assert "--force" in error
    _, error = run("report", "release", cwd=folder, code=2)
    assert "name an --output file, or add --json" in error


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-o", "release/report.html"], 1, "is the release, or in it"),
        (["-o", "release/all.json", "--json"], 1, "is the release, or in it"),
        (["-o", "report.txt"], 1, "must end in .html"),
        (["-o", "report.json"], 1, "must end in .html"),
        (["-o", "x.txt", "--json"], 1, "must end in .html or .json"),
        (["-o", "nowhere/x.html"], 1, "no folder"),
        (["-o", "x.html", "--target", "citzen"], 3, "did you mean 'citizen'"),
        (["-o", "x.html", "--holdout", "nowhere.csv"], 4, "nowhere.csv"),
    ],
)
def test_mistakes(folder: Path, options: list[str], code: int, words: str) -> None:
    _, error = run("evaluate", "release", "table.csv", *options, cwd=folder, code=code)
    assert words in error
    assert not (folder / "x.html").exists()
