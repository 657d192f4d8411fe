"""Arrow streams: those that can be read once say so."""

from __future__ import annotations

import pytest

from private_gsd import (
    open_source,
)
from private_gsd.errors import SourceError
from tests.data.sources.small_table import SCHEMA, TABLE


def test_a_reader_can_be_read_once_only() -> None:
    source = open_source(TABLE.to_reader(), SCHEMA)
    assert sum(batch.num_rows for batch in source.batches()) == 3
    with pytest.raises(SourceError, match="can be read only once"):
        list(source.batches())


def test_a_stream_that_runs_dry_says_so() -> None:
    class Once:
        given = 0

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            self.given += 1  # the first is for the names of the columns
            table = TABLE if self.given <= 2 else TABLE.slice(0, 0)
            return table.__arrow_c_stream__(requested_schema)

    source = open_source(Once(), SCHEMA)
    assert sum(batch.num_rows for batch in source.batches()) == 3
    with pytest.raises(SourceError, match="can be read only once"):
        list(source.batches())
