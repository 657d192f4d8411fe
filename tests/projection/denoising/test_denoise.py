"""Denoising: heat baths against exact chances, sums, strengths, and that errors do fall."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import Categorical, Encoder, Schema, datasets, workloads
from private_gsd.counting.exact import count
from private_gsd.errors import ProjectionError
from private_gsd.kernels.gibbs import anneal
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising import denoise
from private_gsd.projection.denoising.chow_liu import Edge, laid_out, no_forest
from private_gsd.projection.denoising.denoise import Denoising, centered, rows_drawn
from private_gsd.projection.denoising.gibbs import Chains
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.projection.objective import Objective
from private_gsd.projection.watch import Watch
from private_gsd.workloads import Workload
from private_gsd.workloads.specs import workload_of

CENSUS = datasets.census_schema().select(
    ["sex", "marital", "citizen", "education", "occupation", "age", "income"]
)


def people(rows: int) -> np.ndarray:
    table = datasets.census(rows, seed=5).select(CENSUS.names)
    return Encoder(CENSUS).encode(table.combine_chunks().to_batches()[0])


def noisy(workload: Workload, matrix: np.ndarray, share: float, seed: int = 0) -> Measurements:
    """The answers of a table with noise of that share of the rows."""
    rng = np.random.default_rng(seed)
    scale = share * len(matrix)
    noise = np.rint(scale * rng.standard_normal(workload.size))
    counts = count(workload, matrix).astype(np.float64) + noise
    groups = workload.num_groups
    return Measurements(
        workload, counts, np.full(groups, scale), len(matrix), ("",) * groups, private=False
    )


def watch() -> Watch:
    return Watch(1.0, None, None)


def error(workload: Workload, truth: np.ndarray, shares: np.ndarray) -> float:
    return float(np.abs(count(workload, truth) / len(truth) - shares).mean())


@pytest.mark.parametrize("lifts", [None, [[0.5, -1.0, 0.2], [-0.4, 0.9, 0.0]]])
def test_a_heat_bath_makes_tables_as_often_as_they_deserve(lifts: Any) -> None:
    """All 216 tables of three rows, by their exact chances, with and without neighbours.

    The frequencies of 40,000 tables, each three sweeps after the last, are held against them, by
    five sigma of a chi-square statistic. Chances that were off by a tenth would leave the bound far
    behind, which is tested, too.
    """
    schema = Schema([Categorical("a", values=[0, 1]), Categorical("b", values=[0, 1, 2])])
    workload = workloads.categorical_marginals(schema, 2) + workloads.categorical_marginals(
        schema, 1
    )
    rng = np.random.default_rng(0)
    measured = Measurements(
        workload, rng.normal(5, 3, workload.size), np.array([2.0, 1.0, 3.0]), 20, ("",) * 3, False
    )
    objective = Objective(measured, "inverse-variance")
    temperature = 1.7
    chances = np.log([0.3, 0.7, 0.2, 0.5, 0.3])
    columns = objective.problem.columns._replace(barriers=temperature * chances)
    problem = objective.problem._replace(columns=columns)

    kinds = list(itertools.product(range(2), range(3)))
    weights = {}
    for rows in itertools.product(range(6), repeat=3):
        table = np.array([kinds[each] for each in rows], dtype=np.float64)
        loss = objective.loss(objective.state(table.copy()))
        before = sum(chances[int(a)] + chances[2 + int(b)] for a, b in table)
        if lifts is not None:
            before += sum(lifts[int(a)][int(b)] for a, b in table)
        weights[rows] = math.exp(before - loss / temperature)
    expected = np.array(list(weights.values())) / sum(weights.values())

    edges = [] if lifts is None else [(Edge(1.0, 0, 1), np.array(lifts))]
    forest = laid_out(2, edges)
    state, room = objective.state(np.zeros((3, 2))), objective.row()
    order = np.arange(3)
    seen = np.zeros(216)
    number = 40_000
    for generation in range(3 * number):
        anneal(problem, state, order, 7, generation, temperature, forest, room)
        if generation % 3 == 2:
            a, b = state.atoms[:, 0], state.atoms[:, 1]
            seen[np.dot(3 * a + b, [36, 6, 1])] += 1
    likely = expected * number > 5
    statistic = float(((seen - number * expected) ** 2 / (number * expected))[likely].sum())
    degrees = int(likely.sum())
    # What is left of the dependence after three sweeps makes it somewhat more than chi-square.
    assert statistic < 1.2 * degrees + 5 * math.sqrt(2 * degrees)
    off = expected * np.where(np.arange(216) % 2, 1.1, 0.9)
    off /= off.sum()
    wrong = float(((seen - number * off) ** 2 / (number * off))[likely].sum())
    assert wrong > 1.4 * (1.2 * degrees + 5 * math.sqrt(2 * degrees))


def test_what_no_rule_allows_is_never_drawn() -> None:
    schema = Schema([Categorical("a", values=[0, 1, 2])])
    workload = workloads.categorical_marginals(schema, 1)
    measured = noisy(workload, np.zeros((100, 1)), 0.01)
    objective = Objective(measured, "inverse-variance")
    columns = objective.problem.columns._replace(barriers=np.array([-np.inf, 0.0, -np.inf]))
    problem = objective.problem._replace(columns=columns)
    state = objective.state(np.ones((50, 1)))
    for generation in range(20):
        anneal(problem, state, np.arange(50), 1, generation, 100.0, no_forest(1), objective.row())
    assert (state.values == 1).all()


def test_columns_that_nobody_asked_for_stay_without_preference() -> None:
    """2,000 rows of four values: five sigma of a share is 0.05."""
    schema = Schema([Categorical("a", values=[0, 1]), Categorical("free", values=[0, 1, 2, 3])])
    workload = Workload(schema, workloads.categorical_marginals(schema, 1).select([0]).families)
    measured = noisy(workload, np.zeros((100, 2)), 0.05)
    chains = Chains(measured, 2000, 0, np.array([True, False]))
    chains.run(watch(), 1)
    shares = np.bincount(chains.states[0].atoms[:, 1], minlength=4) / 2000
    assert np.abs(shares - 0.25).max() < 0.06


@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 4), st.integers(0, 2**32))
def test_a_centered_table_says_nothing_of_its_sums(a: int, b: int, c: int, seed: int) -> None:
    table = np.random.default_rng(seed).normal(size=(a, b, c))
    found = centered(table)
    for axis in range(3):
        assert np.abs(found.sum(axis=axis)).max() < 1e-9
    assert np.allclose(centered(found), found)


@pytest.mark.parametrize("specs", [["categorical:2"], ["categorical:3"], ["tree:2:3"]])
def test_sums_of_true_answers_are_true(specs: list[str]) -> None:
    """Without noise, lower orders from any tables are the lower orders of the data."""
    workload, table = workload_of(CENSUS, specs), people(500)
    groups = workload.num_groups
    counts = count(workload, table).astype(np.float64)
    exact = Measurements(workload, counts, np.ones(groups), 500, ("",) * groups, private=False)
    tables = denoise._tables(workload)
    for order in (1, 2):
        found = denoise._below(exact, tables, order, exact.shares)
        assert np.allclose(found.counts, count(found.workload, table))


def test_variances_of_sums_are_those_of_noise() -> None:
    """Of 400 draws: the empirical variance is within a quarter (five sigma: 0.35)."""
    workload, table = workload_of(CENSUS, ["categorical:2"]), people(500)
    tables = denoise._tables(workload)
    draws = []
    for seed in range(400):
        measured = noisy(workload, table, 0.05, seed)
        draws.append(denoise._below(measured, tables, 1, measured.shares))
    counts = np.array([draw.counts for draw in draws])
    sizes = draws[0].workload.group_sizes
    ratio = counts.var(axis=0) / np.repeat(draws[0].scales, sizes) ** 2
    assert ratio.min() > 0.65
    assert ratio.max() < 1.35
    assert abs(ratio.mean() - 1) < 0.1


@pytest.mark.parametrize("order", [2, 3])
def test_strengths_are_found_again(order: int) -> None:
    """Groups of 400 cells without and with excess, at a noise as large as the excess."""
    rng = np.random.default_rng(3)
    variance, expected = 1e-4, np.full(400, 1 / 400)
    likelihoods = []
    for strength in [0.0] * 20 + [0.1] * 20:
        excess = rng.normal(0, np.sqrt(strength * expected + variance))
        variances = denoise.STRENGTHS[:, None] * expected + variance
        fits = np.log(variances) + excess**2 / variances
        likelihoods.append(-fits.sum(axis=1) / 2)
    found = denoise._strengths(np.array(likelihoods), order)
    assert found[:20].max() < 0.02
    assert found[20:].min() > 0.05
    assert found[20:].max() < 0.2


def test_triples_of_which_nothing_is_seen_are_weak() -> None:
    """Any strength is as likely as another, where noise hides them all."""
    assert denoise._strengths(np.zeros((20, len(denoise.STRENGTHS))), 3).max() < 0.01


@pytest.mark.parametrize(
    ("specs", "share"),
    [
        (["categorical:2"], 0.05),
        (["categorical:2"], 0.01),
        (["categorical:3"], 0.05),
        (["tree:2"], 0.03),
        (["categorical:1", "categorical:2", "tree:2"], 0.03),
    ],
)
def test_errors_fall(specs: list[str], share: float) -> None:
    """On 4,000 simulated people the table for denoised answers is better by a tenth at least."""
    workload, table = workload_of(CENSUS, specs), people(4000)
    measured = noisy(workload, table, share)
    found = {
        denoise: evolve(measured, GeneticSearch(rows=2000, denoise=denoise), seed=1)
        for denoise in (False, True)
    }
    errors = {
        denoise: error(workload, table, count(workload, each.matrix) / 2000)
        for denoise, each in found.items()
    }
    assert errors[True] < 0.9 * errors[False]
    # It gives up some of the fit to the noise for it.
    assert found[True].loss > found[False].loss


def test_columns_that_follow_one_another_are_drawn_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight columns, each like the one before in four rows of five: means of three draws."""
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 6, 5000)]
    for _ in range(7):
        others = rng.integers(0, 6, 5000)
        columns.append(np.where(rng.random(5000) < 0.8, columns[-1], others))
    table = np.column_stack(columns).astype(np.float64)
    schema = Schema([Categorical(f"c{i}", values=list(range(6))) for i in range(8)])
    workload = workloads.categorical_marginals(schema, 2)
    errors = {}
    for rounds in (0, 2):
        monkeypatch.setattr(denoise, "ROUNDS", rounds)
        made = [Denoising(noisy(workload, table, 0.01, s), s, 1, watch()).run() for s in range(3)]
        errors[rounds] = np.mean([error(workload, table, each.shares) for each in made])
    assert errors[2] < 0.87 * errors[0]


def test_tables_are_larger_where_there_is_less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [rows_drawn(noise, order) for noise in (0.1, 0.004, 1e-6) for order in (1, 2, 3)]
    assert drawn == [1000, 1000, 1000, 2000, 2000, 4000, 8000, 8000, 8000]
    rows: list[int] = []

    class Counted(Chains):
        def run(self, watch: Watch, threads: int) -> None:
            super().run(watch, threads)
            rows.extend(len(state.values) for state in self.states)

    monkeypatch.setattr(denoise, "Chains", Counted)
    # By the least noise: the pairs of a layered measurement have less than its triples.
    pairs = noisy(workloads.categorical_marginals(CENSUS, 2), people(500), 0.006)
    triples = noisy(workloads.categorical_marginals(CENSUS, 3), people(500), 0.1)
    Denoising(triples + pairs, 0, 1, watch()).run()
    assert rows[-2:] == [2666, 2666]
    assert set(rows[:-2]) == {1333}


def test_other_questions_keep_their_answers() -> None:
    workload = workload_of(CENSUS, ["prefix:20", "categorical:2", "prefix:10"])
    measured = noisy(workload, people(1000), 0.05)
    made = Denoising(measured, 0, 1, watch()).run()
    marginals = denoise._asked_by_marginals(workload)
    assert (made.counts[~marginals] == measured.counts[~marginals]).all()
    assert (made.counts[marginals] != measured.counts[marginals]).mean() > 0.99
    assert (made.scales == measured.scales).all()
    # Denoised answers are means of tables': none is negative, and groups sum to the rows.
    assert made.counts[marginals].min() >= 0


@pytest.mark.parametrize(
    ("specs", "share", "options"),
    [
        (["prefix:20"], 0.05, {}),  # no marginals
        (["categorical:2"], 0.0001, {}),  # hardly any noise
        (["categorical:2"], 0.05, {"generations": 0}),  # no search
    ],
)
def test_where_it_does_not_apply_nothing_changes(
    specs: list[str], share: float, options: dict[str, Any]
) -> None:
    measured = noisy(workload_of(CENSUS, specs), people(1000), share)
    with_it, without = (
        evolve(measured, GeneticSearch(rows=100, denoise=denoise, **options), seed=2)
        for denoise in (True, False)
    )
    assert np.array_equal(with_it.matrix, without.matrix, equal_nan=True)
    assert GeneticSearch.paper().denoise is False


def test_ranges_with_gaps_are_smoothed_as_they_are() -> None:
    """Cells that some rows are in none of have no sums to be learned from."""
    workload = workloads.range_marginals(CENSUS, {"age": [(20, 40), (60, 80)], "sex": ...})
    measured = noisy(workload + workload_of(CENSUS, ["categorical:2"]), people(1000), 0.05)
    assert np.isfinite(Denoising(measured, 0, 1, watch()).run().counts).all()
    alone = noisy(workload, people(1000), 0.05)
    assert np.isfinite(Denoising(alone, 0, 1, watch()).run().counts).all()


def test_threads_change_nothing_and_seeds_do() -> None:
    measured = noisy(workload_of(CENSUS, ["categorical:2"]), people(1000), 0.05)
    one, two, other = (
        evolve(measured, GeneticSearch(rows=200), seed=seed, threads=threads).matrix
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert np.array_equal(one, two, equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)


@settings(max_examples=20)
@given(st.integers(1, 80))
def test_it_can_be_stopped_at_any_time(looks: int) -> None:
    """By whoever listens; the table is whole, and as good as it had become."""
    measured = noisy(workload_of(CENSUS, ["categorical:2"]), people(1000), 0.05)
    told = []

    def enough(progress: Any) -> bool:
        told.append(progress.loss)
        return len(told) >= looks

    found = evolve(measured, GeneticSearch(rows=300), callback=enough)
    assert found.matrix.shape == (300, len(CENSUS))
    assert found.reason in ("callback", "converged")
    assert all(np.isfinite(told))
    Encoder(CENSUS).decode(found.matrix)


def test_time_is_up_while_denoising() -> None:
    """What it had by then is better than values drawn without preference."""
    measured = noisy(workload_of(CENSUS, ["categorical:2"]), people(1000), 0.01)
    found = evolve(measured, GeneticSearch(rows=300, seconds=0.0))
    assert found.reason == "time"
    random = Objective(measured, "inverse-variance")
    state = random.state(random.random_table(300, 0))
    assert found.loss < random.share_loss(random.loss(state), 300)


@pytest.mark.parametrize("denoise", [None, 1, "yes"])
def test_denoise_is_true_or_false(denoise: Any) -> None:
    with pytest.raises(ProjectionError, match="denoise must be true or false"):
        GeneticSearch(denoise=denoise)
