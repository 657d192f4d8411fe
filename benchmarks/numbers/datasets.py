"""The tables of the benchmark, with all of their numeric columns."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd import Integer, LeftOutWarning, Real, Schema, datasets

if TYPE_CHECKING:
    from private_gsd import Column

CENSUS = "census"
CENSUS_ROWS = 100_000
SCHEMAS = Path(__file__).parents[1] / "schemas"
# Columns that other benchmarks leave out, with the bounds of the codebooks.
MORE: dict[str, list[Column]] = {
    "acs_ma2019": [
        Real("DENSITY", lower=16.3, upper=52864.7, decimals=1),
        Integer("PWGTP", lower=1, upper=9999),
    ],
    "adult": [Integer("fnlwgt", lower=0, upper=2_000_000)],
}


def name_of(data: str) -> str:
    """The name of a table: that of its file, or the simulated census."""
    return Path(data).stem


def table_of(data: str) -> tuple[Schema, Any]:
    """The schema of a table, and the table.

    Args:
        data: A CSV file, or ``CENSUS``.
    """
    if data == CENSUS:
        return datasets.census_schema(), datasets.census(CENSUS_ROWS, seed=1)
    warnings.simplefilter("ignore", LeftOutWarning)  # of columns that nobody synthesises
    name = name_of(data)
    schema = Schema.read(SCHEMAS / f"{name}.toml")
    return Schema([*schema.columns, *MORE.get(name, [])]), data
