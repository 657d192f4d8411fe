"""The command line as a person meets it: its output and its exit codes.

Most commands run in this process, which saves a second for each; those that are about processes
(signals, pipes, terminals, a whole demo) are processes of their own.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow
import pyarrow.parquet
import pytest

import private_gsd
from private_gsd import Schema
from private_gsd.cli import main
from private_gsd.runs.release import Release

SCHEMA = '[columns.age]\nkind = "integer"\nlower = 0\nupper = 120\n'


def run(*words: str | Path, cwd: Path, code: int = 0) -> tuple[str, str]:
    """Run a command here; check the exit code. An error that is not told as one is raised."""
    out, err = io.StringIO(), io.StringIO()
    status: Any = 0
    with (
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["private-gsd", *map(str, words)])
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    assert status == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def run_alone(*words: str | Path, cwd: Path, code: int = 0) -> tuple[str, str]:
    """Run a command as a process; check the exit code and that nobody sees a traceback."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "private_gsd", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_version(tmp_path: Path) -> None:
    assert run_alone("--version", cwd=tmp_path)[0] == f"private-gsd {private_gsd.__version__}\n"


def test_help_lists_the_commands(tmp_path: Path) -> None:
    text, _ = run_alone("--help", cwd=tmp_path)
    assert "demo" in text
    assert "schema" in text


def test_draft_edit_check(tmp_path: Path) -> None:
    rows = "".join(f"{i % 90},n{i}\n" for i in range(500))
    (tmp_path / "data.csv").write_text(f"age,name\n{rows}")
    _, notes = run("schema", "draft", "data.csv", "-o", "schema.toml", cwd=tmp_path)
    assert "DRAFT. This schema was learned from the data" in notes
    assert "replace every one of them by public knowledge" in notes
    assert "Left out: column 'name'" in notes
    schema = Schema.read(tmp_path / "schema.toml")
    assert schema.drafted
    _, warning = run("schema", "check", "schema.toml", "data.csv", cwd=tmp_path)
    assert "DRAFT." in warning
    (tmp_path / "schema.toml").write_text(SCHEMA)
    out, notes = run("schema", "check", "schema.toml", "data.csv", cwd=tmp_path)
    assert "data.csv: all 500 rows fit the schema" in out
    assert "left out, since the schema does not name them: name" in notes
    assert "DRAFT" not in notes


def test_draft_to_the_terminal_is_a_schema(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("age\n1\n90\n")
    text, _ = run("schema", "draft", "data.csv", cwd=tmp_path)
    (tmp_path / "schema.toml").write_text(text)
    assert Schema.read(tmp_path / "schema.toml").names == ("age",)


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("age\n1\n90\n")
    (tmp_path / "schema.toml").write_text("precious")
    words = ("schema", "draft", "data.csv", "-o", "schema.toml")
    _, error = run(*words, cwd=tmp_path, code=1)
    assert "schema.toml: exists already" in error
    assert (tmp_path / "schema.toml").read_text() == "precious"
    run(*words, "--force", cwd=tmp_path)
    assert Schema.read(tmp_path / "schema.toml").drafted


def test_check_shows_the_schema(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    out, _ = run("schema", "check", "schema.toml", cwd=tmp_path)
    assert "age" in out
    assert "0 to 120" in out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("check", "nowhere.toml"), 3, "error: nowhere.toml: no such file"),
        (("check", "bad.toml"), 3, "error: bad.toml: column 'age': unknown kind 'number'"),
        (("check", "schema.toml", "nowhere.csv"), 4, "error: nowhere.csv: no such file"),
        (("check", "schema.toml", "empty.csv"), 4, "error: empty.csv: the file is empty"),
        (("check", "schema.toml", "header.csv"), 4, "error: header.csv: the table has no rows"),
        (("check", "schema.toml", "torn.csv"), 4, "error: torn.csv: a row (line 3) has 1 fields"),
        (("check", "schema.toml", "latin.csv"), 4, "error: latin.csv: not UTF-8 text (line 2)"),
        (("check", "schema.toml", "other.csv"), 4, "error: other.csv: missing column 'age'"),
        (("check", "schema.toml", "old.csv"), 5, "column 'age': 1 value is not integer 0 to 120"),
        (("check", "schema.toml", "old.csv", "--on-invalid", "maybe"), 2, "'error', 'coerce'"),
        (("draft", "nowhere.csv"), 4, "error: nowhere.csv: no such file"),
        (("convert", "bad.toml"), 3, "error: bad.toml: not valid"),
        (("check",), 2, "Missing argument"),
    ],
)
def test_bad_input(tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "bad.toml").write_text('[columns.age]\nkind = "number"\n')
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("age\n")
    (tmp_path / "torn.csv").write_text("age,b\n1,2\n3")
    (tmp_path / "latin.csv").write_bytes(b"age\ncaf\xe9\n")
    (tmp_path / "other.csv").write_text("years\n1\n")
    (tmp_path / "old.csv").write_text("age\n121\n")
    out, error = run("schema", *words, cwd=tmp_path, code=code)
    assert message in error
    assert out == ""


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "ok.csv").write_text("age\n12\n90\n")
    (tmp_path / "file").write_text("")
    _, error = run("schema", "draft", "ok.csv", "-o", "file/schema.toml", cwd=tmp_path, code=1)
    assert "file" in error


def test_coerce(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "old.csv").write_text("age\n121\n")
    words = ("schema", "check", "schema.toml", "old.csv", "--on-invalid", "coerce")
    out, notes = run(*words, cwd=tmp_path)
    assert "all 1 rows fit the schema, once coerced" in out
    assert "column 'age': 1 values were moved into the domain" in notes


def test_convert(tmp_path: Path) -> None:
    metadata = {"columns": {"age": {"sdtype": "numerical"}, "id": {"sdtype": "id"}}}
    (tmp_path / "sdv.json").write_text(json.dumps(metadata))
    _, notes = run("schema", "convert", "sdv.json", "-o", "schema.toml", cwd=tmp_path)
    assert "Left out: column 'id'" in notes
    assert "the schema is not complete yet" in notes
    assert "column 'age': lower and upper missing" in notes
    text = (tmp_path / "schema.toml").read_text()
    assert "# lower =    (to be added, from public knowledge)" in text
    _, error = run("schema", "check", "schema.toml", cwd=tmp_path, code=3)
    assert "lower and upper missing" in error
    (tmp_path / "mbi.json").write_text('{"age": 5}')
    text, notes = run("schema", "convert", "mbi.json", cwd=tmp_path)
    assert "values = [0, 1, 2, 3, 4]" in text
    assert "not complete" not in notes


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m private_gsd --help | true",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_demo(tmp_path: Path) -> None:
    out, _ = run("demo", "--rows", "2000", cwd=tmp_path)
    assert "2,000 rows x 24 columns read, checked and encoded" in out
    assert Schema.read(tmp_path / "demo" / "drafted.toml").drafted
    assert not Schema.read(tmp_path / "demo" / "schema.toml").drafted
    assert (tmp_path / "demo" / "census.parquet").exists()
    assert "5,000 synthetic rows" in out
    assert "rho-zero-concentrated differentially private" in out
    assert "Over all 59,509 questions the synthetic table is off by" in out
    release = Release.load(tmp_path / "demo" / "release")
    assert release.complete
    assert release.privacy["private"]
    picture = ElementTree.parse(tmp_path / "demo" / "comparison.svg")
    texts = {text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert set(release.schema.names) <= texts
    shown, _ = run("ledger", "show", "demo/ledger.db", cwd=tmp_path)
    assert "discrete gaussian" in shown
    total, spent = (release.privacy[part]["rho"] for part in ("total", "spent"))
    assert total > 3 * spent  # another release is possible
    run("schema", "check", "demo/schema.toml", "demo/census.parquet", cwd=tmp_path)


def test_demo_twice_but_never_over_other_files(tmp_path: Path) -> None:
    run("demo", "--rows", "10", cwd=tmp_path)
    run("demo", "--rows", "10", cwd=tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "schema.toml").write_text("precious")
    _, error = run("demo", "--rows", "10", "-o", "mine", cwd=tmp_path, code=1)
    assert "mine/schema.toml: exists already" in error
    assert (tmp_path / "mine" / "schema.toml").read_text() == "precious"


def test_names_that_look_like_markup(tmp_path: Path) -> None:
    (tmp_path / "[red].toml").write_text(SCHEMA)
    (tmp_path / "[a]b.csv").write_text("age\n5\n")
    out, _ = run("schema", "check", "[red].toml", "[a]b.csv", cwd=tmp_path)
    assert out.startswith("[a]b.csv: all 1 rows")
    assert "[red].toml: 1 columns" in run("schema", "check", "[red].toml", cwd=tmp_path)[0]
    run("demo", "--rows", "10", "-o", "[x]d", cwd=tmp_path)
    assert (tmp_path / "[x]d" / "schema.toml").exists()


def test_a_terminal_without_our_characters(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "private_gsd", "demo", "--rows", "10"],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_late_torn_row_shows_no_row(tmp_path: Path) -> None:
    """After the first batches errors come by another way; they show no line either."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "late.csv").write_text("age,b\n" + "1,2\n" * 300_000 + "a secret\n")
    out, error = run("schema", "check", "schema.toml", "late.csv", cwd=tmp_path, code=4)
    assert "late.csv: a row (line 300002) has 1 fields where the header has 2" in error
    assert "secret" not in error + out
    (tmp_path / "quote.csv").write_text("age,b\n" + "1,2\n" * 300_000 + '"a secret\n' + "1,2\n" * 9)
    out, error = run("schema", "draft", "quote.csv", cwd=tmp_path, code=4)
    assert "secret" not in error + out


def test_a_type_that_does_not_fit_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    table = pyarrow.table({"age": [dt.date(2020, 1, 1)]})
    pyarrow.parquet.write_table(table, tmp_path / "dates.parquet")
    _, error = run("schema", "check", "schema.toml", "dates.parquet", cwd=tmp_path, code=5)
    assert "error: dates.parquet: column 'age': the schema says integer 0 to 120, but" in error
