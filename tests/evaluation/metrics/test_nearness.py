"""Which rows are equal, and which are nearest."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd import Boolean, Real, Schema
from private_gsd.evaluation.metrics.nearness import Ruler, occurs, once
from tests.evaluation.tables import matrix_of


def test_rows_that_occur() -> None:
    one = matrix_of([0.0, -0.0, 1.0], [np.nan, 2.0, -np.nan])
    two = matrix_of([-0.0, 1.0], [-np.nan, np.nan])
    assert occurs(one, two).tolist() == [True, False, True]


def test_rows_that_occur_once() -> None:
    rows = matrix_of([0.0, -0.0, 1.0, np.nan, np.nan])
    assert once(rows).tolist() == [[1.0]]


def test_numbers_are_compared_by_their_ranks() -> None:
    schema = Schema([Boolean("flag"), Real("number", lower=0, upper=1000)])
    reference = matrix_of([0, 0, 1, 1], [0, 1, 2, 1000])
    ruler = Ruler(schema, reference)
    # From 2 to 1000 is one rank of four, and from 0 to 2 are two; the flag is the other half.
    one, others = matrix_of([1], [2]), matrix_of([1, 0], [1000, 2])
    assert ruler.nearest(one, others).tolist() == pytest.approx([0.125])
    assert ruler.closest(one, others, without=0).tolist() == [1]
    assert ruler.closest(one, others, without=1).tolist() == [0]
