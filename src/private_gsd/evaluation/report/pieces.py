"""Pieces: the parts that both reports have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_gsd.evaluation.report.drawings import LEVELS, Series, bars, figure, histogram
from private_gsd.evaluation.report.page import wide_table
from private_gsd.schema import Numeric
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Column, Schema

# Most query groups that are drawn, and most that are listed.
GROUPS = 12
MORE_GROUPS = 500


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
    column: Column,
    labels: Sequence[str],
    series: Sequence[Series],
    caption: str,
    spikes: Sequence[float] = (),
) -> Markup:
    """A drawing of one column: horizontal bars for categories, a histogram for numbers."""
    names = " and ".join(each.name for each in series)
    title = f"Column {column.name}, {column.kind}, {names}"
    if isinstance(column, Numeric):
        drawing = histogram(labels, series, title, spikes)
    else:
        drawing = bars(labels, series, title)
    return figure(drawing, Markup(f"<strong>{escape(column.name)}</strong> {escape(caption)}"))


def colour_scale(span: float) -> Markup:
    """The legend of a heat map."""
    steps = "".join(f'<i class="d{level}"></i>' for level in range(LEVELS))
    return Markup(
        f'<p class="soft">−{span:g} <span class="scale" aria-hidden="true">{steps}</span> '
        f"+{span:g}</p>"
    )
