"""Halfspaces: counts of a slow twin, drawn as in the paper, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Categorical,
    Schema,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.workloads import Halfspaces
from tests.strategies import examples
from tests.workloads import twins
from tests.workloads.test_marginal_constructors import SCHEMA


@given(st.data())
def test_halfspaces(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples())
    workload = workloads.random_halfspaces(schema, 40, seed=data.draw(st.integers(0, 9)))
    [family] = workload.families
    assert isinstance(family, Halfspaces)
    assert count(workload, matrix).tolist() == twins.halfspaces(family, matrix)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: workloads.random_halfspaces(SCHEMA, -5), "count must be"),
    (lambda: workloads.random_halfspaces(SCHEMA, 5, seed=None), "seed must be"),  # type: ignore[arg-type]
    (lambda: workloads.random_halfspaces(SCHEMA, 5, seed=1.5), "seed must be"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        make()
    assert message in str(error.value)


def test_too_many_dimensions_are_refused() -> None:
    schema = Schema([Categorical("c", values=range(100_000))])
    with pytest.raises(WorkloadError, match="100,000 dimensions"):
        workloads.random_halfspaces(schema, 256)


def test_halfspaces_are_as_the_paper_draws_them() -> None:
    schema = datasets.census_schema()
    [family] = workloads.random_halfspaces(schema, 20_000, seed=1).families
    assert isinstance(family, Halfspaces)
    coefficients, thresholds = family.parameters(np.arange(20_000))
    assert coefficients.shape == (family.dimensions, 20_000)
    assert coefficients.var() == pytest.approx(1 / len(schema), rel=0.01)
    assert thresholds.var() == pytest.approx(1, rel=0.05)


def test_fewer_queries_of_a_seed_are_the_first_of_more() -> None:
    schema = datasets.census_schema()
    found = []
    for number in (10, 700):
        [family] = workloads.random_halfspaces(schema, number, seed=4).families
        assert isinstance(family, Halfspaces)
        found.append(family.parameters(np.arange(10)))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, theirs)
