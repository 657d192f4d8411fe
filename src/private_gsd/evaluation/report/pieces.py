"""Pieces: parts that both reports have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.evaluation.report.figures import LEVELS, Series, bars, figure, histogram
from private_gsd.evaluation.report.page import wide_table
from private_gsd.schema import Numeric
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Column, Schema


def schema_table(schema: Schema) -> Markup:
    """The columns of a schema."""
    rows = [
        (each.name, each.kind, "yes" * each.nullable, each.domain, each.description)
        for each in schema
    ]
    headers = ("column", "kind", "null", "domain", "description")
    shown = len(headers) if any(each.description for each in schema) else len(headers) - 1
    return wide_table(
        "The public schema",
        headers[:shown],
        [row[:shown] for row in rows],
        words=(1, 2, 3, 4),
    )


def column_figure(
    column: Column, labels: Sequence[str], series: Sequence[Series], words: str
) -> Markup:
    """One column, drawn: bars that lie for categories, a histogram for numbers."""
    names = " and ".join(each.name for each in series)
    what = f"Column {column.name}, {column.kind}, {names}"
    few = not isinstance(column, Numeric)
    drawing = (bars if few else histogram)(labels, series, what)
    return figure(drawing, Markup(f"<strong>{escape(column.name)}</strong> {escape(words)}"))


def colour_scale(span: float) -> Markup:
    """What the colours of a heat map mean."""
    steps = "".join(f'<i class="d{level}"></i>' for level in range(LEVELS))
    return Markup(
        f'<p class="soft">−{span:g} <span class="scale" aria-hidden="true">{steps}</span> '
        f"+{span:g}</p>"
    )
