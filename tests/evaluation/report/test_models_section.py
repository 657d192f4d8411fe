"""Sections on machine learning and on attacks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from private_gsd import Evaluation
from private_gsd.evaluation.report.models_section import attacks, learning

pytestmark = pytest.mark.worker("evaluation")


def test_every_task_is_drawn_and_listed(copy: Evaluation) -> None:
    text = learning(copy)
    assert text.count("<svg ") == len(copy.tasks)
    assert text.count(">most frequent class</td>") == len(copy.tasks)
    assert "The test rows were held out" in text
    alone = replace(copy, tables=copy.tables._replace(holdout=None))
    assert "No held-out rows were given" in learning(alone)
    assert "No model was trained" in learning(replace(copy, tasks=()))


def test_attacks_say_what_they_found(copy: Evaluation) -> None:
    text = attacks(copy)
    assert "Found: synthetic rows repeat training rows" in text
    assert "one in forty" in text
    assert text.count("<svg ") == 1
    assert ">synthetic rows nearer to training rows</th>" in text
    assert "too few rows to try any attack" in attacks(replace(copy, attacks=None))


def test_attacks_without_held_out_rows_say_what_is_missing(copy: Evaluation) -> None:
    assert copy.attacks is not None
    found = replace(
        copy.attacks, holdout_matches=None, holdout_distances=None, closer=None, membership=None
    )
    text = attacks(replace(copy, attacks=found))
    assert "at least 20 held-out rows" in text
    assert "one in forty" not in text
    assert "<svg " not in text
