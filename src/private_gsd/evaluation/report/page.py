"""Pages: one HTML file that loads nothing, for screens, paper and screen readers."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from private_gsd.system.markup import Markup, escape, html_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# The page loads and runs nothing, even if values of a table hold markup.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Section(NamedTuple):
    """A section of a page: its anchor, its heading and its body."""

    name: str
    heading: str
    body: Markup


def page(
    title: str, lead: Markup, sections: Sequence[Section], foot: Markup, *, alarm: str | None = None
) -> str:
    """A whole page.

    Args:
        title: The title.
        lead: The first paragraph.
        sections: The sections.
        foot: The footer.
        alarm: A warning in red at the top of every screen and every printed page.
    """
    links = "".join(
        f'<li><a href="#{section.name}">{escape(section.heading)}</a></li>' for section in sections
    )
    parts = "".join(
        f'<section id="{section.name}" aria-labelledby="{section.name}-h">'
        f'<h2 id="{section.name}-h">{escape(section.heading)}</h2>{section.body}</section>'
        for section in sections
    )
    warning = (
        "" if alarm is None else f'<div class="alarm" role="note"><p>{escape(alarm)}</p></div>'
    )
    style = files("private_gsd.evaluation.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style>'
        f'</head><body><a class="skip" href="#main">Skip to the content</a>{warning}'
        f"<header><h1>{escape(title)}</h1>{lead}"
        f'<nav aria-label="Contents"><ul>{links}</ul></nav></header>'
        f'<main id="main">{parts}</main><footer>{foot}</footer></body></html>\n'
    )


def paragraph(*parts: object) -> Markup:
    """A paragraph; text that is not markup is escaped."""
    return Markup(f"<p>{''.join(escape(each) for each in parts)}</p>")


def joined(parts: Iterable[Markup]) -> Markup:
    """Pieces of markup, joined."""
    return Markup("".join(parts))


def wide_table(
    caption: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    words: Sequence[int] = (),
) -> Markup:
    """A table that scrolls on a narrow screen, also by keyboard."""
    table = html_table(caption, headers, rows, words=words)
    label = escape(caption)
    return Markup(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{table}</div>'
    )


def folded(summary: str, body: Markup) -> Markup:
    """Content that is shown on demand."""
    return Markup(f"<details><summary>{escape(summary)}</summary>{body}</details>")


def side_by_side(drawings: Iterable[Markup], *, width: int = 340) -> Markup:
    """Drawings side by side, in as many lines as they need."""
    return Markup(
        f'<div class="figures" style="--least:{width * 0.9:.0f}px;--most:{width * 1.5:.0f}px">'
        f"{''.join(drawings)}</div>"
    )


def key(*parts: tuple[str, str]) -> Markup:
    """The legend: pairs of a style and a word."""
    words = "".join(
        f'<span class="key {style}" aria-hidden="true"></span>{escape(word)}'
        for style, word in parts
    )
    return Markup(f'<p class="soft">{words}</p>')
