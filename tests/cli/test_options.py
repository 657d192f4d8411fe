"""What DATA and --query stand for."""

from __future__ import annotations

import pytest
import typer

from private_gsd import PostgresQuery
from private_gsd.cli.options import dataset_of, table_of


def test_a_path_or_a_query() -> None:
    assert table_of("table.csv", None) == "table.csv"
    assert isinstance(table_of("postgresql://db/census", "SELECT 1"), PostgresQuery)
    with pytest.raises(typer.BadParameter, match="--query goes with"):
        table_of("table.csv", "SELECT 1")


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("folder/census.csv", "census"),
        ("folder/*.csv", "table"),
        (".", "table"),
        (None, "table"),
        (PostgresQuery("postgresql://db/census", "SELECT 1"), "table"),
    ],
)
def test_the_name_of_a_dataset(table: str | PostgresQuery | None, name: str) -> None:
    assert dataset_of(table) == name
