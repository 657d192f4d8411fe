"""``private-gsd report``: a page about a release, made from the release alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from private_gsd.cli import console, options, panels
from private_gsd.cli.output_files import OutputFile
from private_gsd.evaluation import release_page
from private_gsd.runs.release import Release


def report(
    release: options.ReleaseFolder,
    output: Annotated[
        Path | None,
        panels.output_option("The file of the release report: .html; with --json also .json."),
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: Annotated[
        bool,
        panels.json_option(
            "Print the settings and the privacy record as one JSON document, or write them to a "
            ".json file."
        ),
    ] = False,
) -> None:
    """Write the release report: a page about a release, which may be published with it."""
    if output is None and not as_json:
        raise typer.BadParameter("name an --output file, or add --json")
    found = Release.load(release)
    in_file = False
    document = {"settings": found.settings.to_dict(), "privacy": found.privacy}
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if output is not None:
        target = OutputFile(output, force, (".html", ".json") if as_json else (".html",))
        target.check({"the release folder": release})
        in_file = output.suffix == ".json"
        target.write(text if in_file else release_page(found))
    if as_json and not in_file:
        typer.echo(text, nl=False)
    elif not quiet:
        console.out.print(f"release report: {escape(str(output))}", soft_wrap=True)
    console.warn_if_not_private(found.privacy)
