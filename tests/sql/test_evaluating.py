"""Evaluation of a condition on one row gives what the kernels count."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd.counting.exact import count
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import TRUE
from private_gsd.sql.parsing import parse_predicate
from private_gsd.workloads import predicates
from tests.sql.people import SCHEMA, rows_of
from tests.workloads.random_sql import predicates_of

pytestmark = pytest.mark.worker("large")


@pytest.mark.parametrize("seed", range(2))
def test_truth_of_is_what_the_kernels_count(seed: int) -> None:
    texts = predicates_of(SCHEMA, 150, seed, compared=0.3)
    rows = rows_of(SCHEMA, 60, seed)
    truths = [parse_predicate(SCHEMA, text) for text in texts]
    slow = [sum(truth_of(truth, row) == TRUE for row in rows.tolist()) for truth in truths]
    assert count(predicates(SCHEMA, texts), np.asfortranarray(rows)).tolist() == slow
