"""Schemas of other tools become ours, and what they lack is asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from private_gsd import Boolean, Categorical, Date, Datetime, Integer, Real, Schema
from private_gsd.errors import MissingExtraError, SchemaError

SDV = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "id",
    "columns": {
        "id": {"sdtype": "id"},
        "age": {"sdtype": "numerical", "computer_representation": "Int64"},
        "fee": {"sdtype": "numerical"},
        "room": {"sdtype": "categorical"},
        "level": {"sdtype": "categorical", "order": ["low", "high"]},
        "member": {"sdtype": "boolean"},
        "in": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
    },
}
BOUNDS: dict[str, dict[str, Any]] = {
    "age": {"lower": 0, "upper": 120},
    "fee": {"lower": 0, "upper": 500, "decimals": 2},
    "room": {"values": ["basic", "suite"]},
    "in": {"lower": "2020-01-01", "upper": "2021-12-31", "nullable": True},
    "seen": {"lower": "2020-01-01", "upper": "2021-12-31"},
}


def write(path: Path, document: object) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_sdv(tmp_path: Path) -> None:
    schema = Schema.from_sdv(write(tmp_path / "m.json", SDV), columns=BOUNDS)
    assert schema["age"] == Integer("age", lower=0, upper=120)
    assert schema["fee"] == Real("fee", lower=0, upper=500, decimals=2)
    assert schema["room"] == Categorical("room", values=("basic", "suite"))
    assert schema["level"] == Categorical("level", values=("low", "high"))
    assert schema["member"] == Boolean("member")
    assert isinstance(schema["in"], Date)
    assert schema["in"].format == "%d %b %Y"
    assert isinstance(schema["seen"], Datetime)
    assert schema["seen"].format is None
    assert "id" not in schema
    assert "column 'id'" in schema.notes[0]


def test_sdv_asks_for_bounds(tmp_path: Path) -> None:
    with pytest.raises(SchemaError) as error:
        Schema.from_sdv(write(tmp_path / "m.json", SDV))
    for name in BOUNDS:
        assert f"column {name!r}: " in str(error.value)
    assert "from public knowledge" in str(error.value)


def test_sdv_with_several_tables(tmp_path: Path) -> None:
    several = {"tables": {"guests": SDV, "rooms": {"columns": {"a": {"sdtype": "boolean"}}}}}
    path = write(tmp_path / "m.json", several)
    assert Schema.from_sdv(path, table="rooms").names == ("a",)
    with pytest.raises(SchemaError, match="several tables; name one of guests, rooms"):
        Schema.from_sdv(path)
    with pytest.raises(SchemaError, match="no table 'hotels'"):
        Schema.from_sdv(path, table="hotels")
    one = write(tmp_path / "one.json", {"tables": {"rooms": several["tables"]["rooms"]}})
    assert Schema.from_sdv(one).names == ("a",)


def test_mbi(tmp_path: Path) -> None:
    schema = Schema.from_mbi(write(tmp_path / "domain.json", {"age": 3, "sex": 2}))
    assert schema["age"] == Categorical("age", values=(0, 1, 2))
    assert schema["sex"] == Categorical("sex", values=(0, 1))


def test_dpsynth(tmp_path: Path) -> None:
    text = """
age: {clip_to_range: true, dtype: int, max_value: 50.0, min_value: 10.0, description: years}
pay: {clip_to_range: false, max_value: 1.5, min_value: 0}
gender:
  out_of_domain_index: 1
  possible_values: [M, F]
name: {max_tokens: 9}
"""
    schema = Schema.from_dpsynth(write(tmp_path / "domain.yaml", text))
    assert schema["age"] == Integer("age", lower=10, upper=50, description="years")
    assert schema["pay"] == Real("pay", lower=0, upper=1.5, nullable=True)
    assert schema["gender"] == Categorical("gender", values=("M", "F"), other="F")
    assert "column 'name'" in schema.notes[0]


@pytest.mark.parametrize(
    ("style", "document", "message"),
    [
        ("sdv", [], "not SDV metadata"),
        ("sdv", {"a": 1}, "not SDV metadata"),
        ("mbi", [3], "not an mbi domain"),
        ("mbi", {"age": 0}, "column 'age': expected a size of 1 or more, not 0"),
        ("mbi", {"age": "9"}, "column 'age': expected a size"),
        ("dpsynth", [3], "not a dpsynth domain"),
        ("dpsynth", {"a": {"possible_values": 3}}, "possible_values must be a list"),
        ("sdv", "{", "not valid"),
        ("sdv", "[" * 99_999, "nested too deeply"),
        ("mbi", f'{{"age": {"9" * 5000}}}', "too many digits"),
        ("sdv", {"columns": {"a": {"sdtype": "categorical", "order": [None]}}}, "values missing"),
        ("sdv", {"columns": {"a": {"sdtype": "datetime", "datetime_format": 5}}}, "must be text"),
        ("mbi", {"age": 300_000_000}, "300,000,000 values are more than 1,000,000"),
        ("dpsynth", {"a": {"possible_values": [None, "b"]}}, "must be a list of texts or numbers"),
        (
            "dpsynth",
            {"a": {"min_value": 1.5, "max_value": 5, "dtype": "int"}},
            "must be a whole num",
        ),
        ("dpsynth", {"a": {"min_value": "x"}}, "min_value must be a number, not 'x'"),
    ],
)
def test_bad_documents(tmp_path: Path, style: str, document: object, message: str) -> None:
    path = write(tmp_path / "m.json", document)
    with pytest.raises(SchemaError) as error:
        getattr(Schema, f"from_{style}")(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "spec", ["possible_values: [0x{}]", "min_value: 0x{}", "dtype: int, max_value: 0x{}"]
)
def test_long_numbers_in_yaml(tmp_path: Path, spec: str) -> None:
    path = tmp_path / "domain.yaml"
    path.write_text(f"age: {{{spec.format('f' * 5000)}}}")
    with pytest.raises(SchemaError, match=r"domain.yaml: a number has too many digits"):
        Schema.from_dpsynth(path)


@pytest.mark.parametrize(
    "text", ["a: 2001-99-99", "a: !!int ''", "a: !!timestamp x", "a: !!bool x", "a: !!float x"]
)
def test_values_that_yaml_takes_for_others(tmp_path: Path, text: str) -> None:
    path = tmp_path / "domain.yaml"
    path.write_text(text)
    with pytest.raises(SchemaError, match=r"domain.yaml: not valid"):
        Schema.from_dpsynth(path)


def test_extra_keys_must_name_a_column(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no column 'agee' \\(did you mean 'age'"):
        Schema.from_mbi(write(tmp_path / "d.json", {"age": 3}), columns={"agee": {}})


def test_yaml_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'private-gsd\[yaml\]'"):
        Schema.from_dpsynth(write(tmp_path / "d.yaml", "{}"))


def test_yaml_names_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="column True: write the name in quotes"):
        Schema.from_dpsynth(write(tmp_path / "d.yaml", "yes: {min_value: 0, max_value: 1}"))
    with pytest.raises(SchemaError, match="max_value must be a whole number, not inf"):
        text = "a: {min_value: 0, max_value: .inf, dtype: int}"
        Schema.from_dpsynth(write(tmp_path / "d.yaml", text))
