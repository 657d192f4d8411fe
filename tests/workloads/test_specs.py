"""Texts that stand for workloads."""

from __future__ import annotations

from typing import Any

import pytest

from private_gsd import Boolean, Integer, Schema, datasets, workloads
from private_gsd.errors import WorkloadError
from private_gsd.workloads.specs import SPECS, default_specs, listed_specs, workload_of

SCHEMA = datasets.census_schema()
MADE = {
    "categorical:2": workloads.categorical_marginals(SCHEMA, 2),
    "tree:2": workloads.tree_marginals(SCHEMA, 2),
    "tree:2:3": workloads.tree_marginals(SCHEMA, 2, 3),
    "numeric:2": workloads.tree_marginals(SCHEMA, 2, 3, categorical=0),
    "numeric:2:2": workloads.tree_marginals(SCHEMA, 2, 2, categorical=0),
    "prefix:20": workloads.random_prefixes(SCHEMA, 20),
    "halfspace:20": workloads.random_halfspaces(SCHEMA, 20),
    "sum": workloads.sums(SCHEMA),
    "sum:1": workloads.sums(SCHEMA),
}


@pytest.mark.parametrize("text", MADE)
def test_a_text_stands_for_a_workload(text: str) -> None:
    for given in (text, [text]):
        found = workload_of(SCHEMA, given)
        assert repr(found) == repr(MADE[text])
        assert found.query(found.size - 1) == MADE[text].query(found.size - 1)


def test_every_registered_text_is_tried() -> None:
    assert {text.partition(":")[0] for text in MADE} == set(SPECS)
    assert all(name in listed_specs() for name in SPECS)


def test_several_texts_are_joined() -> None:
    both = workload_of(SCHEMA, ["categorical:1", "sum:1"])
    assert repr(both).endswith("groups: marginals, sums>")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "name at least one workload: categorical:K"),
        (None, "name at least one workload"),
        (["prefixes:3"], "no workload is called 'prefixes:3' .did you mean 'prefix'"),
        (["tree"], "'tree' should read tree:K or tree:K:DEPTH"),
        (["tree:1:2:3"], "should read tree:K"),
        (["categorical:1:2"], "'categorical:1:2' should read categorical:K"),
        ("prefix:many", "'prefix:many' should read prefix:COUNT"),
        (["sum:2"], "'sum:2' should read sum, the sum"),
        (["sum:x"], "'sum:x' should read sum, the sum"),
        (["sum:"], "'sum:' should read sum, the sum"),
        (["sum:1:1"], "'sum:1:1' should read sum, the sum"),
        ([5], "no workload is called 5"),
    ],
)
def test_texts_that_stand_for_nothing(given: Any, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        workload_of(SCHEMA, given)


def test_defaults_name_what_the_schema_has() -> None:
    flags, numbers = [Boolean("a"), Boolean("b")], [Integer(n, lower=0, upper=9) for n in "xy"]
    assert default_specs(Schema(flags), 3) == ["categorical:2"]
    assert default_specs(Schema(numbers)) == ["tree:1", "numeric:2"]
    assert default_specs(Schema([*flags, *numbers]), 1) == ["categorical:1", "tree:1"]
    assert default_specs(Schema([*flags, *numbers])) == ["categorical:2", "tree:2", "numeric:2"]
