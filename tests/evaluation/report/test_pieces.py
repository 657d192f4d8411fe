"""The parts that both reports have."""

from __future__ import annotations

import numpy as np

from private_gsd import Boolean, Integer, Schema
from private_gsd.evaluation.report.drawings import LEVELS, Series
from private_gsd.evaluation.report.pieces import colour_scale, column_figure, schema_table
from tests.evaluation.tables import HOSTILE


def test_descriptions_are_shown_where_there_are_any() -> None:
    plain = Boolean("flag", nullable=True)
    assert "description" not in schema_table(Schema([plain]))
    described = schema_table(Schema([plain, Integer("n", lower=0, upper=9, description=HOSTILE)]))
    assert ">description</th>" in described
    assert "<script" not in described
    assert "<td>yes</td>" in described


def test_numbers_have_a_histogram_and_categories_have_bars() -> None:
    series = [Series("real", "real", np.array([0.25, 0.75]))]
    flag, number = (
        column_figure(column, ["low", "high"], series, "a caption")
        for column in (Boolean("flag"), Integer("n", lower=0, upper=1))
    )
    assert 'aria-label="Column flag, boolean, real. real, largest first: high 75.0%' in flag
    assert ">75.0%</text>" in flag  # a bar has its number beside it
    assert ">75.0%</text>" not in number
    for drawing in (flag, number):
        assert "a caption</figcaption>" in drawing


def test_a_colour_scale_has_all_colours() -> None:
    assert colour_scale(0.5).count("<i ") == LEVELS
