"""Conjunctions: counts of a slow twin, random prefixes as in the paper, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Categorical,
    Integer,
    Schema,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.workloads import Conjunctions, Workload
from tests.strategies import examples
from tests.workloads import twins
from tests.workloads.test_marginal_constructors import SCHEMA


@pytest.mark.parametrize("k", [2, 3, 4])
@given(st.data())
def test_prefixes(k: int, data: st.DataObject) -> None:
    schema, matrix = data.draw(examples(discrete=1, numeric=k - 1))
    workload = workloads.random_prefixes(schema, 30, seed=data.draw(st.integers(0, 9)), k=k)
    [family] = workload.families
    assert isinstance(family, Conjunctions)
    # Thresholds that are values themselves: the comparison is strict.
    places = data.draw(st.lists(st.integers(0, len(matrix) - 1), min_size=30, max_size=30))
    at_values = matrix[np.array(places)[:, None], family.numbers]
    thresholds = np.where(np.isnan(at_values), family.thresholds, at_values)
    family = Conjunctions(schema, family.category, family.value, family.numbers, thresholds)
    workload = Workload(schema, (family,))
    assert count(workload, matrix).tolist() == twins.conjunctions(family, matrix)


@pytest.mark.parametrize(
    ("category", "value", "number", "threshold", "message"),
    [
        (0, 3, 1, 1.0, "values"),  # the null of a column that has none
        (0, -1, 1, 1.0, "values"),
        (1, 0, 1, 1.0, "columns"),
        (0, 0, 0, 1.0, "columns"),
        (0, 0, 2, 1.0, "a column's position"),
        (0, 0, 1, math.inf, "thresholds"),
    ],
)
def test_conjunctions_that_a_kernel_could_not_count(
    category: int, value: int, number: int, threshold: float, message: str
) -> None:
    schema = Schema([Categorical("a", values=range(3)), Integer("n", lower=0, upper=1)])
    with pytest.raises(WorkloadError, match=f"the queries are not sound: {message}"):
        workloads.Conjunctions(
            schema,
            np.array([category]),
            np.array([value]),
            np.array([[number]]),
            np.array([[threshold]]),
        )


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: workloads.random_prefixes(SCHEMA, 0), "count must be a whole number from 1"),
    (lambda: workloads.random_prefixes(SCHEMA, 2**30), "count must be"),
    (
        lambda: workloads.random_prefixes(SCHEMA, 5, k=1),
        "k must be a whole number from 2 to 6, not 1",
    ),
    (lambda: workloads.random_prefixes(SCHEMA, 5, k=6), "need a discrete and 5 numeric columns"),
    (lambda: workloads.random_prefixes(SCHEMA, 5, seed=-1), "seed must be a whole number from 0"),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        make()
    assert message in str(error.value)


def test_prefixes_are_as_the_paper_draws_them() -> None:
    schema = datasets.census_schema()
    [family] = workloads.random_prefixes(schema, 50_000, seed=1).families
    assert isinstance(family, Conjunctions)
    discrete = [p for p, column in enumerate(schema) if hasattr(column, "values")]
    # Each discrete column, each value, each pair of numbers is drawn without preference: counts
    # stay within six standard deviations of their expectation.
    counts = np.bincount(family.category, minlength=len(schema))[discrete]
    expected = 50_000 / len(discrete)
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)
    assert (family.numbers[:, 0] != family.numbers[:, 1]).all()
    income = schema.names.index("income")
    cuts = family.thresholds[family.numbers == income]
    assert abs(cuts.mean() - 995_000) < 6 * 2_010_000 / np.sqrt(12 * len(cuts))
    nulls = family.value[family.category == schema.names.index("veteran")] == 2
    assert abs(nulls.mean() - 1 / 3) < 6 * np.sqrt(2 / 9 / len(nulls))


def test_seeds_give_the_same_queries() -> None:
    schema = datasets.census_schema()
    prefixes = [workloads.random_prefixes(schema, 5, seed=seed).query(0) for seed in (1, 1, 2)]
    assert prefixes[0] == prefixes[1] != prefixes[2]
