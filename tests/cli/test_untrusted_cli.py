"""The command line and what it is given: odd numbers, odd names, damaged releases; no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

from private_gsd import Release, Synthesizer, datasets
from tests.cli.test_cli import run

SCHEMA = datasets.census_schema().select(["sex", "age", "marital"])
TABLE = datasets.census(300, seed=1).select(SCHEMA.names)
ASKED = ["synthesize", "table.csv", "--schema", "schema.toml", "--epsilon", "1"]
LONG = "9" * 5000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("untrusted")
    SCHEMA.write(folder / "schema.toml")
    pyarrow.csv.write_csv(TABLE, folder / "table.csv")
    (folder / "queries.sql").write_text("age < 30\nage < 1e\n")
    (folder / "totals.csv").write_text("condition,count\nage < 1e,3\n")
    contrary = "condition,count\nsex = 'male',10\nsex = 'male' AND age < 9,11\n"
    (folder / "contrary.csv").write_text(contrary)
    (folder / "mbi.json").write_text(f'{{"age": {LONG}}}')
    sdv = {"columns": {"age": {"sdtype": "categorical", "order": [0]}}}
    (folder / "sdv.json").write_text(json.dumps(sdv).replace("[0]", f"[{LONG}]"))
    (folder / "domain.yaml").write_text(f"age: {{min_value: {LONG}}}")
    inner = {level: ", ".join([f"*a{level - 1}"] * 10) for level in range(1, 12)}
    laughs = [f"a{level}: &a{level} [{parts}]" for level, parts in inner.items()]
    (folder / "laughs.yaml").write_text("\n".join(["a0: &a0 [x, x, x]", *laughs]))
    (folder / "itself.yaml").write_text("age: &age\n  possible_values: [*age]\n")
    (folder / "deep.json").write_text("[" * 100_000)
    Synthesizer(SCHEMA, 1.0, rows=50, workload=["categorical:1"], release=folder / "r").fit(TABLE)
    return folder


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["sample", "r", "--where", "age < 1e", "-o", "x.csv"], 7, "'1e' is not a number"),
        ([*ASKED, "--release", "n", "--queries", "queries.sql"], 7, "line 2: in the predicate"),
        ([*ASKED, "--release", "n", "--totals", "totals.csv"], 7, "'1e' is not a number"),
        ([*ASKED, "--release", "n", "--totals", "contrary.csv"], 7, "contradict each other"),
        (
            [*ASKED, "--release", "n", "--derived", "mean(age) WHERE age < 1e"],
            7,
            "'1e' is not a number",
        ),
        (["schema", "convert", "mbi.json"], 3, "too many digits"),
        (["schema", "convert", "sdv.json"], 3, "too many digits"),
        (["schema", "convert", "domain.yaml"], 3, "domain.yaml: a number has too many digits"),
        (["schema", "convert", "laughs.yaml"], 3, "more than 10,000,000 parts"),
        (["schema", "convert", "itself.yaml"], 3, "more than 10,000,000 parts"),
        (["schema", "convert", "deep.json"], 3, "nested too deeply"),
    ],
)
def test_what_is_given_is_refused_in_a_line(
    folder: Path, words: list[str], code: int, message: str
) -> None:
    _, said = run(*words, cwd=folder, code=code)
    assert message in " ".join(said.split())
    assert not (folder / "n").exists()


@pytest.mark.parametrize("name", ["release.json", "privacy.json", "synthetic.parquet"])
def test_a_damaged_release_on_the_command_line(folder: Path, name: str) -> None:
    path = folder / "r" / name
    good = path.read_bytes()
    path.write_bytes(good[:-9] + bytes([good[-9] ^ 4]) + good[-8:])
    try:
        for words in (
            ["report", "r", "-o", "x.html"],
            ["sample", "r", "-o", "x.csv"],
            ["resume", "r"],
            ["evaluate", "r", "--data", "table.csv", "-o", "x.html"],
        ):
            _, said = run(*words, cwd=folder, code=12)
            assert f"{name}: " in " ".join(said.split())
            assert not (folder / words[-1]).exists() or words[-1] == "r"
    finally:
        path.write_bytes(good)


def test_names_that_are_not_utf8(folder: Path) -> None:
    """A release, an output and a page; from the run to its end."""
    name = os.fsdecode(b"rel\xff")
    commands: list[list[str]] = [
        [*ASKED, "--rows", "50", "--workload", "categorical:1", "--release", name, "--json"],
        ["resume", name],
        ["report", name, "-o", os.fsdecode(b"page\xfe.html")],
        ["sample", name, "-o", os.fsdecode(b"rows\xfe.parquet")],
    ]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    for words in commands:
        done = subprocess.run(
            [sys.executable, "-m", "private_gsd", *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
        assert done.returncode == 0, done.stderr
        if "--json" in words:
            assert json.loads(done.stdout)["rows"] == 50
    assert "Release rel\ufffd" in (folder / os.fsdecode(b"page\xfe.html")).read_text()


def test_a_killed_run_whose_name_is_not_utf8_goes_on(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def killing(*_: Any) -> None:
        raise Killed

    folder = tmp_path / os.fsdecode(b"rel\xff")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Release, "keep_table", killing)
        with pytest.raises(Killed):
            Synthesizer(SCHEMA, 1.0, rows=50, workload=["categorical:1"], release=folder).fit(TABLE)
    release = Synthesizer.resume(folder).release
    assert release.synthetic.num_rows == 50
    assert repr(release) == "<Release rel\ufffd>"
