"""The release report: what a release is, made of the release alone and as public as it is.

Nothing but the files that ``Release.save`` hands on is opened: not the data, not the ledger, not
``run.json``, which knows where these are.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.evaluation.metrics.column_bins import cells_of
from private_gsd.evaluation.report.figures import Series, figure, ranked
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
from private_gsd.evaluation.report.pieces import column_figure, schema_table
from private_gsd.evaluation.report.privacy_statement import privacy_statement
from private_gsd.projection.constraints import broken_by_rule
from private_gsd.system.markup import Markup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.runs.release import Release
    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]

GROUPS = 12
MORE_GROUPS = 500


def release_page(release: Release) -> str:
    """The whole report, one page of HTML that needs nothing else."""
    schema, matrix = release.schema, release.matrix
    record, measurements = release.privacy, release.measurements()
    settings = release.settings
    lead = paragraph(
        f"A synthetic table of {len(matrix):,} rows and {len(schema)} "
        f"{'column' if len(schema) == 1 else 'columns'}, made by private-gsd. This page was made "
        "of the release alone: it holds nothing of the data but what the release holds."
    )
    sections = [
        Section("privacy", "Privacy", privacy_statement(record)),
        Section("measured", "What was measured, and how it fits", _fit(measurements, matrix)),
        Section("columns", "The synthetic columns", _columns(schema, matrix)),
        Section("schema", "Schema", joined([schema_table(schema), _rules(schema, matrix)])),
        Section("method", "How it was made", _method(settings)),
    ]
    reasons = "; ".join(record["not_private_because"])
    alarm = f"NOT PRIVATE: {reasons}." if reasons else None
    foot = paragraph(f"private-gsd {version('private-gsd')}.")
    return page(f"Release {release.name}", lead, sections, foot, alarm=alarm)


def _fit(measurements: Measurements | None, matrix: Matrix) -> Markup:
    """The groups that were measured, their noise, and how far the table is from the answers."""
    if measurements is None:
        return paragraph("Nothing was measured.")
    asked = measurements.workload
    made = count(asked, matrix) / len(matrix)
    starts, sizes = asked.offsets[:-1], asked.group_sizes
    # Sums are shown as shares of what all rows could come to.
    units = np.repeat(asked.units, sizes)
    apart = (made - measurements.shares) / units
    rms = np.sqrt(np.add.reduceat(apart**2, starts) / sizes)
    noise = measurements.scales / measurements.n_records / asked.units
    overall = float(np.sqrt(np.mean((apart * units) ** 2 / measurements.variances)))
    order = np.argsort(-rms / noise, kind="stable").tolist()
    names = {group: asked.describe(group) for group in order[:MORE_GROUPS]}
    shown = order[:GROUPS]
    label = "Groups that fit worst: the table's answers against the noisy ones"
    drawing = ranked([names[group] for group in shown], rms[shown], noise[shown], label)
    rows = [
        (
            names[group],
            f"{int(sizes[group]):,}",
            f"{measurements.scales[group]:,.4g}",
            f"{noise[group]:.3%}",
            f"{rms[group]:.3%}",
            f"{rms[group] / noise[group]:.2f}",
        )
        for group in order[:MORE_GROUPS]
    ]
    about = "about " if measurements.neighbours == "add-remove" else ""
    return joined(
        [
            paragraph(
                f"{asked.size:,} counts in {asked.num_groups:,} groups were measured in a table of "
                f"{about}{measurements.n_records:,} rows, each with noise of the standard deviation "
                "given. The synthetic table was then searched for, to answer as they do. Its "
                f"answers differ from the noisy ones by {overall:.2f} standard deviations of the "
                "noise, as a root mean square. The true table would differ by about 1: a value "
                "near 1 is what to hope for, a much larger one means that the table does not fit, "
                "a much smaller one that it follows the noise."
            ),
            key(("synthetic", "root mean squared difference"), ("mark", "noise")),
            side_by_side([figure(drawing, Markup(f"<strong>{label}</strong>"))]),
            folded(
                f"{len(rows):,} of {asked.num_groups:,} groups in a table",
                wide_table(
                    "What was measured, the worst fit first",
                    ("group", "counts", "noise, rows", "noise", "difference", "difference / noise"),
                    rows,
                ),
            ),
        ]
    )


def _columns(schema: Schema, matrix: Matrix) -> Markup:
    drawings = []
    for place, column in enumerate(schema):
        values = matrix[:, place]
        cells = cells_of(column, [values])
        series = [Series("synthetic", "synthetic", cells.shares(values))]
        words = column.kind
        if column.nullable:
            words += f", null {np.isnan(values).mean():.1%}"
        drawings.append(column_figure(column, cells.labels, series, words))
    return joined(
        [
            paragraph(
                "The share of the synthetic rows in each cell. These are not the real shares: "
                "noise was added, and the table was fitted to many noisy answers at once."
            ),
            side_by_side(drawings),
        ]
    )


def _rules(schema: Schema, matrix: Matrix) -> Markup:
    if not schema.constraints:
        return Markup("")
    broken = broken_by_rule(schema, matrix) / len(matrix)
    return wide_table(
        "Synthetic rows that break a rule",
        ("rule", "rows"),
        [
            (rule, f"{share:.3%}")
            for rule, share in zip(schema.constraints, broken.tolist(), strict=True)
        ],
    )


def _method(settings: dict[str, object]) -> Markup:
    names = ("mechanism", "epochs", "groups", "rows", "random_state", "neighbours", "conversion")
    adaptive = settings.get("mechanism") == "adaptive"
    rows = [
        (name.replace("_", " "), settings[name])
        for name in names
        if name in settings and (adaptive or name not in ("epochs", "groups"))
    ]
    return wide_table("Settings", ("setting", "value"), rows, words=(1,))
