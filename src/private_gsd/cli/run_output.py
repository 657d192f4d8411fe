"""Write the result of a run, or explain how to resume after a failure."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from private_gsd.cli import console
from private_gsd.privacy.record import at_most, uncovered, unit_in_words
from private_gsd.system.operating_system import ending_signals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from private_gsd.cli.output_files import OutputFile
    from private_gsd.runs.release import Release


@contextmanager
def orderly_end() -> Iterator[None]:
    """Print how to resume after a failure; Ctrl-C and the system's signals end a run in order."""

    def end(number: int, _: object) -> None:
        # Objects that are incomplete at this moment may raise errors when they are deleted. These
        # errors are not printed.
        sys.unraisablehook = lambda _: None
        raise SystemExit(128 + number)

    numbers = ending_signals()  # but for SIGHUP where nohup has it ignored
    before = [signal.signal(number, end) for number in numbers]
    try:
        yield
    except BaseException as error:
        for note in getattr(error, "__notes__", []):
            console.note(note)
        if isinstance(error, KeyboardInterrupt):
            console.err.print("[bold red]error:[/] interrupted")
            raise typer.Exit(130) from None
        raise
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def write_result(
    release: Release, folder: Path | None, target: OutputFile | None, quiet: bool, as_json: bool
) -> None:
    """Write the synthetic table to the output file, and print what was spent.

    Args:
        release: The finished release.
        folder: The release folder that was named; None for a temporary one.
        target: The output file of the synthetic table; None without one.
        quiet: Whether to print only a warning if the release is not private.
        as_json: Whether to print one JSON document.
    """
    table = release.synthetic
    result = None if target is None else target.path
    if target is not None:
        try:
            target.write_table([table], release.schema)
        except BaseException as error:
            error.add_note(f"the synthetic table is in the release folder {release.folder}")
            raise
    record = release.privacy
    if as_json:
        document = {
            "rows": table.num_rows,
            "output": None if result is None else str(result),
            "release": None if folder is None else str(release.folder),
            "privacy": record,
        }
        typer.echo(json.dumps(document, indent=2))
    elif quiet:
        console.warn_if_not_private(record)
    else:
        console.out.print(
            f"{table.num_rows:,} synthetic rows: {escape(str(result or release.folder))}",
            soft_wrap=True,
        )
        for line in guarantee(record):
            console.out.print(escape(line), soft_wrap=True)
    if record["this_release_alone"] and not quiet:
        console.note(
            "no ledger was given: what this and other releases of the same table spend is not "
            "added up. 'private-gsd ledger create' makes one, for --ledger"
        )


def guarantee(record: dict[str, Any]) -> list[str]:
    """The lines on what is guaranteed, or why nothing is, and on what was spent so far."""
    total, spent, dataset = record["total"], record["spent"], record["dataset"]
    if record["not_private_because"]:
        first = [f"NOT PRIVATE: {reason}" for reason in record["not_private_because"]]
    else:
        alone = record["this_release_alone"]
        answers = "all noisy answers that this ledger pays for, now and later"
        what = "this release alone" if alone else answers
        first = [
            f"private: epsilon = {at_most(total['epsilon'], 4)} at delta = "
            f"{at_most(record['delta'], 3)} (rho = {at_most(total['rho'], 4)}) is guaranteed for "
            f"{what}, of dataset {dataset!r}, {record['neighbours']} neighbours, "
            f"{unit_in_words(record.get('unit'))}",
            *(f"not covered: {words}" for words in uncovered(record)),
        ]
    return [
        *first,
        f"accounting: rho = {spent['rho']:.4g} of the total of {at_most(total['rho'], 4)} is spent "
        f"on dataset {dataset!r} so far",
    ]
