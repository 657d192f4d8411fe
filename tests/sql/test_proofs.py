"""Proofs: what is proven of no row holds of none, under the rules of the schema."""

from __future__ import annotations

import itertools

import pytest

from private_gsd.schema import Schema
from private_gsd.sql.evaluating import truth_of
from private_gsd.sql.expressions import TRUE
from private_gsd.sql.parsing import parse_predicate
from private_gsd.sql.proofs import Proofs
from tests.sql.people import SCHEMA, rows_of
from tests.workloads.random_sql import predicates_of


def test_what_excludes_and_what_implies() -> None:
    texts = ["age < 20", "age < 30", "age > 40", "job = 'a'"]
    proofs = Proofs(SCHEMA, [parse_predicate(SCHEMA, text) for text in texts])
    assert proofs.no_row(met=[0, 2])
    assert proofs.no_row(met=[0], missed=[1])  # whoever is below 20 is below 30
    assert not proofs.no_row(met=[1], missed=[0])
    assert not proofs.no_row(met=[0, 3])
    assert not proofs.no_row()


def test_rules_of_the_schema_count() -> None:
    texts = ["age < 20", "job = 'a'"]
    ruled = Schema(SCHEMA.columns, ["NOT (age < 20 AND job = 'a')"])
    for schema, proven in ((SCHEMA, False), (ruled, True)):
        proofs = Proofs(schema, [parse_predicate(schema, text) for text in texts])
        assert proofs.no_row(met=[0, 1]) == proven


@pytest.mark.parametrize("seed", range(2))
def test_no_row_contradicts_a_proof(seed: int) -> None:
    truths = [
        parse_predicate(SCHEMA, text) for text in predicates_of(SCHEMA, 40, seed, compared=0.3)
    ]
    proofs = Proofs(SCHEMA, truths)
    rows = rows_of(SCHEMA, 60, seed).tolist()
    met = [[truth_of(truth, row) == TRUE for truth in truths] for row in rows]
    proven = 0
    for one, other in itertools.permutations(range(len(truths)), 2):
        if proofs.no_row(met=[one, other]):
            proven += 1
            assert not any(row[one] and row[other] for row in met)
        if proofs.no_row(met=[one], missed=[other]):
            proven += 1
            assert not any(row[one] and not row[other] for row in met)
    assert proven > 5
