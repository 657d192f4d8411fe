"""Gibbs sweeps: tables come up in proportion to their exact probabilities."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from private_gsd import Categorical, Schema, workloads
from private_gsd.kernels.gibbs import gibbs_sweep
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection.denoising.chow_liu import Edge, empty_chow_liu_forest, laid_out
from private_gsd.projection.objective import Objective
from tests.projection.denoising.noisy_census import noisy


@pytest.mark.parametrize("log_lifts", [None, [[0.5, -1.0, 0.2], [-0.4, 0.9, 0.0]]])
def test_tables_come_in_proportion_to_their_probabilities(log_lifts: Any) -> None:
    """All 216 tables of three rows, by their exact probabilities, with and without neighbours.

    The frequencies of 40,000 tables, each three sweeps after the last, are compared with them, by
    five sigma of a chi-square statistic. Probabilities that were off by a tenth would exceed the
    bound by far, which is tested, too.
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
    logs = np.log([0.3, 0.7, 0.2, 0.5, 0.3])
    columns = objective.problem.columns._replace(base_scores=temperature * logs)
    problem = objective.problem._replace(columns=columns)

    atoms = list(itertools.product(range(2), range(3)))
    weights = {}
    for rows in itertools.product(range(6), repeat=3):
        table = np.array([atoms[each] for each in rows], dtype=np.float64)
        loss = objective.loss(objective.state(table.copy()))
        before = sum(logs[int(a)] + logs[2 + int(b)] for a, b in table)
        if log_lifts is not None:
            before += sum(log_lifts[int(a)][int(b)] for a, b in table)
        weights[rows] = math.exp(before - loss / temperature)
    expected = np.array(list(weights.values())) / sum(weights.values())

    edges = [] if log_lifts is None else [(Edge(1.0, 0, 1), np.array(log_lifts))]
    forest = laid_out(2, edges)
    state, workspace = objective.state(np.zeros((3, 2))), objective.workspace()
    order = np.arange(3)
    seen = np.zeros(216)
    number = 40_000
    for generation in range(3 * number):
        gibbs_sweep(problem, state, order, 7, generation, temperature, forest, workspace)
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
    columns = objective.problem.columns._replace(base_scores=np.array([-np.inf, 0.0, -np.inf]))
    problem = objective.problem._replace(columns=columns)
    state = objective.state(np.ones((50, 1)))
    for generation in range(20):
        gibbs_sweep(
            problem,
            state,
            np.arange(50),
            1,
            generation,
            100.0,
            empty_chow_liu_forest(1),
            objective.workspace(),
        )
    assert (state.values == 1).all()
