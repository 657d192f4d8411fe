"""The evaluation report: what it says, that it warns, and that data cannot break it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import private_gsd as gsd
from private_gsd import Categorical, Evaluation, Integer, Schema
from private_gsd.evaluation import evaluate, evaluation_page
from tests.evaluation.tables import HELD_OUT, SCHEMA, TRAIN, census, check_page, hostile

pytestmark = pytest.mark.worker("evaluation")


def test_every_page_warns_and_allows_nothing_to_be_loaded(folder: Path) -> None:
    release = gsd.Release.load(folder / "release")
    found = gsd.evaluate(release, folder / "secret.csv", targets=["citizen"])
    text = evaluation_page(found)
    outline = check_page(text)
    assert text.count("NOT FOR PUBLICATION") >= 2
    assert "default-src 'none'" in text
    assert len(outline.figures) == len(SCHEMA) + 3 + 1 + 5 + 1 + 1
    assert found.privacy is not None
    assert "Privacy guarantee" in text
    assert "the projection removed noise" in text


def test_the_summary_is_made_of_the_figures(copy: Evaluation) -> None:
    text = evaluation_page(copy)
    check_page(text)
    for figure in copy.summary:
        name, value, _ = figure.texts()
        assert f">{name}</th>" in text
        assert f">{value}</td>" in text
    assert "Attacks succeeded: " in text
    assert "Evaluation report of synthetic table" in text


def test_what_was_not_done_is_said() -> None:
    alone = evaluate(census(700), TRAIN, schema=SCHEMA, sample=200, targets=[])
    text = evaluation_page(alone)
    assert alone.tables.real_sample == alone.tables.synthetic_sample == 200
    assert "a random sample of 200 of 1,500 real rows" in text
    assert "a random sample of 200 of 700 synthetic rows" in text
    assert "No model was trained" in text
    assert "none of these answers was measured" in text
    assert "at least 20 held-out rows" in text


def test_tests_without_held_out_rows_are_named() -> None:
    alone = evaluate(TRAIN, TRAIN, schema=SCHEMA, targets=["citizen"])
    assert alone.tasks[0].tested == TRAIN.num_rows // 5
    assert "No held-out rows were given" in evaluation_page(alone)
    other = evaluate(
        census(1500, seed=5), TRAIN, schema=SCHEMA, holdout=HELD_OUT, targets=["citizen"]
    )
    text = evaluation_page(other)
    assert "No held-out rows were given" not in text
    assert "No attack did better than random variation explains" in text


def test_no_raw_row_is_in_the_report(copy: Evaluation) -> None:
    # A number that occurs once would be a row's own: incomes are shown in bins only.
    text = evaluation_page(copy)
    incomes = TRAIN["income"].drop_null().to_pylist()
    rare = [f"{value:.2f}" for value in incomes if value and value % 1]
    assert rare
    assert not [value for value in rare if value in text]


def test_names_and_values_cannot_break_the_report() -> None:
    schema, table = hostile()
    found = evaluate(table, table, schema=schema, holdout=table, targets=[schema.names[0]])
    text = evaluation_page(found)
    check_page(text)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert text.count("</style>") == 1
    assert "<script" not in found._repr_html_()
    assert found._repr_html_().startswith("<table><caption>")


def test_thirty_columns_stay_small() -> None:
    rng = np.random.default_rng(0)
    values = [f"a rather long category {number}" for number in range(40)]
    schema = Schema(
        [Categorical(f"category {number}", values=values) for number in range(15)]
        + [Integer(f"number {number}", lower=0, upper=10_000) for number in range(15)]
    )
    columns = {
        **{f"category {n}": rng.choice(values, 300) for n in range(15)},
        **{f"number {n}": rng.integers(0, 10_000, 300) for n in range(15)},
    }
    table = pa.table(columns)
    found = evaluate(table, table, schema=schema, holdout=table, targets=[])
    assert len(evaluation_page(found).encode()) < 3_000_000
