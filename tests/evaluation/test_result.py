"""The result of an evaluation as JSON and in notebooks."""

from __future__ import annotations

import json
import sys

import pytest

from private_gsd import Evaluation
from private_gsd.errors import MissingExtraError
from private_gsd.evaluation.result import ALARM
from tests.evaluation.tables import SCHEMA, TRAIN

pytestmark = pytest.mark.worker("evaluation")


def test_documents_say_that_they_are_not_for_publication(copy: Evaluation) -> None:
    document = json.loads(copy.json())
    assert document["warning"] == ALARM
    assert document["publishable"] is False
    assert document["attacks"]["membership"]["value"] > 0.65
    assert document["tables"]["holdout"] == 1500
    assert len(document["columns"]) == len(SCHEMA)
    age = document["statistics"]["columns"][0]
    assert age["name"] == "age"
    assert [each["name"] for each in age["numbers"]][:2] == ["mean", "standard deviation"]
    assert age["numbers"][0]["real"] == pytest.approx(TRAIN["age"].to_pandas().mean())
    assert document["statistics"]["errors"]["relative"] == 0
    assert document["statistics"]["groups"][0]["mean"]["difference"] == 0
    assert document["findings"] == copy.findings
    assert "NOT FOR PUBLICATION" in copy._repr_html_()
    assert "not for publication" in repr(copy)


def test_the_summary_of_a_document_is_numbers(copy: Evaluation) -> None:
    summary = json.loads(copy.json())["summary"]
    assert summary[0] == {
        "metric": "mean query error",
        "of": "",
        "value": 0,
        "reference": 0,
        "low": None,
        "high": None,
    }
    assert [each["metric"] for each in summary] == [figure.metric for figure in copy.summary]


def test_no_raw_row_is_in_a_document(copy: Evaluation) -> None:
    # A number that occurs once would be a row's own: incomes are shown in bins only.
    incomes = TRAIN["income"].drop_null().to_pylist()
    rare = [f"{value:.2f}" for value in incomes if value and value % 1]
    assert rare
    assert not [value for value in rare if value in copy.json()]


def test_a_frame_needs_pandas(copy: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"private-gsd\[pandas\]"):
        copy.to_pandas()
