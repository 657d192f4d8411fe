"""Selection: paid before noise is drawn, with the sensitivity that is claimed for neighbours."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import (
    Categorical,
    ExactCounts,
    Integer,
    Real,
    Schema,
    datasets,
    exact_counts,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.errors import BudgetError, WorkloadError
from private_gsd.privacy.budget import UNITS_PER_RHO, Conversion
from private_gsd.privacy.noise import (
    SecureNoise,
    noisy_top_k,
    selection_scale,
)
from private_gsd.privacy.selection import (
    LARGEST_DISTANCE,
    LARGEST_WEIGHT,
    select_by_distance,
    select_farthest,
    select_groups,
)
from tests.privacy.census_counts import EXACT, SCHEMA, WORKLOAD, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

NEIGHBOURS: tuple[Literal["replace-one", "add-remove"], ...] = ("replace-one", "add-remove")
SMALL_SCHEMA = Schema(
    [
        Categorical("only", values=["a"]),
        Categorical("colour", values=["red", "green", "blue"], nullable=True),
        Integer("age", lower=0, upper=6),
        Real("rate", lower=-1, upper=1, nullable=True),
    ]
)
SMALL_WORKLOAD = (
    workloads.categorical_marginals(SMALL_SCHEMA, 1)
    + workloads.categorical_marginals(SMALL_SCHEMA, 2)
    + workloads.tree_marginals(SMALL_SCHEMA, 2, 3)
    + workloads.tree_marginals(SMALL_SCHEMA, 2, 2, categorical=0, levels="all")
    + workloads.range_marginals(SMALL_SCHEMA, {"age": [(1, 2), (2, 5)], "colour": ...})
    + workloads.random_prefixes(SMALL_SCHEMA, 3)
    + workloads.random_halfspaces(SMALL_SCHEMA, 3)
)
ALL = list(range(SMALL_WORKLOAD.num_groups))


def test_the_scores_of_selection() -> None:
    watch = Watch()
    answers = EXACT.counts / EXACT.n_records
    answers[WORKLOAD.offsets[3]] += 0.1
    chosen = select_groups(EXACT, answers, 2000, [2, 3, 4], 2, 2**40, accountant=watch, noise=watch)
    assert chosen.groups == (2, 3)
    assert chosen.private
    assert [event[0] for event in watch.events] == ["charge", "select"]
    assert watch.events[1][1] == [0, 200, 0]
    assert watch.events[0][2] == "noisy top-k"


def test_one_record_moves_no_score_by_more_than_one() -> None:
    table = datasets.census(300, seed=5).select(SCHEMA.names)
    records = datasets.census(300, seed=6).select(SCHEMA.names)
    rng = np.random.default_rng(0)
    answers = rng.random(WORKLOAD.size)
    scores = []
    for row in range(60):
        other = pa.concat_tables([table.slice(0, 299), records.slice(row, 1)])
        watch = Watch()
        exact = exact_counts(WORKLOAD, other)
        everything = list(range(WORKLOAD.num_groups))
        select_groups(exact, answers, 300, everything, 1, 2**40, accountant=watch, noise=watch)
        scores.append(watch.events[1][1])
    spread = np.ptp(np.array(scores), axis=0)
    assert spread.max() == 1


def test_nothing_is_selected_when_the_charge_is_refused() -> None:
    watch, refusing = Watch(), Watch(refuse=True)
    for select in (select_groups, select_by_distance):
        with pytest.raises(BudgetError, match="no"):
            select(EXACT, EXACT.counts / 2000, 2000, [0, 1], 1, 5, accountant=refusing, noise=watch)
    assert watch.events == []


def test_nothing_is_charged_for_what_cannot_be_selected() -> None:
    watch = Watch()
    good: dict[str, Any] = {
        "answers": EXACT.counts / 2000,
        "n_records": 2000,
        "candidates": [0, 1],
        "k": 1,
        "units": 5,
    }
    for name, value in (
        ("k", 3),
        ("k", 0),
        ("n_records", None),
        ("n_records", 0),
        ("n_records", 2.5),
        ("units", 0),
        ("candidates", [0, 0]),
        ("candidates", [-1, 0]),
        ("candidates", [0.5]),
        ("answers", EXACT.counts[:-1] / 2000),
        ("answers", np.full(WORKLOAD.size, np.nan)),
        ("answers", np.full(WORKLOAD.size, np.inf)),
        ("answers", np.full(WORKLOAD.size, -1e17)),
        ("answers", np.full(WORKLOAD.size, 1.01)),
    ):
        with pytest.raises((BudgetError, WorkloadError)):
            select_groups(EXACT, **{**good, name: value}, accountant=watch, noise=watch)
    assert watch.events == []


def rows_of(rng: np.random.Generator, number: int) -> np.ndarray:
    colour = rng.choice([0, 1, 2, np.nan], number)
    rate = np.where(rng.random(number) < 0.2, np.nan, rng.uniform(-1, 1, number))
    return np.column_stack([np.zeros(number), colour, rng.integers(7, size=number), rate])


def scores(matrix: np.ndarray, **options: Any) -> tuple[np.ndarray, float]:
    """The scores that noise is added to, and its scale, for a selection among all groups."""
    watch = Watch()
    exact = ExactCounts(SMALL_WORKLOAD, len(matrix), count(SMALL_WORKLOAD, matrix, threads=1))
    given_: dict[str, Any] = {"candidates": ALL, "k": 1, "units": UNITS_PER_RHO // 2, **options}
    select_by_distance(exact, accountant=watch, noise=watch, **given_)
    [charge, (name, found, _, scale)] = watch.events
    assert (charge[0], name) == ("charge", "select")
    return np.array(found, dtype=object), scale


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    records=st.integers(1, 30),
    neighbours=st.sampled_from(NEIGHBOURS),
    weighed=st.booleans(),
    stated=st.integers(1, 60),
)
def test_no_neighbour_moves_a_score_further_than_the_noise_is_for(
    seed: int,
    records: int,
    neighbours: Literal["replace-one", "add-remove"],
    weighed: bool,
    stated: int,
) -> None:
    """For any answers, weights, penalties and number of records; the scale is Δ at rho = 1/2."""
    rng = np.random.default_rng(seed)
    table = rows_of(rng, records)
    if neighbours == "replace-one":
        other = table.copy()
        other[rng.integers(records)] = rows_of(rng, 1)[0]
    else:
        other = np.concatenate([table, rows_of(rng, 1)])
    options: dict[str, Any] = {
        "answers": rng.random(SMALL_WORKLOAD.size) ** rng.integers(1, 8),
        "n_records": stated,
        "neighbours": neighbours,
    }
    if weighed:
        options["weights"] = rng.integers(1, 50, size=len(ALL)).tolist()
        options["penalties"] = rng.uniform(0, 100, size=len(ALL)).tolist()
    (one, scale), (two, same) = scores(table, **options), scores(other, **options)
    assert scale == same  # it does not depend on the table
    squares = np.maximum(SMALL_WORKLOAD.squared_sensitivities(neighbours), 1)
    claims = squares * np.array(options.get("weights", [1] * len(ALL)))
    assert (np.abs(one - two) <= claims).all()
    assert scale == pytest.approx(claims.max(), rel=1e-12)
    # What OpenDP says that such a selection costs is what was paid, and no more.
    assert noisy_top_k(1, scale).map(int(claims.max())) <= 0.5


def test_the_claims_are_attained() -> None:
    """One table: two for one row that is another, one for one that is there or not."""
    assert SMALL_WORKLOAD.squared_sensitivities("replace-one")[1] == 2  # colour
    assert SMALL_WORKLOAD.squared_sensitivities("add-remove")[1] == 1
    table = np.array([[0, 0, 3, 0.5]] * 5)
    other = table.copy()
    other[0] = [0, 1, 6, -0.5]
    answers = count(SMALL_WORKLOAD, table) / 5
    one, _ = scores(table, answers=answers, n_records=5)
    two, _ = scores(other, answers=answers, n_records=5)
    assert (one == 0).all()
    pair = next(g for g in ALL if SMALL_WORKLOAD.describe(g) == "colour x age")
    assert two[1] == 2
    assert two[pair] == 2 * 3  # a tree of three levels
    more, _ = scores(
        np.concatenate([table, other[:1]]), answers=answers, n_records=5, neighbours="add-remove"
    )
    assert (more[1], more[pair]) == (1, 3)


def test_scores_are_weighted_distances_beyond_a_penalty() -> None:
    watch = Watch()
    answers = EXACT.counts / EXACT.n_records
    begin = int(WORKLOAD.offsets[3])
    answers[begin : begin + 2] += [0.1, -0.05]
    select_by_distance(
        EXACT,
        np.clip(answers, 0, 1),
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


def test_nothing_is_charged_for_distances_that_cannot_be_selected() -> None:
    watch = Watch()
    good: dict[str, Any] = {
        "answers": EXACT.counts / 2000,
        "n_records": 2000,
        "candidates": [0, 1],
        "k": 1,
        "units": 5,
        "weights": [1, 2],
        "penalties": [0.0, 1.0],
    }
    for name, value in (
        ("k", 3),
        ("n_records", 0),
        ("units", 0),
        ("candidates", [0, 0]),
        ("answers", np.full(WORKLOAD.size, np.nan)),
        ("answers", np.full(WORKLOAD.size, 1.01)),
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
    sums = workloads.sums(SMALL_SCHEMA, ["age"])
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
    assert watch.events == []


def test_how_often_the_better_one_is_selected() -> None:
    """The exponential mechanism at Δ = 2 and ε = 1: odds of e for two scores that are 4 apart."""
    one = Schema([Categorical("c", values=["a", "b"]), Categorical("d", values=["a", "b"])])
    asked = workloads.categorical_marginals(one, 1)
    exact = ExactCounts(asked, 10, np.array([5, 5, 5, 5], dtype=np.int64))
    answers = np.array([0.7, 0.3, 0.5, 0.5])
    units = UNITS_PER_RHO // 8  # ε²/8 at ε = 1
    assert selection_scale(units, 1, 2) == pytest.approx(4)

    class Unlimited:
        conversion: Conversion = "zcdp"

        def charge(self, *_: Any) -> str:
            return "1"

    noise = SecureNoise()
    times = [
        select_by_distance(
            exact, answers, 10, [0, 1], 1, units, accountant=Unlimited(), noise=noise
        ).groups
        for _ in range(4000)
    ]
    odds = times.count((0,)) / 4000
    expected = math.e / (1 + math.e)
    assert odds == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / 4000))


def scores_in_parts(
    matrix: np.ndarray, answers: np.ndarray, floors: np.ndarray, cuts: list[int], **options: Any
) -> tuple[np.ndarray, float]:
    """The scores of all groups, part by part, and the scale of the noise."""
    watch = Watch()

    def parts() -> Iterator[Any]:
        for first, last in itertools.pairwise([0, *cuts, SMALL_WORKLOAD.num_groups]):
            some = SMALL_WORKLOAD.select(range(first, last))
            begin, end = SMALL_WORKLOAD.offsets[[first, last]]
            exact = ExactCounts(some, len(matrix), count(some, matrix, threads=1))
            yield exact, answers[begin:end], floors[begin:end]

    terms: dict[str, Any] = {"k": 1, "units": UNITS_PER_RHO // 2, **options}
    select_farthest(parts(), accountant=watch, noise=watch, **terms)
    [charge, (name, found, _, scale)] = watch.events
    assert (charge[0], name) == ("charge", "select")
    return np.array(found, dtype=object), scale


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    records=st.integers(1, 30),
    neighbours=st.sampled_from(NEIGHBOURS),
    stated=st.integers(1, 60),
    cuts=st.lists(st.integers(1, SMALL_WORKLOAD.num_groups - 1), unique=True, max_size=3),
)
def test_no_neighbour_moves_a_score_of_parts_further_than_the_noise_is_for(
    seed: int,
    records: int,
    neighbours: Literal["replace-one", "add-remove"],
    stated: int,
    cuts: list[int],
) -> None:
    """For any answers, floors and parts, and the measured number of records."""
    rng = np.random.default_rng(seed)
    table = rows_of(rng, records)
    if neighbours == "replace-one":
        other = table.copy()
        other[rng.integers(records)] = rows_of(rng, 1)[0]
    else:
        other = np.concatenate([table, rows_of(rng, 1)])
    answers = rng.random(SMALL_WORKLOAD.size) ** rng.integers(1, 8)
    floors = rng.uniform(0, rng.choice([1e-9, 3.0, 40.0]), SMALL_WORKLOAD.size)
    options: dict[str, Any] = {"n_records": stated, "neighbours": neighbours}
    given_ = (answers, floors, sorted(cuts))
    one, scale = scores_in_parts(table, *given_, **options)
    two, same = scores_in_parts(other, *given_, **options)
    assert scale == same  # it does not depend on the table
    claims = np.maximum(SMALL_WORKLOAD.squared_sensitivities(neighbours), 1)
    assert (np.abs(one - two) <= claims).all()
    assert scale == pytest.approx(claims.max(), rel=1e-12)
    assert noisy_top_k(1, scale).map(int(claims.max())) <= 0.5
    # The slow, obvious twin: no floors, one part.
    plain, _ = scores(table, answers=answers, n_records=stated, neighbours=neighbours)
    found, _ = scores_in_parts(table, answers, np.zeros(len(floors)), sorted(cuts), **options)
    assert (found == plain).all()
    assert (one <= found).all()


def test_the_claims_of_parts_are_attained() -> None:
    """A row that is another moves a score by two, one that is there or not by one."""
    table = np.array([[0, 0, 3, 0.5]] * 5)
    other = table.copy()
    other[0] = [0, 1, 6, -0.5]
    answers, floors = count(SMALL_WORKLOAD, table) / 5, np.zeros(SMALL_WORKLOAD.size)
    one, _ = scores_in_parts(table, answers, floors, [3], n_records=None)
    two, _ = scores_in_parts(other, answers, floors, [3], n_records=None)
    assert (one == 0).all()
    assert two[1] == 2
    more, _ = scores_in_parts(
        np.concatenate([table, other[:1]]),
        answers,
        floors,
        [3],
        n_records=5,
        neighbours="add-remove",
    )
    assert more[1] == 1
    # A floor is taken off every cell.
    beyond, _ = scores_in_parts(other, answers, floors + 0.6, [3], n_records=None)
    assert beyond[1] == 0


def test_nothing_is_charged_for_parts_that_cannot_be_selected() -> None:
    watch = Watch()
    answers, floors = EXACT.counts / 2000, np.zeros(WORKLOAD.size)
    good: dict[str, Any] = {"parts": [(EXACT, answers, floors)], "n_records": None, "k": 1}
    for name, value in (
        ("k", WORKLOAD.num_groups + 1),
        ("k", 0),
        ("n_records", 0),
        ("units", 0),
        ("parts", [(EXACT, answers, floors), (EXACT, answers[:-1], floors)]),
        ("parts", [(EXACT, np.full(WORKLOAD.size, 1.01), floors)]),
        ("parts", [(EXACT, answers, floors[:-1])]),
        ("parts", [(EXACT, answers, floors - 1)]),
        ("parts", [(EXACT, answers, np.full(WORKLOAD.size, np.nan))]),
    ):
        with pytest.raises((BudgetError, WorkloadError)):
            select_farthest(**{"units": 5, **good, name: value}, accountant=watch, noise=watch)
    assert watch.events == []
    refusing = Watch(refuse=True)
    with pytest.raises(BudgetError, match="no"):
        select_farthest(**good, units=5, accountant=refusing, noise=watch)
    assert watch.events == []
    chosen = select_farthest(
        [(EXACT, answers, floors)] * 2, None, 3, 5, accountant=watch, noise=watch
    )
    assert chosen.groups == (0, 1, 2)
    assert watch.events[0][2:4] == (
        "noisy top-k by distance",
        (f"3 of {2 * WORKLOAD.num_groups} groups",),
    )


def test_distances_of_parts_do_not_overflow() -> None:
    one = Schema([Categorical("c", values=["a", "b"])])
    asked = workloads.categorical_marginals(one, 1)
    exact = ExactCounts(asked, 2**52, np.array([2**52, 0], dtype=np.int64))
    watch = Watch()
    part = (exact, np.array([0.0, 1.0]), np.array([0.0, 1e300]))
    select_farthest([part], 2**52, 1, 2**40, accountant=watch, noise=watch)
    assert watch.events[1][1] == [LARGEST_DISTANCE // 4]
