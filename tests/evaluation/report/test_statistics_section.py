"""The sections of statistics: what they say of columns and groups, and what they fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from private_gsd import Boolean, Categorical, Evaluation, Integer, Schema
from private_gsd.evaluation.metrics.summary_statistics import compare_statistics
from private_gsd.evaluation.report.page import Section, page, paragraph
from private_gsd.evaluation.report.statistics_section import FIRST_GROUPS, columns, groups
from private_gsd.system.markup import Markup
from tests.evaluation.tables import HOSTILE, check_page, matrix_of, sample_of

pytestmark = pytest.mark.worker("evaluation")
RNG = np.random.default_rng(0)


def section_of(
    copy: Evaluation, schema: Schema, *tables: NDArray[np.float64]
) -> tuple[Markup, Markup]:
    """Both sections of an evaluation with other statistics."""
    statistics = compare_statistics(schema, *(sample_of(each) for each in tables))
    found = replace(copy, schema=schema, statistics=statistics)
    sections = columns(found), groups(found)
    named = [Section(name, name, body) for name, body in zip("ab", sections, strict=True)]
    check_page(page("statistics", paragraph("lead"), named, paragraph("foot")))
    return sections


def test_every_statistic_is_beside_its_twin(copy: Evaluation) -> None:
    schema = Schema([Integer("n", lower=0, upper=50, nullable=True)])
    real = matrix_of([0, 10, 20, 30, np.nan] * 20)
    synthetic = matrix_of([10, 20, 30, 40, np.nan] * 20)
    text, _ = section_of(copy, schema, real, synthetic)
    spread = np.nanstd(real, ddof=1)
    assert "The means of columns differ by 66.67% (mean relative error) and by " in text
    assert f"{10 / spread:.3f} standard deviations (mean standardised error)." in text
    for row in (
        ("mean", "15", "25", "+10", "+66.7%", f"{10 / spread:+.3f}"),
        ("standard deviation", "11.25", "11.25", "0", "0", ""),
        ("share of nulls", "20.00%", "20.00%", "0", "", ""),
        ("share of zeros", "20.00%", "0.00%", "-20.00", "", ""),
    ):
        cells = "".join(f'<td class="n">{cell}</td>' for cell in row[1:])
        assert f'<th scope="row">{row[0]}</th>{cells}</tr>' in text
    assert "n: values with at least 2% of the rows</caption>" in text
    assert '<th scope="row">40</th><td class="n">0.00%</td><td class="n">20.00%</td>' in text


def test_long_lists_are_folded(copy: Evaluation) -> None:
    text, _ = section_of(
        copy, Schema([Integer("n", lower=0, upper=50)]), *[matrix_of(list(range(20)) * 5)] * 2
    )
    assert "<summary>n: values with at least 2% of the rows (20)</summary>" in text
    schema = Schema([Integer(f"n {place}", lower=0, upper=50) for place in range(13)])
    text, _ = section_of(copy, schema, *[RNG.integers(0, 50, (100, 13)).astype(float)] * 2)
    assert "<summary>n 12, integer</summary>" in text


def test_groups_are_listed_the_largest_differences_first(copy: Evaluation) -> None:
    values = [f"value {place}" for place in range(12)]
    schema = Schema(
        [
            Categorical("of", values=values),
            Integer("n", lower=0, upper=50),
            Integer("m", lower=0, upper=50),
        ]
    )
    codes = np.repeat(np.arange(12.0), 20)
    real = matrix_of(codes, RNG.integers(0, 30, 240), RNG.integers(0, 30, 240))
    synthetic = real.copy()
    synthetic[codes == 7, 1] += 20
    synthetic = synthetic[codes != 3]
    _, text = section_of(copy, schema, real, synthetic)
    first = text.index("of = value 3"), text.index("of = value 7"), text.index("of = value 5")
    assert first == tuple(sorted(first))
    assert "has no rows in 2 of the groups" in text
    assert f"{FIRST_GROUPS} of 24 groups, the largest differences first" in text
    assert "<summary>9 further groups in a table</summary>" in text
    assert "The means of groups differ by " in text


def test_what_is_not_there_is_said(copy: Evaluation) -> None:
    text, other = section_of(copy, Schema([Boolean("flag")]), *[matrix_of([0, 1])] * 2)
    assert "no numbers and no dates" in text
    assert "There are no groups" in other
    some = replace(copy, statistics=replace(copy.statistics, left_out=7))
    assert "7 further columns of the schema were left out" in groups(some)
    schema = Schema([Integer("n", lower=0, upper=9, nullable=True)])
    text, _ = section_of(copy, schema, *[np.full((4, 1), np.nan)] * 2)
    assert "The means of columns differ" not in text


def test_names_cannot_break_the_sections(copy: Evaluation) -> None:
    schema = Schema(
        [Categorical(HOSTILE, values=[HOSTILE]), Integer(HOSTILE + " n", lower=0, upper=9)]
    )
    for text in section_of(copy, schema, *[matrix_of(np.zeros(20), np.arange(20) % 3)] * 2):
        assert "<script" not in text
        assert "&lt;script&gt;" in text
