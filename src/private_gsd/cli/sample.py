"""``private-gsd sample``: draw rows from a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from private_gsd.cli import console, options
from private_gsd.cli.output_files import OutputFile
from private_gsd.cli.panels import SYNTHESIS
from private_gsd.runs.release import Release
from private_gsd.synthesis.sampling import fill_columns, sampled_tables
from private_gsd.system.progress import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


def sample(
    folder: options.ReleaseFolder,
    output: options.TableFile,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            "-n",
            rich_help_panel=SYNTHESIS,
            min=1,
            help="The number of synthetic rows. By default all rows of the release; rows beyond "
            "these are new, and as many as you like.",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            rich_help_panel=SYNTHESIS,
            help="A condition in SQL that all drawn rows satisfy.",
        ),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            rich_help_panel=SYNTHESIS,
            help="A table with some of the columns; the other columns are synthesized.",
        ),
    ] = None,
    random_state: Annotated[
        int,
        typer.Option(
            rich_help_panel=SYNTHESIS,
            min=0,
            help="The seed of the sample; privacy does not depend on it.",
        ),
    ] = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw rows from a release, and as many new ones as you like. Nothing is spent."""
    if given is not None and (rows is not None or where is not None):
        raise typer.BadParameter(
            "--given makes one row for each given row; leave --rows and --where out"
        )
    target = OutputFile(output, force)
    target.check({"the release": folder}, given)
    release = Release.load(folder)
    target.check_schema(release.schema)
    tables: Iterable[pa.Table]
    with shown(not quiet) as report:
        if given is None:
            tables = sampled_tables(release, rows, random_state, where, report)
        else:
            tables = [fill_columns(release, given, seed=random_state)]
        written = target.write_table(tables, release.schema)
    if not quiet:
        console.out.print(f"{written:,} rows: {escape(str(output))}", soft_wrap=True)
    console.warn_if_not_private(release.privacy)
