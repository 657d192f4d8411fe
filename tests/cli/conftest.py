"""A table, its schema and somebody's file, for commands to work on."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import datasets
from tests.cli.running import NAMES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table and its schema."""
    datasets.census_schema().select(NAMES).write(tmp_path / "schema.toml")
    pyarrow.csv.write_csv(datasets.census(500).select(NAMES), tmp_path / "table.csv")
    (tmp_path / "there.csv").write_text("somebody's")
    return tmp_path
