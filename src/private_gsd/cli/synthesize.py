"""``private-gsd synthesize``: from a sensitive table to a release."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from private_gsd.cli import console, options
from private_gsd.cli.output_files import OutputFile
from private_gsd.cli.panels import OUTPUT, PRIVACY
from private_gsd.cli.run_output import orderly_end, write_result
from private_gsd.cli.synthesizer_options import SynthesizerOptions, with_synthesizer_options
from private_gsd.errors import NotFittedError


@with_synthesizer_options
def synthesize(
    data: options.Data,
    *,
    stated: SynthesizerOptions,
    query: options.Query = None,
    on_invalid: options.WhenInvalid = "error",
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PRIVACY,
            help="The ledger that pays for the release; 'ledger create' makes one.",
        ),
    ] = None,
    create_ledger: Annotated[
        bool,
        typer.Option(
            "--create-ledger",
            rich_help_panel=PRIVACY,
            help="Create the ledger if it does not exist. The budget of this release is then the "
            "total budget of the dataset, forever.",
        ),
    ] = False,
    dataset: options.Dataset = None,
    insecure_noise_seed: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="A seed of the noise, only for tests: the release is then not private.",
        ),
    ] = None,
    output: options.OptionalTableFile = None,
    release: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            help="The folder that the release is written to; a killed run is resumed from it.",
        ),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Make a private synthetic table from a sensitive table."""
    if output is None and release is None:
        raise typer.BadParameter("name an --output file, or a --release folder, or both")
    # Errors in the output options are found before anything is spent.
    table = options.table_of(data, query)
    target = None if output is None else OutputFile(output, force)
    if target is not None:
        others = {"the ledger": ledger, "the release": release, **stated.files()}
        target.check(others, table if isinstance(table, str) else None)
    synth = stated.synthesizer()
    if target is not None:
        target.check_schema(synth.schema)
    with orderly_end():
        try:
            with console.notes_for_warnings(quiet):
                synth.fit(
                    table,
                    ledger=ledger,
                    create_ledger=create_ledger,
                    dataset=options.dataset_of(table) if dataset is None else dataset,
                    release=release,
                    on_invalid=on_invalid,
                    insecure_noise_seed=insecure_noise_seed,
                    progress=not quiet,
                )
            write_result(synth.release_, release, target, quiet, as_json)
        except BaseException:
            with suppress(NotFittedError):
                synth.release_.persist()  # what was paid for is kept
            raise
