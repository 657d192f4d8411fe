"""First tables: nothing is invented that was not measured, and rules are kept."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Categorical, Schema, workloads
from private_gsd.projection.constraints import broken_rows
from private_gsd.projection.denoising.denoise import Denoising
from private_gsd.projection.genetic import GeneticSearch, evolve
from private_gsd.projection.genetic.starting import starting_table
from private_gsd.projection.objective import Objective
from tests.projection.denoising.noisy_census import noisy, watch

BINARY = Schema([Categorical(f"c{place}", values=[0, 1]) for place in range(8)])


def chain(rows: int, seed: int = 0) -> np.ndarray:
    """A Markov chain: each column is mostly like the one before."""
    rng = np.random.default_rng(seed)
    table = np.empty((rows, len(BINARY)))
    table[:, 0] = rng.random(rows) < 0.3
    for place in range(1, len(BINARY)):
        table[:, place] = rng.random(rows) < np.where(table[:, place - 1] == 1, 0.79, 0.09)
    return table


def correlations(table: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(np.corrcoef(table.T)[np.triu_indices(table.shape[1], 1)]))


@pytest.mark.parametrize("denoise", [False, True])
@pytest.mark.parametrize("rows", [1000, 9000])
def test_single_columns_alone_give_independent_columns(rows: int, denoise: bool) -> None:
    measured = noisy(workloads.categorical_marginals(BINARY, 1), chain(4000), 0.005)
    found = evolve(measured, GeneticSearch(rows=rows, denoise=denoise), seed=1)
    assert correlations(found.matrix).mean() < 1.6 / np.sqrt(rows)  # 0.8 by chance


def test_pairs_give_the_triples_of_a_chain() -> None:
    """Errors of marginals of four columns: hardly above those of as many rows of the chain."""
    table = chain(20_000)
    measured = noisy(workloads.categorical_marginals(BINARY, 2), table, 0.004)
    found = evolve(measured, GeneticSearch(rows=5000), seed=1)

    def error(other: np.ndarray) -> float:
        codes = [(rows[:, [0, 2, 4, 6]] @ [1, 2, 4, 8]).astype(int) for rows in (table, other)]
        shares = [np.bincount(each, minlength=16) / len(each) for each in codes]
        return float(np.abs(shares[0] - shares[1]).mean())

    assert error(found.matrix) < 3 * error(chain(5000, 9))


def test_sampled_rows_come_from_several_tables() -> None:
    measured = noisy(workloads.categorical_marginals(BINARY, 2), chain(4000), 0.01)
    denoising = Denoising(measured, 0, 1, watch())
    rng = np.random.default_rng(0)
    assert denoising.values(10, rng) is None  # nothing is sampled yet
    denoising.run()
    sampler = denoising._sampler
    assert sampler is not None
    size = len(sampler.states[0].values)
    made = denoising.values(3 * size + 10, rng)
    assert made is not None
    assert made.shape == (3 * size + 10, len(BINARY))
    newest = [state.values for state in sampler.samples[::-1]]
    for number in range(3):
        np.testing.assert_array_equal(made[number * size : (number + 1) * size], newest[number])
    many = denoising.values(25 * size, rng)
    assert many is not None
    np.testing.assert_array_equal(many[20 * size : 21 * size], newest[0])
    few = denoising.values(7, rng)
    assert few is not None
    assert len(few) == 7


def ruled(*rules: str) -> Schema:
    return Schema(BINARY.columns, rules)


@pytest.mark.parametrize("denoise", [False, True])
def test_rows_that_break_a_rule_are_replaced(denoise: bool) -> None:
    schema = ruled("NOT (c0 = 1 AND c7 = 1)")
    measured = noisy(workloads.categorical_marginals(schema, 2), chain(4000), 0.01)
    objective = Objective(measured, "equal")
    denoising = Denoising(measured, 0, 1, watch()) if denoise else None
    if denoising is not None:
        denoising.run()
    made = starting_table(objective, measured, denoising, 3000, 1)
    assert made.shape == (3000, len(schema))
    assert not broken_rows(schema, made).any()
    # Still as the marginals say, where the rule says nothing; uniform rows would have 0.5.
    assert made[:, 3].mean() == pytest.approx(0.3, abs=0.08)


def test_where_few_rows_keep_the_rules_they_are_found_by_the_rules() -> None:
    schema = ruled(*(f"c{place} = c{place + 1}" for place in range(7)))
    table = np.repeat(np.random.default_rng(0).integers(0, 2, (1000, 1)), 8, axis=1)
    measured = noisy(workloads.categorical_marginals(schema, 2), table.astype(np.float64), 0.01)
    objective = Objective(measured, "equal")
    made = starting_table(objective, measured, None, 200, 1)
    np.testing.assert_array_equal(made, objective.random_table(200, 1))
    assert not broken_rows(schema, made).any()


def test_no_generations_return_the_first_table() -> None:
    measured = noisy(workloads.categorical_marginals(BINARY, 2), chain(4000), 0.01)
    found = evolve(measured, GeneticSearch(rows=500, generations=0), seed=3)
    first = starting_table(Objective(measured, "equal"), measured, None, 500, 3)
    np.testing.assert_array_equal(found.matrix, first)
    assert found.reason == "generations"
