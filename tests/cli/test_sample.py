"""Tables on the command line: what is written is read again, and what is wrong has a message."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from private_gsd import Encoder, Schema, open_source
from private_gsd.errors import CONFIDENTIAL
from private_gsd.runs.release import Release
from tests.cli.test_cli import run

SCHEMA = """
[columns.born]
kind = "date"
lower = 1900-01-01
upper = 2020-12-31
format = "%d/%m/%Y"
nullable = true
null_values = ["unknown"]

[columns.code]
kind = "categorical"
values = ["", "a, b", '"c"']
nullable = true

[columns.age]
kind = "integer"
lower = 0
upper = 9
nullable = true
null_values = ["-1"]
"""
TABLE = "born,code,age\n" + '01/02/1990,"a, b",5\nunknown,,-1\n31/12/2020,"",0\n' * 20
QUICK = ("--schema", "schema.toml", "--epsilon", "1", "--rows", "60", "--workload", "tree:1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "table.csv").write_text(TABLE)
    return tmp_path


def read(path: Path) -> list[object]:
    schema = Schema.read(path.parent / "schema.toml")
    matrices = list(open_source(path, schema).encoded())
    return list(Encoder(schema).decode(np.vstack(matrices)).to_pylist())


def test_a_csv_is_what_its_schema_describes(folder: Path) -> None:
    words = ("--workload", "categorical:1", "-o", "out.csv", "--release", "release")
    run("synthesize", "table.csv", *QUICK, *words, cwd=folder)
    made = Release.load(folder / "release").synthetic.to_pylist()
    assert read(folder / "out.csv") == made
    assert any(row["born"] is None for row in made)
    run("sample", "release", "-o", "again.csv", cwd=folder)
    assert read(folder / "again.csv") == made
    run("sample", "release", "-o", "again.parquet", cwd=folder)
    assert read(folder / "again.parquet") == made


def test_what_a_csv_cannot_hold_is_found_before_anything_is_spent(folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace("lower = 0", "lower = -2"))
    words = ("-o", "out.csv", "--release", "release")
    _, err = run("synthesize", "table.csv", *QUICK, *words, cwd=folder, code=3)
    assert "column 'age' cannot be written as text: -1 would be written as '-1'" in err
    assert sorted(each.name for each in folder.iterdir()) == ["schema.toml", "table.csv"]


@pytest.mark.parametrize(
    ("table", "code", "confidential"),
    [
        (TABLE + "01/02/1990,a,77\n", 5, True),
        (TABLE + "01/02/1990\n", 4, True),
        ("born,code,age\n", 4, True),
        ("born,code\n", 4, False),
        (None, 4, False),
    ],
)
def test_messages_about_rows_are_marked(
    folder: Path, table: str | None, code: int, confidential: bool
) -> None:
    (folder / "table.csv").unlink()
    if table is not None:
        (folder / "table.csv").write_text(table)
    words = ("synthesize", "table.csv", *QUICK, "-o", "out.csv")
    _, err = run(*words, cwd=folder, code=code)
    assert err.count(CONFIDENTIAL) == confidential


def test_a_flipped_bit_of_a_zipped_table(folder: Path) -> None:
    zipped = bytearray(gzip.compress(TABLE.encode()))
    zipped[-6] ^= 1
    (folder / "table.csv.gz").write_bytes(zipped)
    _, err = run("plan", "table.csv.gz", *QUICK[:4], cwd=folder, code=4)
    assert "table.csv.gz: not a gzip file, or a damaged one: " in err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%d/%m/%Y", "%Y%Y", "column 'born': format '%Y%Y' says the year twice"),
        ("lower = 0", f"lower = -{'9' * 5000}", "a number has too many digits"),
    ],
)
def test_schemas_that_once_gave_a_traceback(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "schema.toml").write_text(SCHEMA.replace(old, new))
    _, err = run("plan", "table.csv", *QUICK[:4], cwd=folder, code=3)
    assert f"schema.toml: {message}" in err


def test_paths_that_are_not_utf8(folder: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    (folder / f"{odd}.csv").write_text(TABLE)

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "private_gsd", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    done = command("synthesize", f"{odd}.csv", *QUICK, "-o", "out.csv")
    assert done.returncode == 4
    assert "the path is not UTF-8 text; rename it" in done.stderr
    assert "Traceback" not in done.stderr
    done = command("synthesize", "table.csv", *QUICK, "-o", f"{odd}.parquet")
    assert done.returncode == 0, done.stderr
    assert (folder / f"{odd}.parquet").exists()
