"""The schema as a value and as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from private_gsd import Boolean, Categorical, Integer, Schema
from private_gsd.errors import SchemaError

GOOD = """
constraints = ["NOT (sex = '1' AND income < 0)"]

[columns.sex]
kind = "categorical"
values = ["1", "2"]

[columns.income]
kind = "real"
lower = -10000
upper = 1500000
decimals = 0
nullable = true
null_values = ["N", ""]

[columns.born]
kind = "date"
lower = 1900-01-01
upper = "2021-06-01"
"""


def read(tmp_path: Path, text: str) -> Schema:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    return Schema.read(path)


def test_the_form_of_the_manual(tmp_path: Path) -> None:
    schema = read(tmp_path, GOOD)
    assert schema.names == ("sex", "income", "born")
    assert schema.constraints == ("NOT (sex = '1' AND income < 0)",)
    assert not schema.drafted
    assert schema["income"].null_values == ("N", "")
    schema.write(tmp_path / "again.toml")
    assert Schema.read(tmp_path / "again.toml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema


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


def test_built_in_python() -> None:
    age = Integer("age", lower=0, upper=120)
    schema = Schema([age, Boolean("veteran")])
    assert len(schema) == 2
    assert schema["age"] is age
    assert "age" in schema
    assert "sex" not in schema
    assert schema.select(["veteran"]).names == ("veteran",)
    assert hash(schema) == hash(Schema([age, Boolean("veteran")]))
    with pytest.raises(KeyError, match="did you mean 'age'"):
        schema["agee"]
    with pytest.raises(AttributeError):
        schema.columns = ()  # type: ignore[misc]


def test_bad_schemas_in_python() -> None:
    with pytest.raises(SchemaError, match="at least one column"):
        Schema([])
    with pytest.raises(SchemaError, match="column 'a' is named twice"):
        Schema([Boolean("a"), Boolean("a")])
    with pytest.raises(SchemaError, match="expected columns such as"):
        Schema(["age"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("age >= 18 OR", "in rule 2 of constraints"),
        ("agee >= 18", "in rule 2 of constraints.*no column 'agee' .did you mean 'age'"),
        ("age >= (SELECT 18)", "in rule 2 of constraints.*not supported"),
        ("", "rule 2 of constraints"),
    ],
)
def test_rules_are_checked_when_a_schema_is_made(tmp_path: Path, rule: str, message: str) -> None:
    age = Integer("age", lower=0, upper=120)
    with pytest.raises(SchemaError, match=message):
        Schema([age], constraints=["age < 100", rule])
    with pytest.raises(SchemaError, match=message):
        replace(Schema([age]), constraints=("age < 100", rule))
    text = f'constraints = ["age < 100", "{rule}"]\n' + Schema([age]).to_toml()
    with pytest.raises(SchemaError, match=f"schema.toml: .*{message}"):
        read(tmp_path, text)
    assert Schema([age], constraints=["age < 100"]).constraints == ("age < 100",)


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
