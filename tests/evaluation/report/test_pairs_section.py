"""Sections on pairs of columns and on whole tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from private_gsd import Boolean, Evaluation, Schema
from private_gsd.evaluation.metrics.associations import compare_associations
from private_gsd.evaluation.report.pairs_section import pairs, wholes
from tests.evaluation.tables import matrix_of, sample_of

pytestmark = pytest.mark.worker("evaluation")


def test_pairs_are_drawn_and_the_largest_differences_listed(copy: Evaluation) -> None:
    text = pairs(copy)
    assert text.count("<svg ") == 3
    first = copy.associations.pairs[0]
    assert f">{first.one} and {first.two}</th>" in text
    assert "Only the first" not in text
    some = replace(copy, associations=replace(copy.associations, left_out=3))
    assert f"Only the first {len(copy.schema)} columns are shown." in pairs(some)


def test_one_column_has_no_pairs(copy: Evaluation) -> None:
    rows = sample_of(matrix_of([0, 1, 1]))
    alone = compare_associations(Schema([Boolean("flag")]), rows, rows)
    assert "no pair" in pairs(replace(copy, associations=alone))


def test_whole_tables_are_scored(copy: Evaluation) -> None:
    text = wholes(copy)
    assert "2-marginal score, over 21 of 21 sets of columns" in text
    assert "50% of the real rows" in text
    assert ">propensity AUC</th>" in text
    assert "too few rows" in wholes(replace(copy, propensity=None))
