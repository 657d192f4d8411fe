"""``private-gsd synthesize``, ``resume`` and ``sample``: from a table to a release."""

from __future__ import annotations

import glob
import json
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from private_gsd.cli import console, options
from private_gsd.cli.output_files import OutputFile
from private_gsd.measurements.knowledge import read_totals
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.record import at_most, uncovered
from private_gsd.runs.release import Release
from private_gsd.schema import Schema
from private_gsd.synthesis.sampling import fill_columns, sampled
from private_gsd.synthesis.synthesizer import Synthesizer

if TYPE_CHECKING:
    from collections.abc import Iterator


def synthesize(
    data: options.Data,
    schema: options.SchemaFile,
    epsilon: options.Epsilon,
    query: options.Query = None,
    result: options.Output = None,
    release: Annotated[
        Path | None, typer.Option(help="Keep the release in this folder; a killed run resumes.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger to charge, made by 'ledger create'.")
    ] = None,
    create_ledger: Annotated[
        bool,
        typer.Option(
            "--create-ledger",
            help="Make the ledger if there is none, with this budget as its total for ever.",
        ),
    ] = False,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in the ledger.")] = None,
    delta: options.Delta = None,
    workload: options.WorkloadNames = None,
    queries: options.QueriesFile = None,
    mechanism: options.MechanismName = "auto",
    epochs: options.Epochs = 25,
    groups: options.Groups = 1,
    neighbours: options.NeighboursName = "replace-one",
    totals: options.Totals = None,
    derived: options.Derived = None,
    evidence: options.Evidence = None,
    rows: options.Rows = None,
    projector: options.ProjectorName = "gsd",
    seed: Annotated[int, typer.Option(help="Of the search; not of the noise.")] = 0,
    on_invalid: Annotated[
        Literal["error", "coerce"], typer.Option(help="What to do with values outside the schema.")
    ] = "error",
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Make a private synthetic table of a sensitive one."""
    if result is None and release is None:
        raise typer.BadParameter("name an --output, or a --release folder, or both")
    # Whatever is wrong with the output is found before anything is spent.
    table = options.table_of(data, query)
    target = None if result is None else OutputFile(result, force)
    if target is not None:
        others = {"the ledger": ledger, "the release": release, "the schema": schema}
        others |= {"the totals": totals, "the queries": queries}
        target.check(others, table if isinstance(table, str) else None)
    public = Schema.read(schema)
    if target is not None:
        target.check_schema(public)
    synth = Synthesizer(
        public,
        epsilon,
        delta=delta,
        workload=options.workload_asked(public, workload, queries),
        mechanism=mechanism,
        epochs=epochs,
        groups=groups,
        neighbours=neighbours,
        totals=None if totals is None else read_totals(totals),
        derived=derived or (),
        evidence=[Measurements.load(folder) for folder in evidence or ()],
        rows=rows,
        random_state=seed,
        ledger=ledger,
        create_ledger=create_ledger,
        dataset=_dataset_of(table) if dataset is None else dataset,
        release=release,
        on_invalid=on_invalid,
        projector=projector,
    )
    with _trouble():
        try:
            with console.notes_for_warnings(quiet), console.run_progress(quiet=quiet) as tell:
                synth.fit(table, tell=tell)
            _hand_over(synth.release, release, target, quiet, as_json)
        except BaseException:
            synth.keep_folder()  # what was paid for is not thrown away
            raise


def resume(
    folder: options.ReleaseFolder,
    data: Annotated[
        str | None, typer.Option(help="The table, if it is no longer where it was.")
    ] = None,
    query: options.Query = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger, if it is no longer where it was.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Another number of synthetic rows, if there are none yet.")
    ] = None,
    result: options.Output = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Go on with a run that was killed. Nothing is spent twice."""
    target = None if result is None else OutputFile(result, force)
    if target is not None:
        release = Release.load(folder)
        target.check_schema(release.schema)
        known = {"ledger": None, "data": None} if release.finished else release.run
        target.check(
            {"the ledger": ledger or known["ledger"], "the release": folder}, data or known["data"]
        )
    with _trouble():
        with console.notes_for_warnings(quiet), console.run_progress(quiet=quiet) as tell:
            if data is None and query is not None:
                raise typer.BadParameter("--query goes with --data postgresql://…")
            table = None if data is None else options.table_of(data, query)
            synth = Synthesizer.resume(folder, table, ledger=ledger, rows=rows, tell=tell)
        _hand_over(synth.release, folder, target, quiet, as_json)


def sample(
    folder: options.ReleaseFolder,
    result: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write it: .csv or .parquet.")
    ],
    number: Annotated[
        int | None, typer.Option("--rows", "-n", help="How many rows; all by default.", min=1)
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="Only rows that meet this condition, in SQL.")
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(help="A table of some columns; the others are made to go with them."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which rows, where not all are taken.", min=0)] = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Draw rows from the synthetic table of a release. Nothing is spent."""
    if given is not None and (number is not None or where is not None):
        raise typer.BadParameter("--given makes a row for each given one; leave the others out")
    target = OutputFile(result, force)
    target.check({"the release": folder}, given)
    release = Release.load(folder)
    target.check_schema(release.schema)
    if given is None:
        table = sampled(release, number, seed, where)
    else:
        with console.run_progress(quiet=quiet) as tell:
            table = fill_columns(
                release, given, seed=seed, callback=lambda now: tell("searching", now)
            )
    target.write_table(table, release.schema)
    console.out.print(f"{table.num_rows:,} rows: {escape(str(result))}", soft_wrap=True)
    console.warn_if_not_private(release.privacy)


def _dataset_of(table: object) -> str:
    """The dataset's name in the ledger, where none is given: the file's, if it is one."""
    if not isinstance(table, str) or glob.has_magic(table):
        return "table"
    return Path(table).stem.encode("utf-8", "ignore").decode() or "table"


@contextmanager
def _trouble() -> Iterator[None]:
    """A word on Ctrl-C and on how to go on; a run that is told to end ends like one."""

    def end(number: int, _: object) -> None:
        # What was being made is thrown away half made, and may complain; nobody need read that.
        sys.unraisablehook = lambda _: None
        raise SystemExit(128 + number)

    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN  # as nohup asks
    ]
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


def _hand_over(
    release: Release, folder: Path | None, target: OutputFile | None, quiet: bool, as_json: bool
) -> None:
    """Write the table where it was asked for, and say what was spent."""
    table = release.synthetic
    result = None if target is None else target.path
    if target is not None:
        try:
            target.write_table(table, release.schema)
        except BaseException as error:
            error.add_note(f"the synthetic table is kept in {release.folder}")
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
        for line in _promise(record):
            console.out.print(escape(line), soft_wrap=True)
    if record["this_release_alone"] and not quiet:
        console.note(
            "no ledger was given: nobody adds up what this and other releases of the same table "
            "spend. 'private-gsd ledger create' makes one, for --ledger"
        )


def _promise(record: dict[str, Any]) -> list[str]:
    """What is guaranteed, or why nothing is; and what is spent, which is accounting."""
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
            f"{what}, of dataset {dataset!r}, {record['neighbours']} neighbours, one row",
            *(f"not covered: {words}" for words in uncovered(record)),
        ]
    return [
        *first,
        f"accounting: rho = {spent['rho']:.4g} of the total of {at_most(total['rho'], 4)} is spent "
        f"on dataset {dataset!r} so far",
    ]
