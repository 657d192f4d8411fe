"""Schema files: errors that name the file, and text that is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from private_gsd import Boolean, Categorical, Schema
from private_gsd.errors import SchemaError
from tests.schema.files import GOOD, read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no columns; expected a table [columns.NAME]"),
        ("columns = 3", "no columns; expected a table [columns.NAME]"),
        ("[columns.a", "not valid TOML"),
        (
            '[columns.a]\nkind = "boolean"\n[columns.a]\nkind = "boolean"',
            "is a column named twice?",
        ),
        ('[colums.a]\nkind = "boolean"', "did you mean 'columns'?"),
        (
            '[columns.a]\nkind = "boolean"\nconstraints = []',
            "constraints stands inside column 'a'; move it to the top of the file",
        ),
        ('constraints = "a"\n[columns.a]\nkind = "boolean"', "constraints must be a list of texts"),
        ('constraints = 5\n[columns.a]\nkind = "boolean"', "constraints must be a list of texts"),
        ("[columns]\na = " + "[" * 9000, "nested too deeply"),
        (f"[columns.a]\nkind = 'integer'\nlower = {'9' * 5000}", "too many digits"),
        (f"[columns.a]\nkind = 'integer'\nlower = 0x{'f' * 5000}", "too many digits"),
        (f"[columns.a]\nkind = 'categorical'\nvalues = [0b{'1' * 20_000}]", "too many digits"),
        (f"drafted = 0x{'f' * 5000}\n[columns.a]\nkind = 'boolean'", "too many digits"),
        ('drafted = "yes"\n[columns.a]\nkind = "boolean"', "drafted must be true or false"),
        ("[columns]\na = 3", "column 'a': expected a table of keys"),
    ],
)
def test_bad_files_name_the_file_and_the_trouble(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path}/schema.toml: ")
    assert message in str(error.value)


def test_one_error_names_every_bad_column(tmp_path: Path) -> None:
    text = (
        '[columns.a]\nkind = "integer"\n[columns.b]\nkind = "what"\n[columns.c]\nkind = "boolean"'
    )
    with pytest.raises(SchemaError) as error:
        read(tmp_path, text)
    assert "column 'a': lower and upper missing" in str(error.value)
    assert "column 'b': unknown kind 'what'" in str(error.value)


def test_files_that_are_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"nowhere.toml: no such file"):
        Schema.read(tmp_path / "nowhere.toml")
    with pytest.raises(SchemaError, match="is a directory, not a schema file"):
        Schema.read(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match=r"bytes.toml: not UTF-8 text"):
        Schema.read(tmp_path / "bytes.toml")


def test_a_draft_says_so_in_its_file(tmp_path: Path) -> None:
    schema = Schema([Boolean("a")], drafted=True, notes=["Left out: column 'b'."])
    schema.write(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert text.startswith("# DRAFT. This schema was learned from the data")
    assert "replace every one of them by public knowledge" in text
    assert "# Left out: column 'b'." in text
    assert Schema.read(tmp_path / "schema.toml").drafted


def test_odd_names_and_values_survive_the_file(tmp_path: Path) -> None:
    odd = ['a "quoted" name', "line\nbreak", "tab\t", "ключ", "\x7f", "a.b", "c\\d"]
    schema = Schema([Categorical(name, values=odd) for name in odd])
    schema.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == schema


def test_long_lists_are_wrapped(tmp_path: Path) -> None:
    schema = Schema([Categorical("x", values=[f"value number {i}" for i in range(50)])])
    assert max(map(len, schema.to_toml().splitlines())) <= 100
    schema.write(tmp_path / "schema.toml")
    assert Schema.read(tmp_path / "schema.toml") == schema


def test_a_byte_order_mark_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(GOOD, encoding="utf-8-sig")
    assert Schema.read(tmp_path / "schema.toml").names == ("sex", "income", "born")
