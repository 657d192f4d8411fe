"""The release report: a description of a release, made from the release alone.

The report may be published with the release. It opens only the files that ``Release.save`` copies:
not the data, not the ledger, and not ``run.json``, which has the paths of both.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.counting.exact import count
from private_gsd.evaluation.metrics.column_bins import cells_of
from private_gsd.evaluation.report.drawings import Series, figure, ranked
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
from private_gsd.projection.constraints import broken_by_rule
from private_gsd.schema.neighbours import records_are_public
from private_gsd.system.markup import Markup

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.runs.release import Release
    from private_gsd.runs.settings import RunSettings
    from private_gsd.schema import Schema

    Matrix = NDArray[np.float64]


def release_page(release: Release) -> str:
    """The release report as one page of HTML that loads nothing."""
    schema, matrix = release.schema, release.matrix
    record, measurements = release.privacy, release.measurements()
    lead = paragraph(
        f"A synthetic table of {len(matrix):,} rows and {len(schema)} "
        f"{'column' if len(schema) == 1 else 'columns'}, made by private-gsd. This report was made "
        "from the release alone, and holds nothing of the sensitive data that the release does not."
    )
    sections = [
        Section("privacy", "Privacy", privacy_statement(record)),
        Section("measured", "What was measured, and how it fits", _fit(measurements, matrix)),
        Section("columns", "Synthetic columns", _columns(schema, matrix)),
        Section("schema", "Schema", joined([schema_table(schema), _rules(schema, matrix)])),
        Section("method", "How it was made", _method(release.settings)),
    ]
    reasons = "; ".join(record["not_private_because"])
    alarm = f"NOT PRIVATE: {reasons}." if reasons else None
    foot = paragraph(f"private-gsd {version('private-gsd')}.")
    return page(f"Release report of {release.name}", lead, sections, foot, alarm=alarm)


def _fit(measurements: Measurements | None, matrix: Matrix) -> Markup:
    """The measured query groups, their noise, and how far the table is from the noisy answers."""
    if measurements is None:
        return paragraph("Nothing was measured.")
    workload = measurements.workload
    synthetic = count(workload, matrix) / len(matrix)
    starts, sizes = workload.offsets[:-1], workload.group_sizes
    # Sums are shown as shares of the largest possible sum.
    contributions = np.repeat(workload.max_contributions, sizes)
    difference = (synthetic - measurements.shares) / contributions
    rms = np.sqrt(np.add.reduceat(difference**2, starts) / sizes)
    noise = measurements.scales / measurements.n_records / workload.max_contributions
    overall = float(np.sqrt(np.mean((difference * contributions) ** 2 / measurements.variances)))
    order = np.argsort(-rms / noise, kind="stable").tolist()
    names = {group: workload.describe(group) for group in order[:MORE_GROUPS]}
    shown = order[:GROUPS]
    label = "Query groups that fit worst: the table's answers against the noisy answers"
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
    unit = workload.schema.unit
    about = "" if records_are_public(measurements.neighbours, unit) else "about "
    records, bounding = "records", ""
    if unit is not None:
        records = "rows of units" if unit.rows_count else "units"
        counts = "each of them counts" if unit.rows_count else "each unit counts"
        bounding = f" At most {unit.at_most:,} rows of each unit were taken, and {counts} one."
    return joined(
        [
            paragraph(
                f"{workload.size:,} counts in {workload.num_groups:,} query groups were measured "
                f"in a table of {about}{measurements.n_records:,} {records}, each with noise of "
                f"the standard deviation given.{bounding} The projection then looked for a "
                "synthetic table with the same answers. Its answers differ from the noisy answers "
                f"by {overall:.2f} standard deviations of the noise (root mean square). The true "
                "table would differ by about 1: a value near 1 is good, a much larger value means "
                "that the table does not fit, a much smaller value that it fits the noise."
            ),
            key(("synthetic", "root mean squared difference"), ("mark", "noise")),
            side_by_side([figure(drawing, Markup(f"<strong>{label}</strong>"))]),
            folded(
                f"{len(rows):,} of {workload.num_groups:,} query groups in a table",
                wide_table(
                    "What was measured, the worst fit first",
                    (
                        *("query group", "counts", "noise, rows", "noise"),
                        *("difference", "difference / noise"),
                    ),
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
        caption = column.kind
        if column.nullable:
            caption += f", null {np.isnan(values).mean():.1%}"
        drawings.append(column_figure(column, cells.labels, series, caption, cells.spike_places))
    return joined(
        [
            paragraph(
                "The share of the synthetic rows in each cell. A thin bar is a single number that "
                "at least 5 % of the rows have. These are not the real shares: the table was "
                "fitted to many noisy answers at once."
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


def _method(settings: RunSettings) -> Markup:
    budget = settings.budget
    rows = [
        ("mechanism", _described(settings.mechanism.to_dict())),
        ("projector", _described(settings.projector.to_dict())),
        ("rows", settings.rows),
        ("random state", settings.random_state),
        ("neighbours", budget.neighbours),
        ("conversion", budget.conversion),
    ]
    return wide_table("Settings", ("setting", "value"), rows, words=(1,))


def _described(settings: dict[str, Any]) -> str:
    """A mechanism or a projector: its name and its settings."""
    listed = [f"{name.replace('_', ' ')} {value}" for name, value in settings.items()][1:]
    return f"{settings['name']} ({', '.join(listed)})" if listed else str(settings["name"])
