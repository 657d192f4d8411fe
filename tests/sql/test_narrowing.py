"""Narrowing: what is taken away cannot meet the condition."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import TRUE
from private_gsd.sql.narrowing import ALL, narrowed, passing, wanted
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.regions import Region
from tests.sql.people import SCHEMA, rows_of
from tests.workloads.random_sql import predicates_of

pytestmark = pytest.mark.worker("large")


SETS = [frozenset(each) for each in ({0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2})]


@pytest.mark.parametrize("seed", range(3))
def test_what_narrowing_takes_away_cannot_meet_the_condition(seed: int) -> None:
    """For every set of truth values: rows that have one of them lie in what is left."""
    rows = rows_of(SCHEMA, 40, seed).tolist()
    whole = {place: Region.of(column) for place, column in enumerate(SCHEMA)}
    taken = 0
    for text in predicates_of(SCHEMA, 120, seed, compared=0.4):
        truth = parse_predicate(SCHEMA, text)
        for values in SETS:
            condition = wanted(truth, values)
            left = narrowed([condition], whole)
            taken += left != whole
            for row in rows:
                if truth_of(truth, row) in values:
                    assert truth_of(condition, row) == TRUE, (text, values, row)
                    assert left is not None
                    for place, value in enumerate(row):
                        assert _holds(left[place], value), (text, values, place, value)
    assert taken > 100  # it does take something away


def _holds(region: Region, value: float) -> bool:
    if np.isnan(value):
        return region.null
    return any(low <= value <= high for low, high in region.pieces)


def test_everything_wanted_is_everything() -> None:
    assert wanted(parse_predicate(SCHEMA, "age < 3"), ALL).truth == TRUE  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(2))
def test_a_rule_is_kept_where_it_is_not_false(seed: int) -> None:
    rows = rows_of(SCHEMA, 40, seed).tolist()
    for text in predicates_of(SCHEMA, 100, seed, compared=0.3):
        truth = parse_predicate(SCHEMA, text)
        kept = passing(truth)
        for row in rows:
            assert (truth_of(kept, row) == TRUE) == (truth_of(truth, row) >= 1), (text, row)
