"""``private-gsd resume``: resume a run that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from private_gsd.cli import console, options
from private_gsd.cli.output_files import OutputFile
from private_gsd.cli.panels import PRIVACY, SYNTHESIS
from private_gsd.cli.run_output import orderly_end, write_result
from private_gsd.runs.run_folder import RunFolder
from private_gsd.synthesis.synthesizer import Synthesizer


def resume(
    folder: options.ReleaseFolder,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="The sensitive table, if it was moved."),
    ] = None,
    *,
    query: options.Query = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PRIVACY,
            help="The ledger, if it was moved.",
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=SYNTHESIS,
            help="Another number of synthetic rows, if no rows were made yet.",
        ),
    ] = None,
    threads: options.Threads = None,
    output: options.OptionalTableFile = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Resume a run that was killed. Nothing is spent twice."""
    if data is None and query is not None:
        raise typer.BadParameter("--query goes with the address of a server, postgresql://…")
    target = None if output is None else OutputFile(output, force)
    if target is not None:
        release = RunFolder.load(folder)
        target.check_schema(release.schema)
        known = {"ledger": None, "data": None} if release.finished else release.run
        target.check(
            {"the ledger": ledger or known["ledger"], "the release": folder}, data or known["data"]
        )
    with orderly_end():
        with console.notes_for_warnings(quiet):
            table = None if data is None else options.table_of(data, query)
            synth = Synthesizer.resume(
                folder, table, ledger=ledger, rows=rows, threads=threads, progress=not quiet
            )
        write_result(synth.release_, folder, target, quiet, as_json)
