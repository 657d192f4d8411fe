"""``private-gsd sample``: rows of a release, written as their schema describes them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import Encoder, Release, Schema, open_source
from tests.cli.running import QUICK, QUICK_SEARCH, run, run_alone

LARGE = pytest.mark.worker("large")
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
WORDS = ("--schema", "schema.toml", "--epsilon", "1", "--rows", "60", "--workload", "tree:1")
RULE = "NOT (age < 20 AND marital = 'married')"


@pytest.fixture
def release(folder: Path) -> Path:
    """The folder, with a release that keeps a rule."""
    Schema(Schema.read(folder / "schema.toml").columns, [RULE]).write(folder / "schema.toml")
    run("synthesize", *QUICK, "--workload", "categorical:2", "--release", "r", cwd=folder)
    return folder


def read(path: Path) -> list[object]:
    schema = Schema.read(path.parent / "schema.toml")
    matrices = list(open_source(path, schema).encoded())
    return list(Encoder(schema).decode(np.vstack(matrices)).to_pylist())


def test_a_file_is_what_its_schema_describes(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "table.csv").write_text(TABLE)
    words = ("--workload", "categorical:1", "-o", "out.csv", "--release", "release")
    run("synthesize", "table.csv", *WORDS, *QUICK_SEARCH, *words, cwd=tmp_path)
    made = Release.load(tmp_path / "release").synthetic.to_pylist()
    assert read(tmp_path / "out.csv") == made
    assert any(row["born"] is None for row in made)
    for name in ("again.csv", "again.parquet"):
        run("sample", "release", "-o", name, cwd=tmp_path)
        assert read(tmp_path / name) == made


@LARGE
def test_rows_by_number_by_condition_and_around_given_ones(release: Path) -> None:
    run("sample", "r", "-n", "250", "-o", "more.parquet", cwd=release)
    more = pyarrow.parquet.read_table(release / "more.parquet")
    made = Release.load(release / "r").synthetic
    assert more.num_rows == 250
    assert more.slice(0, made.num_rows).equals(made)
    new = [row for row in more.slice(made.num_rows).to_pylist() if row not in made.to_pylist()]
    assert len(new) > 75
    drawn = []
    for seed in ("0", "0", "1"):
        words = ("--rows", "20", "--random-state", seed, "-o", "some.csv", "--force")
        out, _ = run("sample", "r", *words, cwd=release)
        assert out == "20 rows: some.csv\n"
        drawn.append((release / "some.csv").read_text())
    assert drawn[0] == drawn[1] != drawn[2]
    run("sample", "r", "--where", "age >= 40", "-o", "old.csv", "--quiet", cwd=release)
    assert min(pyarrow.csv.read_csv(release / "old.csv")["age"].to_pylist()) >= 40
    (release / "given.csv").write_text("age,sex\n30,male\n12,female\n")
    around_words = ("--given", "given.csv", "-o", "around.csv")
    out, _ = run("sample", "r", *around_words, "--quiet", cwd=release)
    assert out == ""
    around = pyarrow.csv.read_csv(release / "around.csv")
    assert around["age"].to_pylist() == [30, 12]
    assert around["marital"].to_pylist()[1] != "married"


@LARGE
def test_what_is_wrong_is_said_in_a_line(release: Path) -> None:
    for words, code, said in (
        (["r", "--where", "aeg > 3"], 7, "did you mean 'age'"),
        (["r", "--where", "age < 1e"], 7, "'1e' is not a number"),
        (["r", "--where", "age > 119"], 12, "none of the 100"),
        (["r", "--given", "none.csv"], 4, "none.csv"),
        (["r", "--given", "table.csv", "-n", "3"], 2, "leave --rows and --where out"),
        (["nowhere", "-n", "5"], 12, "nowhere: holds no release"),
    ):
        _, told = run("sample", *words, "-o", "x.csv", cwd=release, code=code)
        assert said in " ".join(told.replace("│", " ").split())
        assert not (release / "x.csv").exists()


@LARGE
@pytest.mark.parametrize("name", ["release.json", "privacy.json", "synthetic.parquet"])
def test_a_damaged_release(release: Path, name: str) -> None:
    """Whatever reads it says which file is damaged, and writes nothing."""
    path = release / "r" / name
    good = path.read_bytes()
    path.write_bytes(good[:-9] + bytes([good[-9] ^ 4]) + good[-8:])
    for words in (
        ["report", "r", "-o", "x.html"],
        ["sample", "r", "-o", "x.csv"],
        ["resume", "r"],
    ):
        _, said = run(*words, cwd=release, code=12)
        assert f"{name}: " in " ".join(said.split())
    assert not [*release.glob("x.*")]


@pytest.mark.slow
@LARGE
def test_names_that_are_not_utf8(release: Path) -> None:
    """A release, an output and a page."""
    name = os.fsdecode(b"rel\xff")
    (release / "r").rename(release / name)
    page, rows = os.fsdecode(b"page\xfe.html"), os.fsdecode(b"rows\xfe.parquet")
    run_alone("resume", name, "--json", cwd=release)
    run_alone("report", name, "-o", page, cwd=release)
    run_alone("sample", name, "-o", rows, cwd=release)
    assert "Release report of rel\ufffd" in (release / page).read_text()
    assert (release / rows).exists()
