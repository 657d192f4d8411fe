"""The checkpoint in memory."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Measurements, datasets, workloads
from private_gsd.privacy.measuring import NoisyRecordCount
from private_gsd.runs.checkpoint import MemoryCheckpoint

WORKLOAD = workloads.categorical_marginals(datasets.census_schema().select(["sex"]), 1)
MEASURED = Measurements(
    WORKLOAD, np.zeros(WORKLOAD.size), np.ones(WORKLOAD.num_groups), 10, ("1",), private=False
)
RECORDS = NoisyRecordCount(10, 1.0, False)


def test_it_begins_with_nothing() -> None:
    checkpoint = MemoryCheckpoint()
    assert checkpoint.measurements() is None
    assert checkpoint.selections() == []
    assert checkpoint.table(0) is None
    assert checkpoint.n_records() is None


def test_it_has_what_was_saved() -> None:
    checkpoint = MemoryCheckpoint()
    committed: list[str] = []
    checkpoint.save_n_records(RECORDS, committed.append)
    checkpoint.save_selections([[3]], committed.append)
    checkpoint.save_measurements(MEASURED, committed.append)
    assert checkpoint.n_records() is RECORDS
    assert checkpoint.selections() == [[3]]
    assert checkpoint.measurements() is MEASURED
    kinds = ("n_records", "selections", "measurements")
    assert committed == [checkpoint.digest(kind) for kind in kinds]


def test_what_is_not_committed_is_not_saved() -> None:
    """Another process may have drawn for the same charge, and committed that."""

    def refuse(_: str) -> None:
        raise LookupError

    checkpoint = MemoryCheckpoint()
    with pytest.raises(LookupError):
        checkpoint.save_n_records(RECORDS, refuse)
    with pytest.raises(LookupError):
        checkpoint.save_selections([[3]], refuse)
    with pytest.raises(LookupError):
        checkpoint.save_measurements(MEASURED, refuse)
    assert checkpoint.n_records() is None
    assert checkpoint.selections() == []
    assert checkpoint.measurements() is None


def test_the_last_two_tables_are_there() -> None:
    checkpoint = MemoryCheckpoint()
    tables = [np.full((2, 1), float(number)) for number in range(4)]
    for number, table in enumerate(tables):
        checkpoint.save_table(number, table)
        found = [checkpoint.table(each) is not None for each in range(4)]
        assert found == [each in (number - 1, number) for each in range(4)]
        assert checkpoint.table(number) is table
