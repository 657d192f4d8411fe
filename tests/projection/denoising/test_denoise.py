"""Denoising: errors fall, other queries stay, and it can be stopped at any time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_gsd import Categorical, Encoder, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.projection.denoising import denoise
from private_gsd.projection.denoising.denoise import Denoising, sampled_rows
from private_gsd.projection.denoising.gibbs import GibbsSampler
from private_gsd.projection.denoising.lower_orders import (
    queries_of_marginals,
)
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.projection.objective import Objective
from private_gsd.projection.watch import Watch
from private_gsd.workloads.specs import workload_of
from tests.projection.denoising.noisy_census import CENSUS, census_rows, error, noisy, watch


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
    workload, table = workload_of(CENSUS, specs), census_rows(4000)
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


def test_errors_fall_with_a_chow_liu_forest(monkeypatch: pytest.MonkeyPatch) -> None:
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
        monkeypatch.setattr(denoise, "CHOW_LIU_ROUNDS", rounds)
        made = [Denoising(noisy(workload, table, 0.01, s), s, 1, watch()).run() for s in range(3)]
        errors[rounds] = np.mean([error(workload, table, each.shares) for each in made])
    assert errors[2] < 0.87 * errors[0]


def test_tables_are_larger_where_there_is_less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [sampled_rows(noise, order) for noise in (0.1, 0.004, 1e-6) for order in (1, 2, 3)]
    assert drawn == [1000, 1000, 1000, 2000, 2000, 4000, 8000, 8000, 8000]
    rows: list[int] = []

    class Counted(GibbsSampler):
        def run(self, samples: int, watch: Watch, threads: int) -> None:
            super().run(samples, watch, threads)
            rows.extend(len(state.values) for state in self.states)

    monkeypatch.setattr(denoise, "GibbsSampler", Counted)
    # By the least noise: the pairs of a layered measurement have less than its triples.
    pairs = noisy(workloads.categorical_marginals(CENSUS, 2), census_rows(500), 0.006)
    triples = noisy(workloads.categorical_marginals(CENSUS, 3), census_rows(500), 0.1)
    Denoising(triples + pairs, 0, 1, watch()).run()
    assert rows[-2:] == [2666, 2666]
    assert set(rows[:-2]) == {1333}


def test_other_queries_keep_their_answers() -> None:
    workload = workload_of(CENSUS, ["prefix:20", "categorical:2", "prefix:10"])
    measured = noisy(workload, census_rows(1000), 0.05)
    made = Denoising(measured, 0, 1, watch()).run()
    marginals = queries_of_marginals(workload)
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
    measured = noisy(workload_of(CENSUS, specs), census_rows(1000), share)
    with_it, without = (
        evolve(measured, GeneticSearch(rows=100, denoise=denoise, **options), seed=2)
        for denoise in (True, False)
    )
    assert np.array_equal(with_it.matrix, without.matrix, equal_nan=True)
    assert GeneticSearch.paper().denoise is False


def test_ranges_with_gaps_are_denoised_as_they_are() -> None:
    """Cells that some rows are in none of have no sums to be learned from."""
    workload = workloads.range_marginals(CENSUS, {"age": [(20, 40), (60, 80)], "sex": ...})
    measured = noisy(workload + workload_of(CENSUS, ["categorical:2"]), census_rows(1000), 0.05)
    assert np.isfinite(Denoising(measured, 0, 1, watch()).run().counts).all()
    alone = noisy(workload, census_rows(1000), 0.05)
    assert np.isfinite(Denoising(alone, 0, 1, watch()).run().counts).all()


def test_threads_change_nothing_and_seeds_do() -> None:
    measured = noisy(workload_of(CENSUS, ["categorical:2"]), census_rows(1000), 0.05)
    one, two, other = (
        evolve(measured, GeneticSearch(rows=200), seed=seed, threads=threads).matrix
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert np.array_equal(one, two, equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(1, 80))
def test_it_can_be_stopped_at_any_time(looks: int) -> None:
    """By the progress function; the table is complete."""
    measured = noisy(workload_of(CENSUS, ["categorical:2"]), census_rows(1000), 0.05)
    reports: list[str] = []

    def enough(what: str, done: float, total: float | None) -> bool:
        reports.append(what)
        return len(reports) >= looks

    found = evolve(measured, GeneticSearch(rows=300), progress=enough)
    assert found.matrix.shape == (300, len(CENSUS))
    assert found.reason in ("stopped", "converged")
    assert set(reports) <= {"denoising", "searching"}
    Encoder(CENSUS).decode(found.matrix)


def test_time_is_up_while_denoising() -> None:
    """The table is better than one of uniform random values."""
    measured = noisy(workload_of(CENSUS, ["categorical:2"]), census_rows(1000), 0.01)
    found = evolve(measured, GeneticSearch(rows=300, seconds=0.0))
    assert found.reason == "time"
    random = Objective(measured, "inverse-variance")
    state = random.state(random.random_table(300, 0))
    assert found.loss < random.share_loss(random.loss(state), 300)
