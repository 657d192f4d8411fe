"""Workloads: groups, sums of workloads, and sensitivities that no neighbours exceed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import (
    Boolean,
    Categorical,
    Encoder,
    Integer,
    Real,
    Schema,
    datasets,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.workloads import Workload
from tests.strategies import examples, sql_workloads
from tests.workloads.test_marginal_constructors import SCHEMA as SMALL

NEIGHBOURS: tuple[Literal["replace-one", "add-remove"], ...] = ("replace-one", "add-remove")
SCHEMA = datasets.census_schema().select(
    ["sex", "age", "birth_date", "marital", "rent", "education", "income", "citizen"]
)
FAMILIES = {
    "1-way": workloads.categorical_marginals(SCHEMA, 1),
    "2-way": workloads.categorical_marginals(SCHEMA, 2),
    "3-way": workloads.categorical_marginals(SCHEMA, 3),
    "trees": workloads.tree_marginals(SCHEMA, 2, 5),
    "trees of two numbers": workloads.tree_marginals(SCHEMA, 2, 3, categorical=0, levels="all"),
    "trees of one": workloads.tree_marginals(SCHEMA, 1, 5),
    "ranges": workloads.range_marginals(
        SCHEMA, {"age": [(0, 17), (18, 64)], "income": [(0, 9e3), (0, 5e4), (2e4, 2e6)], "sex": ...}
    ),
    "prefixes": workloads.random_prefixes(SCHEMA, 50),
    "halfspaces": workloads.random_halfspaces(SCHEMA, 50),
}
FAMILIES["all"] = FAMILIES["2-way"] + FAMILIES["trees"] + FAMILIES["prefixes"]


@pytest.fixture(scope="module")
def matrix() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    [batch] = datasets.census(3000).select(SCHEMA.names).to_batches()
    return Encoder(SCHEMA).encode(batch)


def changes(workload: Workload, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The L2 norm of each group's change."""
    difference = (count(workload, after) - count(workload, before)) ** 2
    return np.sqrt(np.add.reduceat(difference, workload.offsets[:-1]))


@pytest.mark.parametrize("name", FAMILIES)
def test_no_pair_exceeds_the_claim(name: str, matrix: np.ndarray) -> None:
    """Thousands of pairs: a table of one row against a table of another, or against none."""
    workload = FAMILIES[name]
    rng = np.random.default_rng(0)
    nothing = np.zeros(workload.size, dtype=np.int64)
    # The change does not depend on the other rows, so that single rows are all there is to try.
    singles = [count(workload, matrix[[row]], threads=1) for row in range(300)]
    claims = {each: np.sqrt(workload.squared_sensitivities(each)) for each in NEIGHBOURS}
    for _ in range(3000):
        one, other = rng.integers(300, size=2)
        for neighbours, pair in (
            ("replace-one", (singles[one], singles[other])),
            ("add-remove", (singles[one], nothing)),
        ):
            squares = (pair[0] - pair[1]) ** 2
            groups = np.sqrt(np.add.reduceat(squares, workload.offsets[:-1]))
            claim = claims[neighbours]  # type: ignore[index]
            assert (groups <= claim + 1e-12).all()
            assert np.sqrt(squares.sum()) <= np.sqrt((claim**2).sum()) + 1e-9


def test_the_change_does_not_depend_on_the_other_rows(matrix: np.ndarray) -> None:
    workload = FAMILIES["all"]
    before, after = matrix[:1000].copy(), matrix[:1000].copy()
    after[7] = matrix[2000]
    np.testing.assert_array_equal(
        changes(workload, before, after), changes(workload, before[[7]], after[[7]])
    )


def test_the_worst_pair_attains_the_claim() -> None:
    """One row against another that differs in every column, so in every cell of every table."""
    lowest = np.zeros(len(SCHEMA))
    highest = np.zeros(len(SCHEMA))
    for position, column in enumerate(SCHEMA):
        bounds = getattr(column, "bounds", None)
        lowest[position], highest[position] = bounds or (0, 1)
    for name in ("1-way", "2-way", "3-way", "trees", "trees of two numbers", "trees of one"):
        workload = FAMILIES[name]
        attained = changes(workload, lowest[None], highest[None])
        np.testing.assert_allclose(attained**2, workload.squared_sensitivities("replace-one"))
        total = np.sqrt((attained**2).sum())
        assert total == pytest.approx(workload.sensitivity())
        added = np.add.reduceat(count(workload, lowest[None]), workload.offsets[:-1])
        np.testing.assert_array_equal(added, workload.squared_sensitivities("add-remove"))


@pytest.mark.parametrize("name", ["prefixes", "halfspaces"])
def test_single_queries_attain_one(name: str, matrix: np.ndarray) -> None:
    workload = FAMILIES[name]
    singles = np.array([count(workload, matrix[[row]], threads=1) for row in range(1000)])
    met = (singles.max(axis=0) == 1) & (singles.min(axis=0) == 0)
    assert met.mean() > 0.5
    assert (workload.squared_sensitivities() == 1).all()
    assert workload.sensitivity() == pytest.approx(np.sqrt(workload.size))


def test_the_paper_s_figures() -> None:
    assert FAMILIES["2-way"].sensitivity([0]) == pytest.approx(np.sqrt(2))
    assert workloads.tree_marginals(SCHEMA, sets=[("sex", "income")]).sensitivity() == (
        pytest.approx(np.sqrt(10))
    )
    assert FAMILIES["2-way"].sensitivity([0, 3]) == pytest.approx(2)
    assert FAMILIES["2-way"].sensitivity([0, 3], "add-remove") == pytest.approx(np.sqrt(2))


def test_tables_of_one_cell() -> None:
    """Replacing a row cannot change a count that is always N; leaving the only range can, by 1."""
    schema = Schema([Categorical("only", values=("a",)), Integer("n", lower=0, upper=9)])
    assert workloads.categorical_marginals(schema, 1).sensitivity() == 0
    assert workloads.categorical_marginals(schema, 1).sensitivity(None, "add-remove") == 1
    assert workloads.range_marginals(schema, {"n": [(0, 4)]}).sensitivity() == 1
    assert workloads.range_marginals(schema, {"n": [(0, 9)]}).sensitivity() == 0
    two = workloads.range_marginals(schema, {"n": [(0, 4), (5, 9)]})
    assert two.sensitivity() == pytest.approx(np.sqrt(2))


def test_redundant_levels_are_not_paid_for() -> None:
    schema = Schema([Integer("n", lower=0, upper=3), Real("r", lower=0, upper=3)])
    assert workloads.tree_marginals(schema, sets=[("n",)]).sensitivity() == pytest.approx(2)
    assert workloads.tree_marginals(schema, sets=[("r",)]).sensitivity() == pytest.approx(
        np.sqrt(10)
    )


def test_neighbours_have_names() -> None:
    with pytest.raises(WorkloadError, match="'replace-one' or 'add-remove', not 'both'"):
        FAMILIES["2-way"].sensitivity(None, "both")  # type: ignore[arg-type]


def test_a_sensitivity_is_never_rounded_down() -> None:
    """Its square, in exact arithmetic, is at least the whole number that it stands for."""
    schema = Schema([Real("r", lower=0, upper=1)])
    for depth in (1, 3, 5, 6):
        tree = workloads.tree_marginals(schema, 1, depth)
        for copies in (1, 3, 39):
            many = tree
            for _ in range(copies - 1):
                many = many + tree
            for neighbours, each in (("replace-one", 2 * depth), ("add-remove", depth)):
                claim = Fraction(many.sensitivity(None, neighbours))  # type: ignore[arg-type]
                assert claim**2 >= each * copies


WRONG: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: workloads.categorical_marginals(SMALL, 1).select(np.array([False, True])),
        "by their numbers",
    ),
    (lambda: workloads.categorical_marginals(SMALL, 1).select([0.9]), "by their numbers"),  # type: ignore[list-item]
    (lambda: workloads.categorical_marginals(SMALL, 1).sensitivity([-1]), "groups 0 to 1 only"),
    (
        lambda: workloads.categorical_marginals(SMALL, 1).sensitivity(np.array([True, False])),
        "by their numbers",
    ),
    (lambda: workloads.categorical_marginals(SMALL, 1).select([0, 0]), "given twice"),
    (lambda: workloads.categorical_marginals(SMALL, 1).select([]), "some of the groups 0 to 1"),
    (
        lambda: workloads.categorical_marginals(SMALL, 1).select([2]),
        "there are groups 0 to 1 only",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        make()
    assert message in str(error.value)


def test_sizes_and_layout() -> None:
    workload = workloads.categorical_marginals(SMALL, 2)
    assert workload.size == 2 * 3
    assert workload.group_sizes.tolist() == [6]
    assert workload.query(0) == "sex = 'f' AND veteran = FALSE"
    assert workload.query(5) == "sex = 'm' AND veteran IS NULL"
    trees = workloads.tree_marginals(SMALL, sets=[("pay", "sex")], depth=2)
    assert trees.size == 2 * (2 + 1) + 2 * (4 + 1)
    assert trees.query(0) == "pay < 5.0 AND sex = 'f'"
    assert trees.query(2) == "pay >= 5.0 AND sex = 'f'"
    assert trees.query(4) == "pay IS NULL AND sex = 'f'"
    assert trees.query(trees.size - 1) == "pay IS NULL AND sex = 'm'"
    assert trees.describe(0) == "pay x sex"
    both = workload + trees
    assert both.offsets.tolist() == [0, 6, 22]
    assert both.query(6) == trees.query(0)
    assert repr(both) == "<Workload of 22 queries in 2 groups: marginals>"
    for index in (-1, 22):
        with pytest.raises(IndexError, match="no query"):
            both.query(index)
    with pytest.raises(IndexError, match="no group 2; there are 2"):
        both.describe(2)


@pytest.mark.parametrize("values", [["f"], ["f", "m", "x"]])
def test_different_schemas_cannot_be_joined(values: list[str]) -> None:
    other = Schema([Categorical("sex", values=values), Boolean("veteran")])
    with pytest.raises(WorkloadError, match="different schemas"):
        workloads.categorical_marginals(SMALL, 1) + workloads.categorical_marginals(other, 1)


def test_only_workloads_can_be_added() -> None:
    with pytest.raises(TypeError):
        workloads.categorical_marginals(SMALL, 1) + 3


@given(st.data())
def test_selected_groups_keep_their_counts(data: st.DataObject) -> None:
    schema, matrix = data.draw(examples())
    workload = data.draw(sql_workloads(schema)) + workloads.random_halfspaces(schema, 600)
    chosen = sorted(
        data.draw(st.sets(st.integers(0, workload.num_groups - 1), min_size=1, max_size=9))
    )
    counts = count(workload, matrix)
    expected = [
        counts[workload.offsets[group] : workload.offsets[group + 1]].tolist() for group in chosen
    ]
    selected = workload.select(chosen)
    assert count(selected, matrix).tolist() == [value for part in expected for value in part]
    assert [selected.describe(group) for group in range(len(chosen))] == [
        workload.describe(group) for group in chosen
    ]
