"""Settings of the genetic search: refused where they make no sense, and whose number of rows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from private_gsd.errors import ProjectionError
from private_gsd.projection.genetic import (
    GeneticSearch,
    evolve,
)
from tests.projection.families import FAMILIES, measured


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rows": 0}, "rows must be a whole number from 1 to 2,147,483,647, not 0"),
        ({"rows": 2.5}, "rows must be a whole number"),
        ({"rows": True}, "rows must be a whole number"),
        ({"weights": "none"}, "weights must be 'inverse-variance' or 'equal', not 'none'"),
        ({"algorithm": "slow"}, "algorithm must be 'fast' or 'paper', not 'slow'"),
        ({"generations": -1}, "generations must be a whole number from 0"),
        ({"tolerance": -0.1}, "tolerance must be a number from 0 to 1, not -0.1"),
        ({"tolerance": float("nan")}, "tolerance must be a number from 0 to 1"),
        ({"tolerance": "0.1"}, "tolerance must be a number from 0 to 1"),
        ({"seconds": -1}, "seconds must be a number of at least 0, not -1"),
        (
            {"mutations": 7},
            "mutations is a setting of Algorithm 1; say GeneticSearch.paper.mutations=….",
        ),
        ({"elites": 0}, "elites must be a whole number from 1"),
        ({"window": 0}, "window must be a whole number from 1"),
        ({"mutation_rate": 0}, "mutation_rate must be a whole number from 1"),
        (
            {"algorithm": "paper", "mutations": 0, "crossovers": 0},
            "mutations and crossovers cannot both be 0",
        ),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ProjectionError, match=message):
        GeneticSearch(**settings)


def test_numbers_of_any_make() -> None:
    rows: Any = np.int64(20)
    config = GeneticSearch.paper(rows=rows, tolerance=Decimal("0.01"), seconds=Fraction(501, 2))
    assert (config.rows, config.tolerance, config.seconds) == (20, 0.01, 250.5)
    assert all(type(each) is float for each in (config.tolerance, config.seconds))
    measurements = measured(FAMILIES["two-way"](), np.random.default_rng(1))
    assert evolve(measurements, config).reason == "converged"


@pytest.mark.parametrize("denoise", [None, 1, "yes"])
def test_denoise_is_true_or_false(denoise: Any) -> None:
    with pytest.raises(ProjectionError, match="denoise must be true or false"):
        GeneticSearch(denoise=denoise)


def test_the_number_of_rows_is_the_caller_s_unless_it_is_set() -> None:
    assert GeneticSearch().rows is GeneticSearch.paper().rows is None
    assert GeneticSearch().rows_of(300) == 300
    assert GeneticSearch().rows_of(None) == 2000
    assert GeneticSearch(rows=300).rows_of(None) == GeneticSearch(rows=300).rows_of(300) == 300
    with pytest.raises(ProjectionError, match="set to 300 rows, and 200 rows are wanted"):
        GeneticSearch(rows=300).rows_of(200)


def test_evolve_and_project_make_as_many_rows() -> None:
    measurements = measured(FAMILIES["one-way"](), np.random.default_rng(1))
    quick = GeneticSearch(denoise=False, generations=1)
    made = evolve(measurements, quick, rows=40, seed=3).matrix
    np.testing.assert_array_equal(quick.project(measurements, rows=40, seed=3).matrix, made)
    alone = evolve(measurements, replace(quick, rows=40), seed=3).matrix
    np.testing.assert_array_equal(alone, made)
    for make in (
        lambda: evolve(measurements, replace(quick, rows=30), rows=40),
        lambda: replace(quick, rows=30).project(measurements, rows=40),
        lambda: replace(quick, rows=30).prepare(measurements, rows=40),
    ):
        with pytest.raises(ProjectionError, match="give one of the two numbers"):
            make()
