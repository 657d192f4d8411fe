"""Markup: small pieces of HTML for notebooks and reports; all text in it is escaped."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Anything as HTML: text is escaped, markup stays as it is.

    >>> escape("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    >>> escape(Markup("<b>"))
    '<b>'
    """
    return value if isinstance(value, Markup) else Markup(html.escape(str(value)))


def html_table(
    caption: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    words: Sequence[int] = (),
) -> Markup:
    """A table with a caption, column headers and row headers that screen readers recognise.

    Args:
        caption: What the table shows.
        headers: The header of each column.
        rows: The cells; the first of each row is its header.
        words: The numbers of the columns that hold words besides the first; all others hold
            numbers.
    """

    def kind(place: int) -> str:
        return "" if place == 0 or place in words else ' class="n"'

    heads = "".join(
        f'<th scope="col"{kind(place)}>{escape(header)}</th>'
        for place, header in enumerate(headers)
    )
    lines = []
    for first, *rest in rows:
        cells = "".join(
            f"<td{kind(place)}>{escape(cell)}</td>" for place, cell in enumerate(rest, start=1)
        )
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>')
    return Markup(
        f"<table><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )
