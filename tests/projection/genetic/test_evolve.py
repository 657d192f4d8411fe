"""Evolving: where it ends, what it returns when stopped, and that nothing but the seed matters."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd import Categorical, Integer, Real, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import ProjectionError, WorkloadError
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.domain import random_table
from private_gsd.projection.genetic import (
    Evolution,
    GeneticSearch,
    evolve,
)
from private_gsd.projection.objective import Objective
from private_gsd.workloads import Conjunctions, Family, Workload
from tests.projection.families import FAMILIES, SCHEMA, measured
from tests.projection.genetic.census_answers import CENSUS, census, exactly, recounted, slow
from tests.strategies import examples, sql_workloads

# The large form of the kernels.
LARGE = pytest.mark.worker("large")


@pytest.mark.parametrize("weights", ["inverse-variance", "equal"])
@pytest.mark.parametrize(
    "name", [pytest.param("all of them", marks=LARGE), "two-way", "prefixes", "halfspaces"]
)
def test_the_loss_is_the_one_stated_and_only_falls(name: str, weights: Any) -> None:
    measurements = measured(FAMILIES[name](), np.random.default_rng(0))
    evolution = evolve(measurements, GeneticSearch(rows=150, weights=weights, denoise=False))
    losses = [state.loss for state in evolution.history]
    assert evolution.loss == pytest.approx(recounted(measurements, evolution, weights), rel=1e-9)
    assert evolution.reason == "converged"
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(evolution.loss, rel=1e-9)
    assert evolution.table.schema == SCHEMA.arrow_schema
    assert evolution.matrix.shape == (150, len(SCHEMA))


def test_figure_1_of_the_paper_is_fitted_exactly() -> None:
    """Three prefixes at 0.49, 0.50 and 0.51, and a table in which every value is 0.5."""
    schema = Schema([Categorical("all", values=["x"]), Real("value", lower=0, upper=1)])
    queries = Conjunctions(
        schema,
        np.zeros(3, dtype=np.int64),
        np.zeros(3, dtype=np.int64),
        np.ones((3, 1), dtype=np.int64),
        np.array([[0.49], [0.50], [0.51]]),
    )
    workload = Workload(schema, (queries,))
    table = np.column_stack([np.zeros(1000), np.full(1000, 0.5)])
    measurements = exactly(workload, table)
    assert measurements.shares.tolist() == [0, 0, 1]
    for config in (GeneticSearch(rows=100), GeneticSearch.paper(rows=100)):
        evolution = evolve(measurements, config)
        assert evolution.loss == 0
        values = evolution.matrix[:, 1]
        assert ((values >= 0.5) & (values < 0.51)).all()


def test_a_table_is_found_again() -> None:
    """Without noise a table's own answers are fitted nearly, and more rows fit better."""
    workload = workloads.categorical_marginals(CENSUS, 2) + workloads.tree_marginals(CENSUS, 2)
    table = census(2000)
    errors = []
    for rows in (50, 500, 2000):
        evolution = evolve(exactly(workload, table), GeneticSearch(rows=rows))
        answers = count(workload, evolution.matrix) / rows
        errors.append(float(np.abs(answers - count(workload, table) / 2000).mean()))
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 0.0005


def test_light_queries_count_beside_heavy_ones() -> None:
    """A total that is known almost exactly does not make the search deaf to the rest."""
    schema = Schema([Categorical(name, values=range(4)) for name in "abc"])
    rng = np.random.default_rng(0)
    table = np.minimum(rng.integers(0, 4, (1000, 3)), rng.integers(0, 4, (1000, 1))).astype(float)
    known = exactly(workloads.categorical_marginals(schema, sets=[("a",)]), table, 1e-6)
    rest = workloads.categorical_marginals(schema, sets=[("b", "c")])
    config = GeneticSearch(rows=1000, denoise=False)
    evolution = evolve(known + exactly(rest, table, 20.0), config)
    assert np.abs(count(rest, evolution.matrix) - count(rest, table)).max() <= 5
    assert (count(known.workload, evolution.matrix) == known.counts).all()


def test_light_queries_of_the_same_column() -> None:
    schema = Schema([Integer("n", lower=0, upper=63)])
    table = np.random.default_rng(1).binomial(63, 0.3, (1000, 1)).astype(np.float64)
    coarse = exactly(workloads.range_marginals(schema, {"n": [(0, 31), (32, 63)]}), table, 1e-4)
    fine = workloads.tree_marginals(schema, k=1, depth=6)
    config = GeneticSearch(rows=1000, denoise=False)
    evolution = evolve(coarse + exactly(fine, table, 100.0), config)
    assert np.abs(count(fine, evolution.matrix) - count(fine, table)).max() <= 8


def test_a_perfect_fit_ends_the_search() -> None:
    """Rounding must not make a loss of nothing fall for ever."""
    schema = Schema([Categorical(name, values=range(5)) for name in "abc"])
    workload = workloads.categorical_marginals(schema, 1)
    for seed in range(25):
        rng = np.random.default_rng(seed)
        table = rng.integers(0, 5, (300, 3)).astype(np.float64)
        scales = rng.uniform(0.1, 9, 3)
        counts = count(workload, table).astype(np.float64)
        measurements = Measurements(workload, counts, scales, 300, ("",) * 3, private=False)
        evolution = evolve(measurements, GeneticSearch(rows=300), seed=seed)
        assert evolution.reason == "converged"
        assert evolution.generations < 50
        assert min(state.loss for state in evolution.history) >= 0


def test_the_number_of_generations_is_kept() -> None:
    """Rounds of exchanges count as generations, and are in the history."""
    measurements = exactly(FAMILIES["two-way"](), random_rows(100), 0.01)
    for most in (1, 2, 3, 5, 8, 13):
        evolution = evolve(measurements, GeneticSearch(rows=40, generations=most))
        assert evolution.generations <= most
        generations = [state.generation for state in evolution.history]
        assert generations == list(range(1, evolution.generations + 1))


def random_rows(number: int) -> np.ndarray:
    """Rows of the schema that the families are of."""
    objective = Objective(measured(FAMILIES["two-way"](), np.random.default_rng(0)), "equal")
    return random_table(objective.problem.columns, number, 5)


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("two-way", GeneticSearch(rows=60)),
        pytest.param(
            "all of them", GeneticSearch(rows=60, denoise=False), marks=[LARGE, pytest.mark.slow]
        ),
        pytest.param("all of them", GeneticSearch.paper(rows=60), marks=[LARGE, pytest.mark.slow]),
    ],
)
def test_seeds(family: str, config: GeneticSearch) -> None:
    measurements = measured(FAMILIES[family](), np.random.default_rng(1))
    first, again, other = (evolve(measurements, config, seed=seed).matrix for seed in (8, 8, 9))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)


def test_a_warm_start_goes_on_from_there() -> None:
    """By the loss that is minimised: denoised answers depend on the seed."""
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    fast = GeneticSearch(rows=100, denoise=False)
    for config in (fast, GeneticSearch.paper(rows=100, weights="equal")):
        first = evolve(measurements, config)
        start = first.matrix.copy()
        again = evolve(measurements, config, seed=1, start=start)
        assert again.loss <= first.loss * (1 + 1e-9)
        np.testing.assert_array_equal(start, first.matrix)  # the caller's table is not touched
        still = evolve(measurements, GeneticSearch(rows=100, generations=0), seed=1, start=start)
        np.testing.assert_array_equal(still.matrix, start)
        assert still.reason == "generations"


@pytest.mark.parametrize("settings", [{}, {"seconds": 0}, {"generations": 2}, {"generations": 0}])
def test_a_warm_start_is_never_made_worse(settings: dict[str, Any]) -> None:
    """Not on a table that is swept in blocks, either."""
    workload = workloads.categorical_marginals(CENSUS, 2)
    start = census(9000)
    for noise in (0.0, 30.0):
        rng = np.random.default_rng(0)
        exact = exactly(workload, start, 10.0)
        counts = exact.counts + noise * rng.standard_normal(workload.size)
        groups = workload.num_groups
        measurements = Measurements(
            workload, counts, exact.scales, 9000, ("",) * groups, private=False
        )
        begin = evolve(measurements, GeneticSearch(rows=9000, generations=0), start=start)
        config = GeneticSearch(rows=9000, denoise=False, **settings)
        evolution = evolve(measurements, config, start=start)
        assert evolution.loss <= begin.loss
        assert noise > 0 or evolution.loss < 1e-20


def test_a_time_limit() -> None:
    measurements, config = slow()
    config = replace(config, seconds=0.4, denoise=False)
    evolution = evolve(measurements, config)
    assert evolution.reason == "time"
    assert evolution.seconds >= 0.4
    assert evolution.loss == pytest.approx(
        recounted(measurements, evolution, config.weights), rel=1e-9
    )
    begin = evolve(measurements, GeneticSearch(rows=config.rows, generations=0))
    assert evolution.loss < begin.loss


def test_an_interruption_returns_the_best_table_so_far() -> None:
    """A real signal, as the keyboard sends it."""
    measurements, config = slow()
    config = GeneticSearch(rows=config.rows, tolerance=0)
    evolve(measurements, GeneticSearch(rows=20, generations=1))  # compiled
    begun = threading.Event()

    def interrupt() -> None:
        begun.wait()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    evolution = evolve(measurements, config, progress=lambda *_: begun.set())
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert evolution.reason == "interrupted"
    assert evolution.loss == pytest.approx(
        recounted(measurements, evolution, config.weights), rel=1e-9
    )


def test_a_second_interruption_is_not_waited_for() -> None:
    before = threading.active_count()
    measurements, config = slow()

    def interrupt(what: str, done: float, total: float | None) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        evolve(measurements, config, progress=interrupt)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert threading.active_count() == before


def test_a_search_in_another_thread() -> None:
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    found: list[Evolution] = []
    config = GeneticSearch(rows=9000)
    threads = [
        threading.Thread(target=lambda: found.append(evolve(measurements, config, threads=2)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found[0].matrix, found[1].matrix)


def test_no_time_at_all() -> None:
    measurements, config = slow()
    for each in (
        GeneticSearch(rows=config.rows, seconds=0),
        GeneticSearch(rows=config.rows, seconds=0, denoise=False),
        GeneticSearch.paper(rows=50, seconds=0),
    ):
        evolution = evolve(measurements, each)
        assert evolution.reason == "time"
        assert evolution.table.num_rows == each.rows


@pytest.mark.parametrize(
    "config",
    [GeneticSearch(rows=50), GeneticSearch(rows=9000), GeneticSearch.paper(rows=50)],
)
def test_progress_may_stop_the_search(config: GeneticSearch) -> None:
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    reports: list[tuple[str, float, float | None]] = []

    def stop(what: str, done: float, total: float | None) -> bool:
        reports.append((what, done, total))
        return True

    evolution = evolve(measurements, config, progress=stop)
    assert evolution.reason == "stopped"
    [(what, done, total)] = reports
    assert what in {"searching", "denoising"}
    assert done >= 0
    assert total is None


def test_progress_that_fails() -> None:
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))

    def fail(what: str, done: float, total: float | None) -> None:
        raise ZeroDivisionError

    for rows in (50, 9000):
        with pytest.raises(ZeroDivisionError):
            evolve(measurements, GeneticSearch(rows=rows), progress=fail)


@pytest.mark.slow
@LARGE
@given(st.data())
def test_absurd_answers_still_give_a_table(data: st.DataObject) -> None:
    """Negative, above one, contradicting each other, and beyond all measure."""
    schema, _ = data.draw(examples())
    workload = data.draw(sql_workloads(schema)) + workloads.random_halfspaces(schema, 5)
    extreme = st.sampled_from([0.0, -1e308, 1e308, 1e12, -3.5, 1e-308]) | st.floats(-1e4, 1e4)
    scale = st.sampled_from([1e-308, 1e308, 1.0]) | st.floats(0.1, 100)
    rng = np.random.default_rng(0)
    some = np.array(data.draw(st.lists(extreme, min_size=5, max_size=5)))
    scales = np.array(data.draw(st.lists(scale, min_size=3, max_size=3)))
    groups = workload.num_groups
    measurements = Measurements(
        workload,
        rng.choice(some, workload.size),
        rng.choice(scales, groups),
        data.draw(st.sampled_from([1, 100, 2**40])),
        ("",) * groups,
        private=False,
    )
    algorithm: Any = data.draw(st.sampled_from(["fast", "paper"]))
    config = GeneticSearch(rows=8, generations=20, algorithm=algorithm)
    evolution = evolve(measurements, config)
    assert np.isfinite(evolution.loss)
    assert all(np.isfinite(state.loss) for state in evolution.history)
    count(workload, evolution.matrix)  # refuses what is outside of the domain
    assert evolution.table.num_rows == 8  # decodes, or says why not


def test_compiling_is_reported_apart() -> None:
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    begin = time.perf_counter()
    evolution = evolve(measurements, GeneticSearch(rows=50))
    whole = time.perf_counter() - begin
    assert evolution.compile_seconds > 0
    assert evolution.seconds + evolution.compile_seconds <= whole


@LARGE
def test_one_column_needs_no_kernels_of_its_own() -> None:
    """What Numba takes for another type is compiled again, which takes half a minute."""
    forms = set()
    for names in (["age"], ["sex", "age", "income"]):
        schema = CENSUS.select(names)
        workload = workloads.tree_marginals(schema, 1, 3) + workloads.sums(schema)
        objective = Objective(measured(workload, np.random.default_rng(0)), "equal")
        table = random_table(objective.problem.columns, 10, 0)
        state = objective.state(table)
        forms.add(tuple(map(numba.typeof, (objective.problem, state, objective.workspace()))))
    assert len(forms) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"threads": 0}, "threads must be a whole number from 1"),
        ({"progress": 3}, "progress must be a function, not 3"),
        ({"config": {"rows": 5}}, "config must be a GeneticSearch, not dict"),
        ({"start": "abc"}, "start must be a matrix of numbers"),
        ({"start": [[1], [2, 3]]}, "start must be a matrix of numbers"),
        ({"start": np.zeros((5, 7), dtype=complex)}, "start must be a matrix of numbers"),
        ({"start": np.zeros((4, 7))}, "start must have 5 rows and 7 columns, not shape .4, 7."),
        ({"start": np.full((5, 7), np.nan)}, "start: column 'owner' has values that the schema"),
        ({"start": np.full((5, 7), 0.5)}, "start: column 'job' has values that the schema"),
        ({"start": np.full((5, 7), -3.0)}, "start: column 'job' has values that the schema"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    with pytest.raises(ProjectionError, match=message):
        evolve(measurements, **{"config": GeneticSearch(rows=5), **options})


def test_more_elites_than_memory() -> None:
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    config = GeneticSearch.paper(rows=100_000, elites=2000)
    with pytest.raises(ProjectionError, match="2,000 elites of 700,000 values each take too much"):
        evolve(measurements, config)


def test_only_measurements_are_searched_for() -> None:
    with pytest.raises(ProjectionError, match="a search needs Measurements, not int"):
        evolve(3)  # type: ignore[arg-type]


def test_a_family_without_kernels() -> None:
    class Other:
        group_sizes = np.ones(1, dtype=np.int64)
        size = 1
        marginals = ()
        lay_out, met = Family.lay_out, Family.met

    workload = Workload(SCHEMA, (Other(),))  # type: ignore[arg-type]
    measurements = Measurements(workload, np.zeros(1), np.ones(1), 10, ("",), private=False)
    with pytest.raises(WorkloadError, match="no kernel for Other queries"):
        evolve(measurements)


def test_a_column_that_no_query_names_is_random() -> None:
    schema = Schema([Integer("asked", lower=0, upper=3), Integer("not", lower=0, upper=99)])
    workload = workloads.tree_marginals(schema, sets=[["asked"]], depth=2)
    measurements = exactly(workload, np.zeros((50, 2)))
    evolution = evolve(measurements, GeneticSearch(rows=400))
    assert (evolution.matrix[:, 0] == 0).all()
    assert len(np.unique(evolution.matrix[:, 1])) > 90
