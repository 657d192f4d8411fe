"""``private-gsd plan``, ``synthesize``, ``resume`` and ``sample``: from a table to a release."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.markup import escape

from private_gsd.cli import output
from private_gsd.errors import GsdError, ReleaseError
from private_gsd.mechanism import Mechanism, adaptive_units, choose
from private_gsd.privacy.budget import Budget, default_delta, units_to_rho
from private_gsd.privacy.mechanisms import gaussian_scale
from private_gsd.privacy.plan import plan_one_shot
from private_gsd.release import Release
from private_gsd.schema import Schema
from private_gsd.sources import open_source
from private_gsd.synthesizer import Synthesizer, sampled
from private_gsd.workloads import Conjunctions, Marginals
from private_gsd.workloads.specs import KINDS, default_specs, workload_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from private_gsd.synthesizer import Tell
    from private_gsd.workloads import Workload

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help="CSV or Parquet, or a glob.")]
SchemaOption = Annotated[Path, typer.Option("--schema", help="The public schema.")]
EpsilonOption = Annotated[float, typer.Option(help="The budget of this release.")]
DeltaOption = Annotated[float | None, typer.Option(help="By default 1 / rows².")]
WorkloadOption = Annotated[
    list[str] | None, typer.Option("--workload", help="Repeatable: " + "; ".join(KINDS.values()))
]
MechanismOption = Annotated[
    Literal["auto", "one-shot", "adaptive"], typer.Option(help="How to spend it.")
]
EpochsOption = Annotated[int, typer.Option(help="Of the adaptive mechanism.")]
GroupsOption = Annotated[int, typer.Option(help="Of the adaptive mechanism, an epoch.")]
RowsOption = Annotated[int, typer.Option(help="How many synthetic rows.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write it: .csv or .parquet.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]


def plan(
    data: DataArgument,
    schema: SchemaOption,
    epsilon: EpsilonOption,
    delta: DeltaOption = None,
    workload: WorkloadOption = None,
    mechanism: MechanismOption = "auto",
    epochs: EpochsOption = 25,
    groups: GroupsOption = 1,
    rows: RowsOption = 2000,
    as_json: JsonOption = False,
) -> None:
    """Show what would be measured, with how much noise, before anything is spent.

    Of the table only the number of rows is looked at.
    """
    public = Schema.read(schema)
    asked = _workload(public, workload)
    source = open_source(data, public)
    people = source.rows
    if people is None:
        people = sum(
            batch.num_rows
            for batch in output.with_progress(source.batches(), "Counting rows", None)
        )
    budget = Budget.from_epsilon(epsilon, default_delta(people) if delta is None else delta)
    how = Mechanism()
    if mechanism == "auto":
        how = choose(asked, budget, people)
    elif mechanism == "adaptive":
        how = Mechanism(name=mechanism, epochs=epochs, groups=groups)
    if how.name == "one-shot":
        planned = plan_one_shot(asked, budget)
        lines = planned.describe().splitlines()
        scales = np.array([share.scale for share in planned.shares])
    else:
        selecting, measuring = adaptive_units(how, asked, budget)
        squares = asked.squared_sensitivities()
        units = measuring[0][0]
        scales = np.array([gaussian_scale(square or 1.0, units) for square in set(squares)])
        lines = [
            f"rho = {budget.rho:.4g} (epsilon = {budget.epsilon:.4g} at delta = "
            f"{budget.delta:.4g}), {len(measuring)} epochs of {len(measuring[0])} groups each, "
            f"of {asked.num_groups:,}",
            f"selecting gets rho = {units_to_rho(selecting[0]):.3g} an epoch, each measurement "
            f"{units_to_rho(units):.3g}",
        ]
    # A normal variable of this scale is that far from zero on average.
    error = scales * np.sqrt(2 / np.pi)
    if as_json:
        document = {
            "rows": people,
            "queries": asked.size,
            "groups": asked.num_groups,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "rho": budget.rho,
            "mechanism": how.name,
            "noise_rows": [float(scales.min()), float(scales.max())],
            "mean_error_share": [float(error.min() / people), float(error.max() / people)],
        }
        typer.echo(json.dumps(document, indent=2))
        return
    say = output.out.print
    say(
        f"{people:,} rows, {asked.size:,} queries in {asked.num_groups:,} groups, {how.name}",
        soft_wrap=True,
    )
    for line in lines:
        say(escape(line), soft_wrap=True)
    say(
        f"Noise of {scales.min():.4g} to {scales.max():.4g} rows on each count that is measured: "
        f"a mean error of {error.min() / people:.3g} to {error.max() / people:.3g} as a share.",
        soft_wrap=True,
    )
    seconds = _seconds(asked, rows) * (1 if how.name == "one-shot" else how.epochs)
    memory = (300e6 + 60 * asked.size + 20 * rows * len(public)) / 1e6
    say(
        f"A search for {rows:,} rows takes about {max(seconds, 0.1):,.1f} s on one core and "
        f"{memory:,.0f} MB, and the pass over the data a second or two for a million rows.",
        soft_wrap=True,
    )
    say("Nothing was spent. Go on with 'private-gsd synthesize'.")


def synthesize(
    data: DataArgument,
    schema: SchemaOption,
    epsilon: EpsilonOption,
    result: OutputOption = None,
    release: Annotated[
        Path | None, typer.Option(help="Keep the release in this folder; a killed run resumes.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger to charge.")] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in the ledger.")] = None,
    delta: DeltaOption = None,
    workload: WorkloadOption = None,
    mechanism: MechanismOption = "auto",
    epochs: EpochsOption = 25,
    groups: GroupsOption = 1,
    rows: RowsOption = 2000,
    seed: Annotated[int, typer.Option(help="Of the search; not of the noise.")] = 0,
    invalid: Annotated[
        Literal["error", "coerce"], typer.Option(help="What to do with values outside the schema.")
    ] = "error",
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a private synthetic table of a sensitive one."""
    if result is None and release is None:
        raise typer.BadParameter("name an --output, or a --release folder, or both")
    # Whatever is wrong with the output is found before anything is spent.
    if result is not None:
        _check_output(result, force)
    public = Schema.read(schema)
    synth = Synthesizer(
        public,
        epsilon,
        delta=delta,
        workload=_workload(public, workload),
        mechanism=mechanism,
        epochs=epochs,
        groups=groups,
        rows=rows,
        random_state=seed,
        ledger=ledger,
        dataset=dataset or Path(data).stem or "table",
        release=release,
        invalid=invalid,
    )
    with _told(quiet) as tell:
        synth.fit(data, tell=tell)
    try:
        _hand_over(synth.release, release, result, quiet, as_json)
    except GsdError:  # it names the folder, which must then be there
        synth.keep_folder()
        raise


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")],
    data: Annotated[
        str | None, typer.Option(help="The table, if it is no longer where it was.")
    ] = None,
    result: OutputOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was killed. Nothing is spent twice."""
    if result is not None:
        _check_output(result, force)
    with _told(quiet) as tell:
        synth = Synthesizer.resume(folder, data, tell=tell)
    _hand_over(synth.release, folder, result, quiet, as_json)


def sample(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")],
    number: Annotated[int, typer.Option("--rows", "-n", help="How many rows.", min=1)],
    result: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write it: .csv or .parquet.")
    ],
    seed: Annotated[int, typer.Option(help="Which rows, where not all are taken.", min=0)] = 0,
    force: ForceOption = False,
) -> None:
    """Draw rows from the synthetic table of a release. No row is new; nothing is spent."""
    _check_output(result, force)
    _write(sampled(Release.load(folder), number, seed), result)
    output.out.print(f"{number:,} rows: {escape(str(result))}", soft_wrap=True)


def _seconds(workload: Workload, rows: int) -> float:
    """About how long a search takes: some twenty visits to each value, as docs/benchmarks.md has.

    A visit costs about 8 ns for each table that the column is in, and a fifth of that for each
    prefix and halfspace.
    """
    looks = 0.0
    for family in workload.families:
        if isinstance(family, Marginals):
            looks += sum(len(features) for group in family.groups for features in group.tables)
        elif isinstance(family, Conjunctions):
            looks += 0.2 * len(family.category) * (1 + family.numbers.shape[1])
        else:
            looks += 0.2 * float(family.group_sizes.sum()) * len(workload.schema)
    return 20 * rows * looks * 8e-9


def _workload(schema: Schema, specs: list[str] | None) -> Workload:
    return workload_of(schema, specs or default_specs(schema))


def _check_output(path: Path, force: bool) -> None:
    if path.suffix not in (".csv", ".parquet"):
        raise GsdError(f"{path}: the output must end in .csv or .parquet")
    if path.is_dir():
        raise GsdError(f"{path}: is a folder")
    if path.exists() and not force:
        raise GsdError(f"{path}: exists already; choose another name, or add --force to replace it")
    if not path.parent.is_dir():
        raise GsdError(f"{path}: there is no folder {path.parent}")
    # A folder that cannot be written to is found out now, and not when all is spent.
    probe = path.with_name(f".{path.name}.probe")
    probe.touch()
    probe.unlink()


def _write(table: pa.Table, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.part")
    try:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _told(quiet: bool) -> Iterator[Tell]:
    """Progress, notes instead of warnings, and a word on Ctrl-C and on how to go on."""
    try:
        with output.notes_for_warnings(), output.run_progress("Working", quiet=quiet) as tell:
            yield tell
    except BaseException as error:
        for note in getattr(error, "__notes__", []):
            output.note(note)
        if isinstance(error, KeyboardInterrupt):
            output.err.print("[bold red]error:[/] interrupted")
            raise typer.Exit(130) from None
        raise


def _hand_over(
    release: Release, folder: Path | None, result: Path | None, quiet: bool, as_json: bool
) -> None:
    """Write the table where it was asked for, and say what was spent."""
    table = release.synthetic
    if result is not None:
        try:
            _write(table, result)
        except OSError as error:
            raise ReleaseError(
                f"{result}: cannot be written: {error.strerror}; the synthetic table is kept in "
                f"{release.folder}"
            ) from None
    record = release.privacy
    spent = record["spent"]
    if as_json:
        document = {
            "rows": table.num_rows,
            "output": None if result is None else str(result),
            "release": None if folder is None else str(release.folder),
            "privacy": record,
        }
        typer.echo(json.dumps(document, indent=2))
    elif not quiet:
        output.out.print(
            f"{table.num_rows:,} synthetic rows: {escape(str(result or release.folder))}",
            soft_wrap=True,
        )
        words = "private" if record["private"] else "NOT PRIVATE"
        output.out.print(
            f"{words}: epsilon = {spent['epsilon']:.4g} at delta = {record['delta']:.3g} "
            f"(rho = {spent['rho']:.4g}) was spent on dataset "
            f"{escape(repr(record['dataset']))} so far, {record['neighbours']} neighbours",
            soft_wrap=True,
        )
