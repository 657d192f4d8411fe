"""The evaluation report (confidential): the differences between synthetic and real table."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.report import (
    models_section,
    pairs_section,
    statistics_section,
)
from private_gsd.evaluation.report.drawings import Series, bars, figure, ranked
from private_gsd.evaluation.report.page import (
    Section,
    folded,
    joined,
    key,
    page,
    paragraph,
    side_by_side,
    wide_table,
)
from private_gsd.evaluation.report.pieces import (
    GROUPS,
    MORE_GROUPS,
    column_figure,
    schema_table,
)
from private_gsd.evaluation.report.privacy_statement import privacy_statement
from private_gsd.evaluation.result import ALARM
from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from private_gsd.evaluation.result import Evaluation

BOTH = (("real", "real"), ("synthetic", "synthetic"))


def evaluation_page(found: Evaluation) -> str:
    """The evaluation report as one page of HTML that loads nothing."""
    tables = found.tables
    lead = paragraph(
        f"Confidential. {tables.synthetic:,} synthetic rows and {tables.real:,} real rows, "
        f"{len(found.schema)} {'column' if len(found.schema) == 1 else 'columns'}."
    )
    sections = [
        Section("glance", "At a glance", _glance(found)),
        Section("columns", "Columns", _columns(found)),
        Section("statistics", "Statistics of columns", statistics_section.columns(found)),
        Section("groups", "Statistics of groups", statistics_section.groups(found)),
        Section("pairs", "Pairs of columns", pairs_section.pairs(found)),
        Section("answers", "Answers and noise", _answers(found)),
        Section("likeness", "The tables as wholes", pairs_section.wholes(found)),
        Section("learning", "Machine learning", models_section.learning(found)),
        Section("rules", "Rules", _rules(found)),
        Section("attacks", "Attacks", models_section.attacks(found)),
    ]
    if found.privacy is not None:
        sections.append(Section("privacy", "Privacy guarantee", privacy_statement(found.privacy)))
    sections.append(Section("schema", "Schema", schema_table(found.schema)))
    sections.append(Section("method", "How this was made", _method(found)))
    foot = paragraph(f"private-gsd {version('private-gsd')}. ", ALARM)
    return page(f"Evaluation report of {found.name}", lead, sections, foot, alarm=ALARM)


def _glance(found: Evaluation) -> Markup:
    parts = [
        paragraph(
            "The figures that matter most. What is good enough depends on what the table is for: "
            "an analysis of two columns needs their pair to be right. For machine learning, the "
            "reference is a model trained on the real rows."
        ),
        wide_table(
            "Figures that matter most",
            ("metric", "value", "reference"),
            [figure.texts() for figure in found.summary],
        ),
    ]
    if found.findings:
        listed = escape("; ".join(found.findings))
        parts.append(Markup(f'<p class="found">Attacks succeeded: {listed}.</p>'))
    worst = sorted(found.columns, key=lambda column: -column.distance)[:3]
    names = ", ".join(f"{column.name} ({column.distance:.3f})" for column in worst)
    parts.append(paragraph(f"Columns with the largest distances: {names}."))
    if found.errors.groups:
        groups = ", ".join(f"{group.name} ({group.rms:.2%})" for group in found.errors.groups[:3])
        parts.append(paragraph(f"Query groups with the largest RMS errors: {groups}."))
    return joined(parts)


def _columns(found: Evaluation) -> Markup:
    drawings = []
    for column, each in zip(found.schema, found.columns, strict=True):
        series = [
            Series("real", "real", each.real),
            Series("synthetic", "synthetic", each.synthetic),
        ]
        caption = f"{each.kind}, distance {each.distance:.3f}"
        if column.nullable:
            caption += f", null {each.nulls[0]:.1%} real, {each.nulls[1]:.1%} synthetic"
        drawings.append(column_figure(column, each.labels, series, caption, each.spikes))
    rows = [
        (
            each.name,
            each.kind,
            f"{each.distance:.4f}",
            "" if each.ks is None else f"{each.ks:.4f}",
            f"{each.nulls[0]:.2%}" if column.nullable else "",
            f"{each.nulls[1]:.2%}" if column.nullable else "",
        )
        for column, each in zip(found.schema, found.columns, strict=True)
    ]
    headers = ("column", "kind", "distance", "KS", "null, real", "null, synthetic")
    return joined(
        [
            paragraph(
                "The share of rows in each cell. The distance is the total variation distance "
                "over the cells, from 0 to 1; KS is the largest difference of cumulative shares. "
                "Numbers beyond the 1st and the 99th percentile of the real numbers are in the "
                "outer bins. A thin bar is a single number that at least 5 % of the rows of a "
                "table have; these rows are in no bin. A bar of nulls that is taller than all "
                "others is cut off."
            ),
            key(*BOTH),
            side_by_side(drawings),
            wide_table("All columns", headers, rows, words=(1,)),
        ]
    )


def _answers(found: Evaluation) -> Markup:
    errors = found.errors
    text = (
        f"{errors.queries:,} queries in {len(errors.groups):,} query groups. An error is the "
        "difference between two shares of rows. "
    )
    if errors.noise is not None and errors.measured_rms is not None:
        text += (
            f"The noise of a measured answer has a standard deviation of {errors.noise:.3%} of the "
            "rows (root mean square over the queries); the error of the synthetic table's answers "
            f"is {errors.measured_rms:.3%}, {errors.measured_rms / errors.noise:.2f} times as "
            "much. Below 1, the projection removed noise; far above 1, the table does not fit what "
            "was measured, or has too few rows."
        )
    else:
        text += "There is no noise to compare with: none of these answers was measured."
    shown = errors.groups[:GROUPS]
    marks = np.array([np.nan if group.noise is None else group.noise for group in shown])
    values = np.array([group.rms for group in shown])
    label = "Root mean squared error of the query groups with the largest errors"
    drawings = [
        figure(
            ranked([group.name for group in shown], values, marks, label),
            Markup(f"<strong>{label}</strong>"),
        )
    ]
    for group, queries in errors.worst:
        series = [
            Series("real", "real", np.array([query.real for query in queries])),
            Series("synthetic", "synthetic", np.array([query.synthetic for query in queries])),
        ]
        label = f"Query group {group.name}, the queries with the largest errors"
        drawing = bars([query.query for query in queries], series, label, above=True)
        caption = Markup(
            f"<strong>{escape(group.name)}</strong> {len(queries)} of {group.queries:,} queries, "
            "those with the largest errors"
        )
        drawings.append(figure(drawing, caption))
    listed = errors.groups[:MORE_GROUPS]
    table = wide_table(
        f"{len(listed):,} of {len(errors.groups):,} query groups, the largest errors first",
        ("query group", "queries", "RMS error", "mean error", "largest", "noise", "error / noise"),
        [
            (
                group.name,
                f"{group.queries:,}",
                f"{group.rms:.3%}",
                f"{group.mean:.3%}",
                f"{group.largest:.2%}",
                "not measured" if group.noise is None else f"{group.noise:.3%}",
                "" if group.against_noise is None else f"{group.against_noise:.2f}",
            )
            for group in listed
        ],
    )
    return joined(
        [
            paragraph(text),
            key(*BOTH, ("mark", "standard deviation of the noise")),
            side_by_side(drawings),
            folded(f"{len(listed):,} query groups in a table", table),
        ]
    )


def _rules(found: Evaluation) -> Markup:
    if not found.rules:
        return paragraph("The schema has no rules.")
    return wide_table(
        "Rows that break a rule",
        ("rule", "real rows", "synthetic rows"),
        [(rule, f"{real:.3%}", f"{synthetic:.3%}") for rule, real, synthetic in found.rules],
    )


def _method(found: Evaluation) -> Markup:
    tables = found.tables
    lines = ["Answers, nulls and broken rules are exact counts over all rows."]
    if found.tables.units is not None and found.tables.taken is not None:
        lines.append(
            f"The real table has {tables.units:,} units of protection, of whose {tables.real:,} "
            f"rows {tables.taken:,} are taken. All {tables.real:,} are compared here, each as much "
            "as any other: what bounding and weighting change is part of the differences."
        )
    for kind, sample, total in (
        ("real", tables.real_sample, tables.real),
        ("synthetic", tables.synthetic_sample, tables.synthetic),
    ):
        if sample < total:
            lines.append(
                f"All else is computed from a random sample of {sample:,} of {total:,} {kind} rows."
            )
    lines.append(
        f"Pairs of columns were compared on {found.associations.rows:,} rows of each table."
    )
    if found.associations.left_out:
        lines.append(
            f"Pairs of the first {len(found.associations.names):,} columns were compared; "
            f"{found.associations.left_out:,} further columns were left out."
        )
    if found.propensity is not None:
        lines.append(
            f"Propensity models were trained on {found.propensity.rows:,} rows of each table."
        )
    if found.attacks is not None:
        synthetic, train, holdout = found.attacks.rows
        lines.append(
            f"Attacks used {synthetic:,} synthetic, {train:,} real and {holdout:,} held-out rows."
        )
    lines.append(f"The seed of sampling and training is {found.random_state}.")
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return Markup(f"<ul>{items}</ul>")
