"""The figures of an evaluation: numbers, and the texts that are made of them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from private_gsd import Boolean, Date, Evaluation, Schema
from private_gsd.evaluation.figures import (
    FORMATS,
    SCHEMA,
    SUMMARY,
    Figure,
    attack_figures,
    rule_figures,
    statistic_figures,
    summarised,
    table_of_figures,
)
from private_gsd.evaluation.metrics.summary_statistics import compare_statistics
from tests.evaluation.tables import matrix_of, sample_of

pytestmark = pytest.mark.worker("evaluation")
DAY = dt.date(2000, 1, 1)


def test_figures_are_a_table_of_numbers() -> None:
    table = table_of_figures([Figure("a", "x", 1, 0.5), Figure("b", "", 2.5, None, 2, 3)])
    assert table.schema == SCHEMA
    assert table.to_pylist() == [
        {"metric": "a", "of": "x", "value": 1, "reference": 0.5, "low": None, "high": None},
        {"metric": "b", "of": "", "value": 2.5, "reference": None, "low": 2, "high": 3},
    ]


@pytest.mark.parametrize(
    ("figure", "texts"),
    [
        (Figure("mean query error", "", 0.01234, 0), ("mean query error", "1.234%", "0")),
        (Figure("column KS", "age", 0.12345, 0), ("column KS: age", "0.123", "0")),
        (Figure("2-marginal score", "", 901.2, 1000), ("2-marginal score", "901", "1000")),
        (
            Figure("membership attack, AUC", "", 0.6, 0.5, 0.55, 0.65),
            ("membership attack, AUC", "0.600 (0.550 to 0.650)", "0.500"),
        ),
        (
            Figure("noise of a query group", "sex", 0.5),
            ("noise of a query group: sex", "0.500", ""),
        ),
    ],
)
def test_texts_are_made_of_the_numbers(figure: Figure, texts: tuple[str, str, str]) -> None:
    assert figure.texts() == texts


def test_the_summary_has_its_own_order() -> None:
    figures = [Figure(metric, "", 1) for metric in ("other", *reversed(SUMMARY))]
    assert [figure.metric for figure in summarised(figures)] == list(SUMMARY)


def test_every_metric_with_a_format_exists(copy: Evaluation) -> None:
    found = set(copy.figures["metric"].to_pylist())
    rules = {figure.metric for figure in rule_figures([("age > 0", 0.1, 0.2)])}
    missing = {"1-marginal score", "query error over noise"}  # other tables have these
    assert set(FORMATS) - missing <= found | rules
    assert set(SUMMARY) - missing <= found | rules


def test_figures_agree_with_the_attributes(copy: Evaluation) -> None:
    frame = copy.to_pandas()
    assert isinstance(copy.figures, pa.Table)
    assert isinstance(frame, pd.DataFrame)
    assert frame["value"].notna().all()
    distances = frame[frame.metric == "column distance"].set_index("of")["value"]
    assert distances.to_dict() == {each.name: each.distance for each in copy.columns}
    pairs = frame[frame["of"].str.contains(" and ") & (frame.metric == "Spearman")]
    assert (pairs.value == pairs.reference).all()
    assert copy.attacks is not None
    assert copy.attacks.membership is not None
    [attack] = frame[frame.metric == "membership attack, AUC"].itertuples()
    assert (attack.value, attack.low, attack.high) == copy.attacks.membership
    assert attack.reference == 0.5
    groups = frame[frame.metric == "RMS error of a query group"]
    assert len(groups) == len(copy.errors.groups)
    assert list(attack_figures(None)) == []


def test_figures_have_the_statistics(copy: Evaluation) -> None:
    frame = copy.to_pandas()
    numeric = [column.name for column in copy.statistics.columns]
    assert numeric == ["age", "income"]
    for metric in ("column mean", "column standard deviation", "column median"):
        assert frame[frame.metric == metric]["of"].tolist() == numeric
    groups = frame[frame.metric == "group mean"]
    assert len(groups) == len(copy.statistics.groups)
    assert "income, sex = female" in groups["of"].tolist()
    assert (groups.value == groups.reference).all()
    assert "income = 0.00" in frame[frame.metric == "share of a value"]["of"].tolist()
    assert not frame.duplicated(["metric", "of"]).any()


def test_a_statistic_without_synthetic_rows_is_no_figure() -> None:
    schema = Schema([Boolean("flag"), Date("day", lower=DAY, upper=DAY + dt.timedelta(9))])
    real = sample_of(matrix_of(np.arange(40) % 2, 11_000 + np.arange(40) % 9))
    synthetic = sample_of(matrix_of(np.zeros(40), 11_000 + np.arange(40) % 9))
    figures = list(statistic_figures(compare_statistics(schema, real, synthetic)))
    assert [each.of for each in figures if each.metric == "group mean"] == ["day, flag = False"]
    assert sum(each.metric == "share of a weekday" for each in figures) == 7
    assert sum(each.metric == "share of a month" for each in figures) == 12
    # Dates have no relative error.
    assert not [each for each in figures if "relative" in each.metric]
    assert sum("standardised" in each.metric for each in figures) == 2
