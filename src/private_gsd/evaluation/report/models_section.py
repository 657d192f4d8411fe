"""Two parts of the evaluation report: what models learn, and what attacks found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.metrics.attacks import FEWEST
from private_gsd.evaluation.metrics.classifiers import MODELS
from private_gsd.evaluation.report.figures import Series, bars, figure, intervals
from private_gsd.evaluation.report.page import joined, key, paragraph, side_by_side, wide_table
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from private_gsd.evaluation.metrics.attacks import Attacks
    from private_gsd.evaluation.metrics.intervals import Estimate
    from private_gsd.evaluation.result import Evaluation

STYLES = {"synthetic": "synthetic", "real": "real", "nothing": "other"}


def learning(found: Evaluation) -> Markup:
    """Models trained on synthetic rows and on real ones, tested on real ones."""
    if not found.tasks:
        return paragraph(
            "No model was trained: there is no column to predict with enough rows and classes. "
            "Name one with --target."
        )
    words = (
        "Each model predicts one column from all others. It learns from the synthetic rows, and "
        "for comparison from real ones; both are tested on the same real rows. "
    )
    if found.tables.held is None:
        words += (
            "No held-out rows were given: models were tested on a fifth of the real rows, which "
            "the models trained on real rows had not seen but the synthetic table was made from. "
            "Give --holdout for a fair test."
        )
    else:
        words += "These were held out: neither had seen them."
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
            paragraph(words),
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
    """What simple attacks found, in sober words."""
    what = found.attacks
    if what is None:
        return paragraph("There are too few rows to try any attack.")
    parts = [
        paragraph(
            "Simple attacks, tried by somebody who has the synthetic table. They work like smoke "
            "detectors: one that goes off shows that something is wrong, and silence shows only "
            "that these attacks, on these rows, did not find it. What protects people is the "
            "budget of the release, not this section. Intervals hold in 95 of 100 cases."
        )
    ]
    if what.closer is None:
        parts.append(
            paragraph(
                "Most attacks need real rows that the table was not made from, to know what is "
                f"usual: give at least {FEWEST} with --holdout. Without them only exact matches "
                "were counted."
            )
        )
        if what.findings:
            parts.append(Markup(f'<p class="found">Found: {escape("; ".join(what.findings))}.</p>'))
    elif what.findings:
        parts.append(
            Markup(
                f'<p class="found">Found: {escape("; ".join(what.findings))}. '
                "Look into it before anything is published.</p>"
                "<p>Chance alone makes each attack find something in about one of forty tables "
                "without a leak; another --seed does not tell, another split of the rows would.</p>"
            )
        )
    else:
        parts.append(paragraph("None of these attacks did better than chance explains."))
    if what.closer is not None and what.membership is not None:
        names = ["Synthetic rows closer to training rows", "Membership, area under the curve"]
        label = "Attacks against a guess"
        drawing = intervals(names, [what.closer, what.membership], 0.5, label)
        parts.append(side_by_side([figure(drawing, Markup(f"<strong>{label}</strong>"))]))
    parts.append(_table(what))
    return joined(parts)


def _table(what: Attacks) -> Markup:
    rows: list[tuple[str, str, str]] = [
        (
            f"synthetic rows equal to one of {what.looked_at:,} training rows",
            _estimate(what.matches),
            "",
        ),
        (
            "synthetic rows equal to one that stands once among them",
            _estimate(what.copies),
            "",
        ),
        (
            f"synthetic rows equal to one of {what.rows[1]:,} training rows",
            _estimate(what.like_held),
            "" if what.held_matches is None else f"{_estimate(what.held_matches)} for held-out",
        ),
        (
            "distance to the closest training row, 5th percentile",
            f"{what.distances[0]:.4f}",
            "" if what.held_distances is None else f"{what.held_distances[0]:.4f} for held-out",
        ),
        (
            "distance to the closest training row, median",
            f"{what.distances[1]:.4f}",
            "" if what.held_distances is None else f"{what.held_distances[1]:.4f} for held-out",
        ),
    ]
    if what.closer is not None and what.membership is not None:
        rows += [
            ("synthetic rows closer to training rows", _estimate(what.closer), "50%"),
            (
                "membership by nearest distances, area under the curve",
                f"{what.membership.value:.3f} ({what.membership.low:.3f} to "
                f"{what.membership.high:.3f})",
                "0.5",
            ),
        ]
    if what.caught is not None:
        rows.append(("members named, when 1 in 100 others is", _estimate(what.caught), "about 1%"))
    rows += [
        (
            f"guessing {each.column} by the closest synthetic row",
            _estimate(each.members),
            f"{_estimate(each.others)} for held-out",
        )
        for each in what.inference
    ]
    made, train, held = what.rows
    return wide_table(
        f"Attacks, on {made:,} synthetic, {train:,} training and {held:,} held-out rows",
        ("attack", "found", "without a leak"),
        rows,
    )


def _estimate(each: Estimate) -> str:
    return f"{each.value:.2%} ({each.low:.2%} to {each.high:.2%})"
