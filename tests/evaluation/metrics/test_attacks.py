"""Attacks succeed on copies of the training rows, and fail on other rows."""

from __future__ import annotations

import pytest

from private_gsd import Evaluation
from private_gsd.evaluation.metrics.attacks import FEWEST, attack
from private_gsd.evaluation.table_sample import sample_table
from tests.evaluation.tables import HELD_OUT, SCHEMA, TRAIN, census

pytestmark = pytest.mark.worker("evaluation")
TRAINING, HOLDOUT, OTHERS = (
    sample_table(table, SCHEMA, limit=10_000).sample
    for table in (TRAIN, HELD_OUT, census(1500, seed=5))
)


def test_a_copy_of_the_training_rows_is_flagged(copy: Evaluation) -> None:
    attacks = copy.attacks
    assert attacks is not None
    assert attacks.closer is not None
    assert attacks.membership is not None
    assert attacks.true_positives is not None
    assert attacks.matches.value == 1
    assert max(attacks.distances) == 0
    assert attacks.closer.low > 0.9
    assert attacks.membership.low > 0.65
    assert attacks.true_positives.low > 0.05
    assert len(attacks.inference) == len(copy.tasks)
    assert all(each.members.value > each.others.value for each in attacks.inference)
    assert len(attacks.findings) == 4 + len(attacks.inference)


def test_other_rows_of_the_same_population_are_not_flagged() -> None:
    found = attack(SCHEMA, OTHERS, TRAINING, HOLDOUT, secrets=["sex", "marital", "age"])
    assert found is not None
    assert found.findings == []
    assert [each.column for each in found.inference] == ["sex", "marital"]


def test_a_copy_is_found_without_held_out_rows() -> None:
    for holdout in (None, HOLDOUT[: FEWEST - 1]):
        found = attack(SCHEMA, TRAINING, TRAINING, holdout)
        assert found is not None
        assert found.membership is None
        assert found.findings == ["most synthetic rows repeat a training row that occurs once"]


def test_held_out_rows_that_were_not_held_out_are_noticed() -> None:
    found = attack(SCHEMA, TRAINING, TRAINING, TRAINING)
    assert found is not None
    assert found.overlap
    assert any("say nothing" in each for each in found.findings)


def test_too_few_rows_are_not_attacked() -> None:
    assert attack(SCHEMA, TRAINING[:1], TRAINING, HOLDOUT) is None
    assert attack(SCHEMA, TRAINING, TRAINING[:1], HOLDOUT) is None
    few = attack(SCHEMA, TRAINING, TRAINING[:50], HOLDOUT[:50])
    assert few is not None
    assert few.true_positives is None  # one in a hundred cannot be seen
    assert few.rows == (1500, 50, 50)
