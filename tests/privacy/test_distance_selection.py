"""Selection by distance: the sensitivity that is claimed, for random neighbours, and no other."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import Categorical, ExactCounts, Integer, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.privacy.budget import UNITS_PER_RHO, Conversion
from private_gsd.privacy.measuring import LARGEST_DISTANCE, LARGEST_WEIGHT, select_by_distance
from private_gsd.privacy.noise import SecureNoise, selection_mechanism, selection_scale
from tests.privacy.test_measuring import EXACT, Watch
from tests.privacy.test_measuring import WORKLOAD as CENSUS

NEIGHBOURS: tuple[Literal["replace-one", "add-remove"], ...] = ("replace-one", "add-remove")
SCHEMA = Schema(
    [
        Categorical("only", values=["a"]),
        Categorical("colour", values=["red", "green", "blue"], nullable=True),
        Integer("age", lower=0, upper=6),
        Real("rate", lower=-1, upper=1, nullable=True),
    ]
)
WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 1)
    + workloads.categorical_marginals(SCHEMA, 2)
    + workloads.tree_marginals(SCHEMA, 2, 3)
    + workloads.tree_marginals(SCHEMA, 2, 2, categorical=0, levels="all")
    + workloads.range_marginals(SCHEMA, {"age": [(1, 2), (2, 5)], "colour": ...})
    + workloads.random_prefixes(SCHEMA, 3)
    + workloads.random_halfspaces(SCHEMA, 3)
)
ALL = list(range(WORKLOAD.num_groups))


def rows_of(rng: np.random.Generator, number: int) -> np.ndarray:
    colour = rng.choice([0, 1, 2, np.nan], number)
    rate = np.where(rng.random(number) < 0.2, np.nan, rng.uniform(-1, 1, number))
    return np.column_stack([np.zeros(number), colour, rng.integers(7, size=number), rate])


def scores(matrix: np.ndarray, **options: Any) -> tuple[np.ndarray, float]:
    """The scores that noise is added to, and its scale, for a selection among all groups."""
    watch = Watch()
    exact = ExactCounts(WORKLOAD, len(matrix), count(WORKLOAD, matrix, threads=1))
    given_: dict[str, Any] = {"candidates": ALL, "k": 1, "units": UNITS_PER_RHO // 2, **options}
    select_by_distance(exact, accountant=watch, noise=watch, **given_)
    [charge, (name, found, _, scale)] = watch.events
    assert (charge[0], name) == ("charge", "select")
    return np.array(found, dtype=object), scale


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    people=st.integers(1, 30),
    neighbours=st.sampled_from(NEIGHBOURS),
    weighed=st.booleans(),
    stated=st.integers(1, 60),
)
def test_no_neighbour_moves_a_score_further_than_the_noise_is_for(
    seed: int,
    people: int,
    neighbours: Literal["replace-one", "add-remove"],
    weighed: bool,
    stated: int,
) -> None:
    """For any shares, weights, penalties and stated number of rows; the scale is Δ at rho = 1/2."""
    rng = np.random.default_rng(seed)
    table = rows_of(rng, people)
    if neighbours == "replace-one":
        other = table.copy()
        other[rng.integers(people)] = rows_of(rng, 1)[0]
    else:
        other = np.concatenate([table, rows_of(rng, 1)])
    options: dict[str, Any] = {
        "shares": rng.random(WORKLOAD.size) ** rng.integers(1, 8),
        "rows": stated,
        "neighbours": neighbours,
    }
    if weighed:
        options["weights"] = rng.integers(1, 50, size=len(ALL)).tolist()
        options["penalties"] = rng.uniform(0, 100, size=len(ALL)).tolist()
    (one, scale), (two, same) = scores(table, **options), scores(other, **options)
    assert scale == same  # it does not depend on the table
    squares = np.maximum(WORKLOAD.squared_sensitivities(neighbours), 1)
    claims = squares * np.array(options.get("weights", [1] * len(ALL)))
    assert (np.abs(one - two) <= claims).all()
    assert scale == pytest.approx(claims.max(), rel=1e-12)
    # What OpenDP says that such a selection costs is what was paid, and no more.
    assert selection_mechanism(1, scale).map(int(claims.max())) <= 0.5


def test_the_claims_are_attained() -> None:
    """One table: two for one row that is another, one for one that is there or not."""
    assert WORKLOAD.squared_sensitivities("replace-one")[1] == 2  # colour
    assert WORKLOAD.squared_sensitivities("add-remove")[1] == 1
    table = np.array([[0, 0, 3, 0.5]] * 5)
    other = table.copy()
    other[0] = [0, 1, 6, -0.5]
    shares = count(WORKLOAD, table) / 5
    one, _ = scores(table, shares=shares, rows=5)
    two, _ = scores(other, shares=shares, rows=5)
    assert (one == 0).all()
    pair = next(g for g in ALL if WORKLOAD.describe(g) == "colour x age")
    assert two[1] == 2
    assert two[pair] == 2 * 3  # a tree of three levels
    more, _ = scores(
        np.concatenate([table, other[:1]]), shares=shares, rows=5, neighbours="add-remove"
    )
    assert (more[1], more[pair]) == (1, 3)


def test_scores_are_weighted_distances_beyond_a_penalty() -> None:
    watch = Watch()
    shares = EXACT.counts / EXACT.rows
    begin = int(CENSUS.offsets[3])
    shares[begin : begin + 2] += [0.1, -0.05]
    select_by_distance(
        EXACT,
        np.clip(shares, 0, 1),
        2000,
        [2, 3],
        1,
        2**40,
        weights=[1, 5],
        penalties=[10.4, 20.6],
        accountant=watch,
        noise=watch,
    )
    assert watch.events[1][1] == [-10, 5 * (300 - 21)]
    assert watch.events[0][1:4] == (2**40, "noisy top-k by distance", ("1 of 2 groups",))


def test_large_numbers_do_not_overflow() -> None:
    """Distances end at a public number; a score is then still a whole number of 64 bits."""
    one = Schema([Categorical("c", values=["a", "b"])])
    asked = workloads.categorical_marginals(one, 1)
    counts = np.array([2**52, 0], dtype=np.int64)
    watch = Watch()
    select_by_distance(
        ExactCounts(asked, 2**52, counts),
        np.array([0.0, 1.0]),
        2**52,
        [0],
        1,
        2**40,
        weights=[LARGEST_WEIGHT],
        penalties=[1e300],
        accountant=watch,
        noise=watch,
    )
    [score] = watch.events[1][1]
    assert score == LARGEST_WEIGHT * (2 * (LARGEST_DISTANCE // 4) - LARGEST_DISTANCE)


def test_nothing_is_charged_for_what_cannot_be_done() -> None:
    watch = Watch()
    good: dict[str, Any] = {
        "shares": EXACT.counts / 2000,
        "rows": 2000,
        "candidates": [0, 1],
        "k": 1,
        "units": 5,
        "weights": [1, 2],
        "penalties": [0.0, 1.0],
    }
    for name, value in (
        ("k", 3),
        ("rows", 0),
        ("units", 0),
        ("candidates", [0, 0]),
        ("shares", np.full(CENSUS.size, np.nan)),
        ("shares", np.full(CENSUS.size, 1.01)),
        ("weights", [1]),
        ("weights", [0, 1]),
        ("weights", [1.5, 1]),
        ("weights", [1, LARGEST_WEIGHT + 1]),
        ("penalties", [0.0]),
        ("penalties", [-1.0, 0.0]),
        ("penalties", [math.nan, 0.0]),
    ):
        with pytest.raises((BudgetError, WorkloadError)):
            select_by_distance(EXACT, **{**good, name: value}, accountant=watch, noise=watch)
    sums = workloads.sums(SCHEMA, ["age"])
    with pytest.raises(BudgetError, match="cannot select sums"):
        select_by_distance(
            ExactCounts(sums, 5, np.zeros(sums.size, dtype=np.int64)),
            np.zeros(sums.size),
            5,
            [0],
            1,
            5,
            accountant=watch,
            noise=watch,
        )
    with pytest.raises(BudgetError, match="no"):
        select_by_distance(EXACT, **good, accountant=Watch(refuse=True), noise=watch)
    assert watch.events == []


def test_how_often_the_better_one_is_selected() -> None:
    """The exponential mechanism at Δ = 2 and ε = 1: odds of e for two scores that are 4 apart."""
    one = Schema([Categorical("c", values=["a", "b"]), Categorical("d", values=["a", "b"])])
    asked = workloads.categorical_marginals(one, 1)
    exact = ExactCounts(asked, 10, np.array([5, 5, 5, 5], dtype=np.int64))
    shares = np.array([0.7, 0.3, 0.5, 0.5])
    units = UNITS_PER_RHO // 8  # ε²/8 at ε = 1
    assert selection_scale(units, 1, 2) == pytest.approx(4)

    class Free:
        conversion: Conversion = "zcdp"

        def charge(self, *_: Any) -> str:
            return "1"

    noise = SecureNoise()
    times = [
        select_by_distance(
            exact, shares, 10, [0, 1], 1, units, accountant=Free(), noise=noise
        ).groups
        for _ in range(4000)
    ]
    odds = times.count((0,)) / 4000
    expected = math.e / (1 + math.e)
    assert odds == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / 4000))
