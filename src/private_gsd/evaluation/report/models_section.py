"""Two sections of the evaluation report: machine learning, and attacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.figures import attack_figures
from private_gsd.evaluation.metrics.attacks import FEWEST
from private_gsd.evaluation.metrics.classifiers import MODELS
from private_gsd.evaluation.report.drawings import Series, bars, figure, intervals
from private_gsd.evaluation.report.page import joined, key, paragraph, side_by_side, wide_table
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from private_gsd.evaluation.result import Evaluation

STYLES = {"synthetic": "synthetic", "real": "real", "nothing": "other"}


def learning(found: Evaluation) -> Markup:
    """Models trained on synthetic rows and on real rows, tested on real rows."""
    if not found.tasks:
        return paragraph(
            "No model was trained: no column that could be predicted has enough rows and classes. "
            "Name a target (--target)."
        )
    text = (
        "Each model predicts one column from all others. It is trained on the synthetic rows, and "
        "for comparison on real rows; both are tested on the same real rows. "
    )
    if found.tables.holdout is None:
        text += (
            "No held-out rows were given: models were tested on a fifth of the real rows. The "
            "models trained on real rows have not seen these, but the synthetic table was made "
            "from them. Give held-out rows (--holdout) for a fair test."
        )
    else:
        text += "The test rows were held out from both."
    drawings = []
    for task in found.tasks:
        series = [
            Series(name, STYLES[name], np.array([task.f1(name, model) for model in MODELS]))
            for name in STYLES
        ]
        drawing = bars(list(MODELS), series, f"F1 (macro) of predicting {task.target}", form=".3f")
        caption = Markup(
            f"<strong>{escape(task.target)}</strong> F1 (macro), {task.classes} classes, "
            f"{task.tested:,} rows tested"
        )
        drawings.append(figure(drawing, caption))
    rows = [
        (
            task.target,
            score.trained_on,
            score.model,
            f"{score.f1_macro:.3f}",
            "" if score.f1_binary is None else f"{score.f1_binary:.3f}",
            f"{score.accuracy:.3f}",
        )
        for task in found.tasks
        for score in task.scores
    ]
    return joined(
        [
            paragraph(text),
            key(
                ("synthetic", "trained on synthetic rows"),
                ("real", "trained on real rows"),
                ("other", "always the most frequent class"),
            ),
            side_by_side(drawings),
            wide_table(
                "All models; F1 (binary) is that of the rarer of two classes",
                ("target", "trained on", "model", "F1 macro", "F1 binary", "accuracy"),
                rows,
                words=(1, 2),
            ),
        ]
    )


def attacks(found: Evaluation) -> Markup:
    """The results of simple attacks."""
    result = found.attacks
    if result is None:
        return paragraph("There are too few rows to try any attack.")
    parts = [
        paragraph(
            "Simple attacks by somebody who has the synthetic table. An attack that succeeds shows "
            "that something is wrong; one that fails shows only that this attack failed on these "
            "rows. What protects individuals is the budget of the release. Intervals are 95 % "
            "intervals."
        )
    ]
    if result.closer is None:
        parts.append(
            paragraph(
                "Most attacks compare with real rows that the table was not made from: give at "
                f"least {FEWEST} held-out rows (--holdout). Without them only exact matches were "
                "counted."
            )
        )
    if result.findings:
        listed = escape("; ".join(result.findings))
        parts.append(
            Markup(f'<p class="found">Found: {listed}. Examine this before any publication.</p>')
        )
        if result.closer is not None:
            parts.append(
                paragraph(
                    "Random variation alone makes each attack succeed on about one in forty tables "
                    "without a leak; another split of the rows would tell, another seed would not."
                )
            )
    elif result.closer is not None:
        parts.append(paragraph("No attack did better than random variation explains."))
    if result.closer is not None and result.membership is not None:
        names = ["Synthetic rows nearer to training rows", "Membership, area under the curve"]
        label = "Attacks against a guess"
        drawing = intervals(names, [result.closer, result.membership], 0.5, label)
        parts.append(side_by_side([figure(drawing, Markup(f"<strong>{label}</strong>"))]))
    synthetic, train, holdout = result.rows
    parts.append(
        wide_table(
            f"Attacks on {synthetic:,} synthetic, {train:,} training and {holdout:,} held-out rows",
            ("metric", "value", "without a leak"),
            [each.texts() for each in attack_figures(result)],
        )
    )
    return joined(parts)
