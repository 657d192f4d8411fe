"""Coordinate search: no single edit is left, and neither threads nor time change the table."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

from private_gsd import Categorical, Schema, workloads
from private_gsd.kernels import coordinate_search as search_kernels
from private_gsd.measurements.measurements import Measurements
from private_gsd.projection import watch
from private_gsd.projection.genetic import (
    GeneticSearch,
    coordinate_search,
    evolve,
)
from private_gsd.projection.objective import Objective
from tests.projection.families import SCHEMA, measured
from tests.projection.genetic.census_answers import CENSUS, census, exactly


def test_no_single_edit_is_left() -> None:
    """With no tolerance, the end is a table that no edit of one value improves."""
    workload = (
        workloads.categorical_marginals(SCHEMA, 2)
        + workloads.range_marginals(SCHEMA, {"age": [(0, 17), (10, 60)], "owner": ...})
        + workloads.random_prefixes(SCHEMA, 30)
    )
    measurements = measured(workload, np.random.default_rng(2))
    evolution = evolve(measurements, GeneticSearch(rows=12, tolerance=0), seed=4)
    objective = Objective(measurements, "inverse-variance")
    columns = objective.problem.columns
    end = evolution.loss
    for row, column in itertools.product(range(12), range(len(SCHEMA))):
        for place in range(columns.starts[column], columns.starts[column + 1]):
            if columns.firsts[place] > columns.lasts[place]:
                continue
            atom = place - columns.starts[column]
            step = columns.firsts[place] / (columns.denominators[column] or 1)
            table = np.ascontiguousarray(evolution.matrix)
            table[row, column] = np.nan if atom == columns.nulls[column] else step
            loss = objective.share_loss(objective.loss(objective.state(table)), len(table))
            assert loss >= end * (1 - 1e-9)


def test_exchanges_find_what_single_edits_do_not() -> None:
    """Two columns that are uniform and equal: from unequal pairs, two values must change."""
    schema = Schema([Categorical("a", values=[0, 1]), Categorical("b", values=[0, 1])])
    workload = workloads.categorical_marginals(schema, 2)
    heavy = workloads.categorical_marginals(schema, 1)
    target = np.array([[0.0, 0.0], [1.0, 1.0]] * 10)
    measurements = exactly(workload, target, scale=0.1)
    sums = exactly(heavy, target, scale=0.01)
    start = np.array([[0.0, 1.0], [1.0, 0.0]] * 10)
    evolution = evolve(measurements + sums, GeneticSearch(rows=20), start=start)
    assert evolution.loss == 0


def test_a_move_that_only_rounding_recommends_is_taken_back() -> None:
    """Float32 takes 10^8 + 3.9 for 10^8, and 10^8 + 4.1 for 10^8 + 8; the truth is in between."""
    schema = Schema([Categorical("a", values=[0, 1])])
    workload = workloads.categorical_marginals(schema, 1)
    for rows in (1000, 9000):
        counts = np.array([1e8 + 3.9 + rows, 1e8 + 4.1])
        measurements = Measurements(workload, counts, np.ones(1), rows, ("",), private=False)
        start = np.zeros((rows, 1))
        evolution = evolve(measurements, GeneticSearch(rows=rows), start=start)
        np.testing.assert_array_equal(evolution.matrix, start)


@pytest.mark.parametrize("denoise", [False, True])
def test_threads_do_not_matter(denoise: bool) -> None:
    workload = workloads.categorical_marginals(CENSUS, 2) + workloads.tree_marginals(CENSUS, 2, 3)
    measurements = exactly(workload, census(500), 3.0)
    config = GeneticSearch(rows=9000, denoise=denoise)
    tables = [evolve(measurements, config, seed=5, threads=t).matrix for t in (1, 2, 3)]
    for other in tables[1:]:
        np.testing.assert_array_equal(tables[0], other)
    assert (evolve(measurements, config, seed=6).matrix != tables[0]).any()


@pytest.mark.parametrize("rows", [300, 9000])
def test_how_long_calls_take_does_not_matter(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = exactly(workloads.categorical_marginals(CENSUS, 2), census(500), 3.0)
    tables = []
    for seconds in (0.05, 1e-9):
        monkeypatch.setattr(watch, "SLICE_SECONDS", seconds)
        config = GeneticSearch(rows=rows, generations=3)
        tables.append(evolve(measurements, config).matrix)
    np.testing.assert_array_equal(tables[0], tables[1])


def test_a_thread_that_fails_does_not_keep_the_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = threading.active_count()
    measurements = exactly(workloads.categorical_marginals(CENSUS, 2), census(500), 3.0)
    evolve(measurements, GeneticSearch(rows=9000, generations=1))  # compiled
    real = search_kernels.sweep_parallel

    def failing(*arguments: Any) -> Any:
        if len(arguments[2]) and arguments[8] == 0:  # the first thread, of some rows
            raise ZeroDivisionError
        return real(*arguments)

    monkeypatch.setattr(coordinate_search, "sweep_parallel", failing)
    with pytest.raises(ZeroDivisionError):
        evolve(measurements, GeneticSearch(rows=9000), threads=3)
    assert threading.active_count() == before


def test_halfspaces_are_fitted_as_well_in_blocks() -> None:
    """What threads mark is what is then visited, with the same candidates."""
    workload = workloads.random_halfspaces(CENSUS, 60)
    measurements = exactly(workload, census(1000), 2.0)
    losses = [
        evolve(measurements, GeneticSearch(rows=rows, generations=4)).loss for rows in (8191, 8192)
    ]
    assert losses[1] < 1.1 * losses[0]
