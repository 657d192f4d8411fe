"""``schema draft``, ``check`` and ``convert``: what they print, and their exit codes."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from private_gsd import Schema, datasets
from tests.cli.running import run

SCHEMA = '[columns.age]\nkind = "integer"\nlower = 0\nupper = 120\n'


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


def test_names_that_look_like_markup(tmp_path: Path) -> None:
    (tmp_path / "[red].toml").write_text(SCHEMA)
    (tmp_path / "[a]b.csv").write_text("age\n5\n")
    out, _ = run("schema", "check", "[red].toml", "[a]b.csv", cwd=tmp_path)
    assert out.startswith("[a]b.csv: all 1 rows")
    assert "[red].toml: 1 columns" in run("schema", "check", "[red].toml", cwd=tmp_path)[0]


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


def test_rules_are_checked(tmp_path: Path) -> None:
    """Rules that make no sense, and rows of the data that break a rule."""
    columns = datasets.census_schema().select(["sex", "age", "marital"]).columns
    pyarrow.csv.write_csv(datasets.census(600), tmp_path / "table.csv")
    for rules, code, words in (
        (["age < 40"], 0, "rows break the rule 'age < 40'; no synthetic row will"),
        (["age < 15", "age > 20"], 3, "no row can meet these rules together"),
        (["aeg < 3"], 3, "in rule 1 of constraints"),
    ):
        text = Schema(columns, ["age < 1"]).to_toml()
        (tmp_path / "schema.toml").write_text(text.replace('["age < 1"]', json.dumps(rules)))
        _, said = run("schema", "check", "schema.toml", "table.csv", cwd=tmp_path, code=code)
        assert words in " ".join(said.split())


LONG = "9" * 5000
LEVELS = {level: ", ".join([f"*a{level - 1}"] * 10) for level in range(1, 12)}
LAUGHS = [f"a{level}: &a{level} [{parts}]" for level, parts in LEVELS.items()]
SDV = {"columns": {"age": {"sdtype": "categorical", "order": [0]}}}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("mbi.json", f'{{"age": {LONG}}}', "too many digits"),
        ("sdv.json", json.dumps(SDV).replace("[0]", f"[{LONG}]"), "too many digits"),
        ("domain.yaml", f"age: {{min_value: {LONG}}}", "domain.yaml: a number has too many digits"),
        ("laughs.yaml", "\n".join(["a0: &a0 [x, x, x]", *LAUGHS]), "more than 10,000,000 parts"),
        ("itself.yaml", "age: &age\n  possible_values: [*age]\n", "more than 10,000,000 parts"),
        ("deep.json", "[" * 100_000, "nested too deeply"),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)
def test_hostile_files_are_refused_in_a_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    _, said = run("schema", "convert", name, cwd=tmp_path, code=3)
    assert message in " ".join(said.split())
