"""Markup: text is escaped once, and tables can be read out."""

from __future__ import annotations

from private_gsd.system.markup import Markup, escape, html_table


def test_text_is_escaped_and_markup_is_not() -> None:
    assert escape(Markup("<b>")) == "<b>"
    assert escape(3) == "3"
    table = html_table("a < b", ("x", "y"), [("<", Markup("<i>1</i>"))])
    assert "<caption>a &lt; b</caption>" in table
    assert '<th scope="row">&lt;</th><td class="n"><i>1</i></td>' in table
