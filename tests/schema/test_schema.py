"""The schema as a value and as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from private_gsd import Boolean, Integer, Schema
from private_gsd.errors import SchemaError
from tests.schema.files import GOOD, read


def test_the_form_of_the_manual(tmp_path: Path) -> None:
    schema = read(tmp_path, GOOD)
    assert schema.names == ("sex", "income", "born")
    assert schema.constraints == ("NOT (sex = '1' AND income < 0)",)
    assert not schema.drafted
    assert schema["income"].null_values == ("N", "")
    schema.write(tmp_path / "again.toml")
    assert Schema.read(tmp_path / "again.toml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema


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
