"""Two sections of the evaluation report: pairs of columns, and the tables as wholes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.figures import whole_table_figures
from private_gsd.evaluation.report.drawings import figure, heat_map, heat_width
from private_gsd.evaluation.report.page import joined, paragraph, side_by_side, wide_table
from private_gsd.evaluation.report.pieces import colour_scale
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from private_gsd.evaluation.result import Evaluation

PAIRS = 15
SPANS = (0.1, 0.2, 0.5, 1.0, 2.0)


def pairs(found: Evaluation) -> Markup:
    """Heat maps of associations, and the pairs with the largest differences."""
    both = found.associations
    if len(both.names) < 2:
        return paragraph("The schema has one column, and so no pair.")
    most = float(np.abs(both.difference).max())
    span = next((each for each in SPANS if most <= each), SPANS[-1])
    width = heat_width(len(both.names))
    drawings = []
    for title, matrix, reach in (
        ("Real", both.real, 1.0),
        ("Synthetic", both.synthetic, 1.0),
        ("Difference, synthetic minus real", both.difference, span),
    ):
        drawing = heat_map(both.names, matrix, reach, f"{title}: associations of all pairs")
        caption = Markup(f"<strong>{escape(title)}</strong>{colour_scale(reach)}")
        drawings.append(figure(drawing, caption))
    rows = [
        (
            f"{pair.one} and {pair.two}",
            pair.measure,
            f"{pair.real:.3f}",
            f"{pair.synthetic:.3f}",
            f"{pair.synthetic - pair.real:+.3f}",
        )
        for pair in both.pairs[:PAIRS]
    ]
    text = (
        "The association of columns: Cramér's V for two discrete columns, the correlation ratio "
        "for a discrete and a numeric column (both from 0 to 1), Spearman's rank correlation for "
        f"two numeric columns (from −1 to 1). Both tables were compared on {both.rows:,} rows, "
        "since fewer rows make the first two measures larger."
    )
    if both.left_out:
        text += f" Only the first {len(both.names)} columns are shown."
    return joined(
        [
            paragraph(text),
            side_by_side(drawings, width=max(340, width)),
            wide_table(
                "The pairs with the largest differences",
                ("columns", "measure", "real", "synthetic", "difference"),
                rows,
                words=(1,),
            ),
        ]
    )


def wholes(found: Evaluation) -> Markup:
    """The k-marginal score and the propensity score."""
    parts = [
        paragraph(
            "The k-marginal score is that of NIST's SDNist: 1000 where all sets of k columns have "
            "the same shares in both tables, 0 where they have no cell in common. For comparison, "
            "the tables show what random subsamples of the real rows score."
        )
    ]
    for each in found.kmarginals:
        worst = ", ".join(f"{name} ({score:.0f})" for name, score in each.columns[:3])
        rows = [("the synthetic table", f"{each.score:.0f}")]
        rows += [
            (f"{share:.0%} of the real rows", f"{score:.0f}") for share, score in each.subsamples
        ]
        parts.append(
            wide_table(
                f"{each.k}-marginal score, over {each.sets:,} of {each.of:,} sets of columns",
                ("table", "score"),
                rows,
            )
        )
        parts.append(paragraph(f"Columns with the lowest mean score: {worst}."))
    apart = found.propensity
    if apart is None:
        parts.append(
            paragraph("There are too few rows to train models that tell the tables apart.")
        )
    else:
        parts.append(
            wide_table(
                f"Telling {apart.rows:,} synthetic from {apart.rows:,} real rows",
                ("metric", "value", "perfect"),
                [figure.texts() for figure in whole_table_figures((), apart)],
            )
        )
        parts.append(
            paragraph(
                "The propensity mean squared error is that of a logistic regression, from 0 to "
                "0.25; the ratio is to its expected value for a perfect table; the AUC is the area "
                "under the curve of gradient boosting, from 0.5 to 1. A model that tells the "
                "tables apart has found a difference, which need not matter to an analysis. "
                "With many rows a model always finds one."
            )
        )
    return joined(parts)
