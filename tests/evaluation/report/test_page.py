"""The page: an outline that screen readers can follow, and nothing to load."""

from __future__ import annotations

from private_gsd.evaluation.report.page import (
    Section,
    folded,
    key,
    page,
    paragraph,
    side_by_side,
    wide_table,
)
from private_gsd.system.markup import Markup
from tests.evaluation.tables import HOSTILE, check_page


def test_a_page_has_an_outline_and_loads_nothing() -> None:
    body = Markup(
        wide_table(HOSTILE, ("a", "b"), [(HOSTILE, 1)])
        + folded(HOSTILE, paragraph(HOSTILE))
        + key(("real", HOSTILE))
        + side_by_side([])
    )
    sections = [Section("first", HOSTILE, body), Section("second", "Second", paragraph("text"))]
    text = page(HOSTILE, paragraph(HOSTILE), sections, paragraph("end"), alarm=HOSTILE)
    outline = check_page(text)
    assert outline.headings == [1, 2, 2]
    assert outline.links == ["#main", "#first", "#second"]
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert "table-header-group" in text  # the warning is on every printed page
    assert 'class="alarm"' in text
    assert 'class="alarm"' not in page("t", paragraph(), sections, paragraph())
