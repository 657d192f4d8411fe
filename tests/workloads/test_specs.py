"""Workloads by name."""

from __future__ import annotations

from private_gsd import (
    datasets,
    workloads,
)
from private_gsd.workloads.specs import default_specs, workload_of
from tests.fitting import SCHEMA


def test_workloads_by_name() -> None:
    assert default_specs(SCHEMA) == ["categorical:2", "tree:2"]
    assert default_specs(SCHEMA.select(["age"])) == ["tree:1"]
    assert default_specs(SCHEMA.select(["sex"])) == ["categorical:1"]
    every = workload_of(
        datasets.census_schema(), ["categorical:2", "tree:2:3", "prefix:5", "halfspace:7"]
    )
    assert every.size > 12
    single = workload_of(SCHEMA, ["categorical:1"])
    assert single.size == workloads.categorical_marginals(SCHEMA, 1).size
