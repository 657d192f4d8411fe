"""Pieces: parts that both reports have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from private_gsd.evaluation.figures import LEVELS, Series, bars, figure, histogram
from private_gsd.evaluation.page import joined, paragraph, wide_table
from private_gsd.markup import Markup, escape
from private_gsd.schema import Numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Column, Schema


def privacy_statement(record: dict[str, Any]) -> Markup:
    """What a release promises, in words and in numbers, from its privacy record."""
    spent, delta = record["spent"], record["delta"]
    epsilon = spent["epsilon"]
    other = "another" if record["neighbours"] == "replace-one" else "left out"
    if not record["private"]:
        plain = Markup(
            '<p class="found">This release is NOT private: its noise came from a seed. It must not '
            "be published as if it were.</p>"
        )
    elif epsilon > 20:
        plain = paragraph(
            f"The privacy loss is bounded by ε = {epsilon:.4g} at δ = {delta:.3g}. A bound this "
            "large says next to nothing about one person's protection."
        )
    else:
        plain = paragraph(
            "The release was made under differential privacy. Had any one row of the data been "
            f"{other}, the same release would have been about as likely: whatever somebody guesses "
            "about one row, seeing the release changes the odds of the guess by a factor of at "
            f"most {math.exp(epsilon):,.2f} (e to the power of ε = {epsilon:.4g}), but for a "
            f"chance of about δ = {delta:.3g}. This holds against any attack and any other "
            "knowledge. It does not mean that nothing can be learned about groups, or that a "
            "person with several rows is protected as well as one with a single row."
        )
    claims = record.get("claims") or {}
    if claims.get("outside_groups") and not claims.get("outside_private"):
        warning = (
            "Measurements from elsewhere that are NOT private were used: what is said here does "
            "not hold for what they disclose."
        )
        plain = joined([Markup(f'<p class="found">{warning}</p>'), plain])
    rows = [
        ("dataset", record["dataset"]),
        ("spent so far, epsilon", f"{epsilon:.6g}"),
        ("at delta", f"{delta:.6g}"),
        ("spent so far, rho (zCDP)", f"{spent['rho']:.6g}"),
        ("neighbours", record.get("neighbours_in_words", record["neighbours"])),
        ("from rho to epsilon", record.get("conversion_in_words", "")),
    ]
    total = record.get("total")
    if isinstance(total, dict) and "epsilon" in total:
        rows.insert(3, ("never to be exceeded, epsilon", f"{total['epsilon']:.6g}"))
    said = [plain, wide_table("The guarantee in numbers", ("term", "value"), rows, words=(1,))]
    if record.get("guarantee"):
        said.append(paragraph("As the privacy record states it: ", record["guarantee"]))
    return joined([*said, *_claims(record.get("claims") or {})])


def _claims(claims: dict[str, Any]) -> list[Markup]:
    """What was taken for known beside our measurements."""
    said = []
    totals = claims.get("public_totals") or {}
    if totals:
        said.append(
            paragraph(
                "The data holder claims that these totals are public. They were matched as they "
                "are, and the guarantee does not cover them."
            )
        )
        rows = [(condition, f"{number:,}") for condition, number in totals.items()]
        said.append(wide_table("Totals claimed to be public", ("condition", "rows"), rows))
    groups = claims.get("outside_groups") or 0
    if groups:
        private = "as private" if claims.get("outside_private") else "NOT as private"
        said.append(
            paragraph(
                f"Measurements of {groups:,} groups from elsewhere were used beside ours. They "
                f"were handed over {private}; the guarantee does not cover them."
            )
        )
    if claims.get("derived"):
        said.append(
            paragraph(
                "Statistics that follow from what was measured, and were matched at no cost: ",
                "; ".join(claims["derived"]),
            )
        )
    return said


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
