"""A schema file, and how a text is read as one."""

from __future__ import annotations

from pathlib import Path

from private_gsd import Schema

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
