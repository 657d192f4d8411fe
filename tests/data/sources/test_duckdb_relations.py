"""DuckDB relations."""

from __future__ import annotations

import duckdb
import pytest

from private_gsd import (
    open_source,
)
from private_gsd.errors import SourceError
from tests.data.sources.small_table import SCHEMA


def test_a_relation_has_one_reader_at_a_time() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 5 AS age, 'f' AS sex FROM range(300000)")
        source = open_source(connection.table("t"), SCHEMA)
        first = source.batches()
        next(first)
        with pytest.raises(SourceError, match="one reader at a time"):
            list(source.batches())
