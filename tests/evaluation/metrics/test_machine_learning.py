"""Models that learn from synthetic rows and are tested on real rows."""

from __future__ import annotations

import pytest

from private_gsd.evaluation.metrics.classifiers import MODELS
from private_gsd.evaluation.metrics.machine_learning import TARGETS, default_targets, learn
from private_gsd.evaluation.table_sample import sample_table
from tests.evaluation.tables import HELD_OUT, SCHEMA, TRAIN, shuffled

TRAINING, TEST, SHUFFLED = (
    sample_table(table, SCHEMA, limit=10_000).sample for table in (TRAIN, HELD_OUT, shuffled(TRAIN))
)


@pytest.mark.slow
def test_models_of_equal_rows_have_equal_scores() -> None:
    calls: list[tuple[str, float, float | None]] = []
    tasks = learn(
        SCHEMA,
        TRAINING,
        TRAINING,
        TEST,
        ["citizen", "age", "marital"],
        progress=lambda *call: calls.append(call),
    )
    names = [task.target for task in tasks]
    assert names == ["citizen", "age (above its median)", "marital"]
    assert calls == [("training models", number, 3) for number in range(3)]
    for task in tasks:
        assert task.tested == len(TEST)
        for model in MODELS:
            assert task.score("synthetic", model)[2:] == task.score("real", model)[2:]
        assert task.f1("synthetic") >= task.f1("nothing")
    assert [task.classes for task in tasks[:2]] == [2, 2]
    assert None not in [score.f1_binary for score in tasks[1].scores]
    assert {score.f1_binary for score in tasks[2].scores} == {None}


def test_models_of_shuffled_columns_learn_nothing() -> None:
    [task] = learn(SCHEMA, SHUFFLED, TRAINING, TEST, ["age"])
    assert task.f1("synthetic") < task.f1("real") - 0.1


def test_targets_with_too_few_rows_are_left_out() -> None:
    assert learn(SCHEMA, TRAINING[:5], TRAINING, TEST, ["citizen"]) == []


def test_default_targets_have_few_classes() -> None:
    chosen = default_targets(SCHEMA, TRAINING)
    assert 0 < len(chosen) <= TARGETS
    assert set(chosen) <= {"region", "sex", "marital", "employment", "citizen"}
