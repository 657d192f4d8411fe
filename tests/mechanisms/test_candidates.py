"""Candidate queries: pairs, parts and trees of a target workload."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from private_gsd import (
    AIM,
    MST,
    Boolean,
    OneShot,
    Schema,
    Synthesizer,
    datasets,
)
from private_gsd import workloads as asked
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.mechanisms import MECHANISMS
from private_gsd.mechanisms.candidates import scopes_of, single_columns
from private_gsd.schema import Discrete
from private_gsd.workloads import Workload
from private_gsd.workloads.specs import workload_of
from tests.mechanisms.tables import CENSUS


def test_what_may_be_measured() -> None:
    schema = datasets.census_schema().select(["sex", "age", "marital", "citizen", "income"])
    questions = workload_of(schema, ["categorical:3", "tree:2:3"])
    parts = AIM().candidates(questions)
    scopes = scopes_of(parts)
    assert len(set(scopes)) == len(scopes)
    assert single_columns(parts) == 5
    assert [len(scope) for scope in scopes] == sorted(len(scope) for scope in scopes)
    for scope in scopes_of(questions):
        for number in range(1, len(scope) + 1):
            assert set(itertools.combinations(scope, number)) <= set(scopes)
    # The column by itself is asked as the questions ask it: three levels of a tree.
    assert parts.describe(1) == "age"
    assert parts.group_sizes[1] == 2 + 4 + 8
    assert (1, 4) not in scopes  # nobody asks of age by income
    # Questions keep their names, by which an evaluation finds their noise.
    names = {parts.describe(group) for group in range(parts.num_groups)}
    assert {questions.describe(group) for group in range(questions.num_groups)} <= names
    pairs = MST().candidates(questions)
    assert len(scopes_of(pairs)) == 5 + math.comb(5, 2)
    assert (1, 4) in scopes_of(pairs)
    # Its levels go together, as those of two numbers do by default.
    tree = asked.tree_marginals(schema, 2, 3, categorical=0)
    both = scopes_of(pairs).index((1, 4))
    assert pairs.group_sizes[both] == tree.group_sizes[0]
    assert OneShot().candidates(questions) is questions


def test_parts_count_the_same_as_sums_of_the_whole() -> None:
    schema = datasets.census_schema().select(["sex", "marital", "citizen"])
    questions = asked.categorical_marginals(schema, 3)
    matrix = np.column_stack([np.arange(60) % 2, np.arange(60) % 4, np.arange(60) % 2]).astype(
        float
    )
    parts = AIM().candidates(questions)
    whole = count(questions, matrix)
    sizes = [len(c.values) + c.nullable for c in schema if isinstance(c, Discrete)]
    for group, scope in enumerate(scopes_of(parts)):
        others = tuple(axis for axis in range(3) if axis not in scope)
        found = count(parts, matrix)[parts.offsets[group] : parts.offsets[group + 1]]
        np.testing.assert_array_equal(found, whole.reshape(sizes).sum(axis=others).ravel())


@pytest.mark.parametrize("name", ["mst", "aim"])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (asked.random_halfspaces(CENSUS, 3), "cannot measure halfspaces .such as halfspace 0"),
        (asked.random_prefixes(CENSUS, 3, k=2), "cannot measure prefixes"),
        (asked.sums(CENSUS), "cannot measure sums"),
    ],
)
def test_what_is_no_marginal_is_refused_by_name(name: str, more: Workload, message: str) -> None:
    target = asked.categorical_marginals(CENSUS, 2) + more
    with pytest.raises(WorkloadError, match=f"'{name}' {message}.*one-shot or adaptive"):
        Synthesizer(CENSUS, 1.0, workload=target, mechanism=name)
    sql = asked.predicates(CENSUS, ["age < 30 OR sex = 'male'"])
    with pytest.raises(WorkloadError, match=f"'{name}' cannot measure conditions in SQL"):
        MECHANISMS[name]().candidates(sql)


def test_one_column_has_no_pairs() -> None:
    target = asked.categorical_marginals(CENSUS, 1, columns=["sex"])
    with pytest.raises(WorkloadError, match=r"'mst' needs a pair of columns.* asks of sex alone"):
        Synthesizer(CENSUS, 1.0, workload=target, mechanism="mst")


def test_marginals_of_many_columns_have_too_many_parts() -> None:
    many = Schema([Boolean(f"b{n}") for n in range(9)])
    with pytest.raises(WorkloadError, match="more than 8 columns, too many to look for its parts"):
        AIM().candidates(asked.categorical_marginals(many, 9))
