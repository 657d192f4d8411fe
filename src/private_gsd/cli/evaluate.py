"""``private-gsd evaluate`` and ``report``: how good a release is, and what it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from private_gsd.cli import console, options
from private_gsd.cli.output_files import OutputFile
from private_gsd.evaluation import evaluate as evaluate_table
from private_gsd.evaluation import release_page
from private_gsd.evaluation.result import ALARM, refuse_release_folder
from private_gsd.runs.release import Release
from private_gsd.schema import Schema

if TYPE_CHECKING:
    from private_gsd.evaluation import Evaluation

HtmlFile = Annotated[Path, typer.Option("--output", "-o", help="Where to write it: .html.")]


def evaluate(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="The release folder, or a synthetic table.")
    ],
    data: Annotated[str, typer.Option(help="The real table that it was made from.")],
    result: HtmlFile,
    query: options.Query = None,
    holdout: Annotated[
        str | None, typer.Option(help="Real rows that it was not made from: CSV or Parquet.")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="A column that models predict; repeatable. By default a few."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="The public schema, for a table that is no release.")
    ] = None,
    workload: options.WorkloadNames = None,
    on_invalid: Annotated[
        Literal["error", "coerce"] | None,
        typer.Option(help="What to do with values outside the schema; as the release did."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write every figure: .json.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of sampling and training.", min=0)] = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare a synthetic table with the real one. The report is NOT for publication."""
    made: Any = release
    if schema is None or (Path(release) / "release.json").exists():
        if Path(release).is_file():
            raise typer.BadParameter(f"{release} is a table: give its --schema")
        made = Release.load(release)
    table, held = options.table_of(data, query), holdout and options.table_of(holdout, None)
    targets = [OutputFile(result, force, (".html",))]
    if json_file is not None:
        targets.append(OutputFile(json_file, force, (".json",)))
    others = {"the release": release, "the schema": schema, "the held-out table": holdout}
    for each in targets:
        each.check(others, table if isinstance(table, str) else None)
        refuse_release_folder(each.path)
    public = None if schema is None else Schema.read(schema)
    with console.notes_for_warnings(quiet), console.step_progress(quiet=quiet) as tell:
        found = evaluate_table(
            made,
            table,
            schema=public,
            workload=workload or None,
            holdout=held,
            targets=target or None,
            on_invalid=on_invalid,
            seed=seed,
            tell=tell,
        )
        tell("Writing the report", 0)
        targets[0].write(found.html())
        if len(targets) > 1:
            targets[1].write(found.json())
    if not quiet:
        _show(found, result)


def report(
    folder: options.ReleaseFolder,
    result: HtmlFile,
    force: options.Force = False,
) -> None:
    """Write a page about a release, made of the release alone: as public as it is."""
    release = Release.load(folder)
    target = OutputFile(result, force, (".html",))
    target.check({"the release folder": folder})
    target.write(release_page(release))
    console.out.print(f"release report: {escape(str(result))}", soft_wrap=True)
    console.warn_if_not_private(release.privacy)


def _show(found: Evaluation, path: Path) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for header in ("measure", "value", "perfect"):
        table.add_column(header, justify="left" if header == "measure" else "right")
    for line in found.table():
        table.add_row(escape(line.measure), line.value, line.best)
    console.out.print(table)
    for finding in [] if found.attacks is None else found.attacks.findings:
        console.out.print(f"[bold red]attack:[/] {escape(finding)}", soft_wrap=True)
    console.out.print(f"[bold red]{escape(ALARM)}[/]", soft_wrap=True)
    console.out.print(f"evaluation report: {escape(str(path))}", soft_wrap=True)
