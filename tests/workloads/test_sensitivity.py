"""Sensitivity: no neighbouring tables differ by more than is claimed, and some by just as much."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from private_gsd import Categorical, Encoder, Integer, Real, Schema, datasets, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import WorkloadError
from private_gsd.workloads import Workload

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
    claims = {each: workload.sensitivities(each) for each in NEIGHBOURS}
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
        np.testing.assert_allclose(attained, workload.sensitivities("replace-one"))
        total = np.sqrt((attained**2).sum())
        assert total == pytest.approx(workload.sensitivity())
        added = np.sqrt(np.add.reduceat(count(workload, lowest[None]), workload.offsets[:-1]))
        np.testing.assert_allclose(added, workload.sensitivities("add-remove"))


@pytest.mark.parametrize("name", ["prefixes", "halfspaces"])
def test_single_queries_attain_one(name: str, matrix: np.ndarray) -> None:
    workload = FAMILIES[name]
    singles = np.array([count(workload, matrix[[row]], threads=1) for row in range(1000)])
    met = (singles.max(axis=0) == 1) & (singles.min(axis=0) == 0)
    assert met.mean() > 0.5
    assert (workload.sensitivities() == 1).all()
    assert workload.sensitivity() == pytest.approx(np.sqrt(workload.size))


def test_the_paper_s_figures() -> None:
    assert FAMILIES["2-way"].sensitivities()[0] == pytest.approx(np.sqrt(2))
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
