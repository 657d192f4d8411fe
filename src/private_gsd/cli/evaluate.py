"""``private-gsd evaluate``: compare a synthetic table with the real table (confidential)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from private_gsd.cli import console, options, panels
from private_gsd.cli.output_files import OutputFile
from private_gsd.cli.panels import DATA, QUERIES
from private_gsd.data.encoding import OnInvalid
from private_gsd.evaluation import evaluate as evaluate_table
from private_gsd.evaluation import evaluation_page
from private_gsd.evaluation.report.writing import refuse_release_folder
from private_gsd.evaluation.result import ALARM
from private_gsd.runs.release import Release
from private_gsd.schema import Schema

if TYPE_CHECKING:
    from private_gsd.evaluation import Evaluation


def evaluate(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The release folder, or a synthetic table.")
    ],
    data: options.Data,
    query: options.Query = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=DATA,
            help="The public schema, for a synthetic table without a release.",
        ),
    ] = None,
    on_invalid: Annotated[
        OnInvalid | None,
        typer.Option(
            rich_help_panel=DATA,
            help="What to do with values outside the schema. By default as in the release.",
        ),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            rich_help_panel=DATA,
            help="Real rows that the synthetic table was not made from: CSV or Parquet.",
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=QUERIES,
            help="Queries whose answers are compared, repeatable. By default those of the release.",
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=QUERIES,
            help="A column that models predict, repeatable. By default a few with few classes.",
        ),
    ] = None,
    random_state: Annotated[
        int,
        typer.Option(rich_help_panel=DATA, min=0, help="The seed of sampling and training."),
    ] = 0,
    output: Annotated[
        Path | None,
        panels.output_option("The file of the evaluation report: .html; with --json also .json."),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: Annotated[
        bool,
        panels.json_option("Print every figure as one JSON document, or write it to a .json file."),
    ] = False,
) -> None:
    """Compare a synthetic table with the real table. The evaluation report is confidential."""
    synthetic: Any = release
    if schema is None or (Path(release) / "release.json").exists():
        if Path(release).is_file():
            raise typer.BadParameter(f"{release} is a table: give its --schema")
        synthetic = Release.load(release)
    table = options.table_of(data, query)
    target_file = None
    if output is not None:
        target_file = OutputFile(output, force, (".html", ".json") if as_json else (".html",))
        others = {"the release": release, "the schema": schema, "the held-out table": holdout}
        target_file.check(others, table if isinstance(table, str) else None)
        refuse_release_folder(output)
    with console.notes_for_warnings(quiet):
        found = evaluate_table(
            synthetic,
            table,
            schema=None if schema is None else Schema.read(schema),
            workload=workload or None,
            holdout=None if holdout is None else options.table_of(holdout, None),
            targets=target or None,
            on_invalid=on_invalid,
            random_state=random_state,
            progress=not quiet,
        )
    in_file = target_file is not None and target_file.path.suffix == ".json"
    if target_file is not None:
        target_file.write(found.json() if in_file else evaluation_page(found))
    if as_json and not in_file:
        typer.echo(found.json(), nl=False)
    elif not quiet:
        _show(found, output)


def _show(found: Evaluation, path: Path | None) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for header in ("metric", "value", "reference"):
        table.add_column(header, justify="left" if header == "metric" else "right")
    for figure in found.summary:
        metric, value, reference = figure.texts()
        table.add_row(escape(metric), value, reference)
    console.out.print(table)
    for finding in found.findings:
        console.out.print(f"[bold red]attack:[/] {escape(finding)}", soft_wrap=True)
    console.out.print(f"[bold red]{escape(ALARM)}[/]", soft_wrap=True)
    if path is not None:
        console.out.print(f"evaluation report (confidential): {escape(str(path))}", soft_wrap=True)
