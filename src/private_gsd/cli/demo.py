"""``private-gsd demo``: the whole way from a simulated census to a release."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import duckdb
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import typer
from rich.markup import escape
from rich.table import Table

from private_gsd import datasets
from private_gsd.cli import console
from private_gsd.cli.panels import DATA, OUTPUT
from private_gsd.cli.picture import comparison
from private_gsd.counting.comparison import query_errors
from private_gsd.data.sources import open_source
from private_gsd.errors import GsdError, expect_type
from private_gsd.evaluation import write_report
from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.budget import RhoBudget, default_delta
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.schema import Discrete, Integer, Schema
from private_gsd.synthesis.synthesizer import Synthesizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Column

SHOWN = (
    "sex = 'female' AND employment = 'employed'",
    "education = 'master' AND occupation = 'teacher'",
    "region = '01' AND sex = 'male' AND industry = 10",
    "mobility_difficulty = TRUE AND age >= 75",
)
SYNTHETIC_ROWS = 5000
TOTAL = 2.0
MARK = ".private-gsd-demo"
BLOCKS = " ▁▂▃▄▅▆▇█"
BINS = 12
DOMAIN_WIDTH = 25  # the table then fits a terminal of 80 columns


def demo(
    records: Annotated[
        int,
        typer.Option(rich_help_panel=DATA, min=2, help="The number of records of the census."),
    ] = 100_000,
    folder: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
            help="The folder that the files are written to.",
        ),
    ] = Path("demo"),
) -> None:
    """Show what private-gsd does, on a simulated census.

    No real person is in the census.
    """
    names = (
        *("census.parquet", "drafted.toml", "schema.toml"),
        *("ledger.db", "release", "synthetic.csv", "comparison.svg", "release.html"),
    )
    data, drafted, public, ledger, release, synthetic, picture, page = (
        folder / name for name in names
    )
    _own(folder, names)
    say = console.out.print

    schema = datasets.census_schema()
    say(f"[bold]1. A sensitive table.[/] {records:,} simulated records in {escape(str(data))}")
    with pyarrow.parquet.ParquetWriter(data, schema.arrow_schema) as writer:
        for batch in console.with_progress(datasets.census_batches(records), "simulating", records):
            writer.write_batch(batch)

    say(f"[bold]2. A schema drafted from it[/], to start from: {escape(str(drafted))}")
    source = open_source(data)
    batches = console.with_progress(source.batches(), "drafting", source.rows)
    Schema.draft_batches(batches).write(drafted)
    say("   It is learned from the data, so it is not public knowledge; the file says so.")

    say(f"[bold]3. The public schema[/], as the data holder would write it: {escape(str(public))}")
    schema.write(public)

    say("[bold]4. The table as a stream of numbers[/], checked against the public schema")
    start = time.perf_counter()
    source = open_source(data, schema)
    summary = Summary(schema)
    for matrix in console.with_progress(source.encoded(), "encoding", source.rows):
        summary.add(matrix)
    seconds = time.perf_counter() - start
    say(summary.table())
    say(
        f"{summary.rows:,} rows x {len(schema)} columns read, checked and encoded in "
        f"{seconds:.2f} s ({1e6 * seconds / summary.rows:.2f} µs a row)."
    )
    say("These figures are exact, which only a simulated table allows.\n")

    total = RhoBudget.from_epsilon(TOTAL, default_delta(records), "gdp")
    with Ledger(ledger, create=True) as opened:
        opened.add_dataset("census", total)
    synth = Synthesizer(schema, epsilon=1.0, rows=SYNTHETIC_ROWS)
    forecast = synth.plan(data, ledger=ledger, dataset="census")
    workload, group = forecast.workload, forecast.groups[0]
    share = forecast.budget.rho / total.rho
    say(
        f"[bold]5. A ledger[/] with all that may ever be spent on the census, epsilon = {TOTAL:g}: "
        f"{escape(str(ledger))}. [bold]A plan[/] of one release, with epsilon = 1, which is "
        f"{share:.0%} of that in rho: it pays for {workload.size:,} queries in "
        f"{workload.num_groups:,} groups, such as {escape(repr(group.name))}. Each count gets "
        f"noise of {group.noise:,.0f} rows, which is a mean error of {group.error:.2%} of the "
        "records. The projection then removes much of this error. Nothing is spent yet.",
        soft_wrap=True,
    )

    say("[bold]6. A release[/]: counted in one pass, paid for, measured with noise, projected")
    start = time.perf_counter()
    synth.fit(data, ledger=ledger, dataset="census", release=release, progress=True)
    made = synth.release_
    table = made.synthetic
    pyarrow.csv.write_csv(table, synthetic)
    say(
        f"   {table.num_rows:,} synthetic rows in {time.perf_counter() - start:.1f} s: "
        f"{escape(str(synthetic))}; all that may be published: {escape(str(release))}",
        soft_wrap=True,
    )
    say(f"   {escape(made.privacy['guarantee'])}", soft_wrap=True)

    say("[bold]7. How good it is[/], which is public only because the census is simulated:")
    measured = expect_type(Measurements, made.measurements())
    say(_beside(data, synthetic, measured))
    errors = query_errors(workload, data, table)
    say(
        f"   Over all {workload.size:,} queries the synthetic table is off by "
        f"{errors.mean:.2%} of the records on average, and by {errors.max:.1%} at most.",
        soft_wrap=True,
    )
    copied = Summary(schema)
    copied.add(made.matrix)
    picture.write_text(
        comparison(schema, summary.counts, copied.counts), encoding="utf-8", newline="\n"
    )
    say(f"   A picture of both tables, column by column: {escape(str(picture))}", soft_wrap=True)
    say(
        "\n[bold]Your own table:[/]\n"
        "  private-gsd schema draft YOUR.csv -o schema.toml   (then edit it: public facts only)\n"
        "  private-gsd ledger create ledger.db --dataset YOUR --epsilon 2 --delta 1e-9   (the "
        "total, for all releases)\n"
        "  private-gsd plan YOUR.csv --schema schema.toml --epsilon 1 --delta 1e-9\n"
        "  private-gsd synthesize YOUR.csv --schema schema.toml --epsilon 1 -o synthetic.csv "
        "--release release --ledger ledger.db\n",
        soft_wrap=True,
    )
    write_report(made, page)
    say(f"[bold]Look at it:[/] the release report, {escape(str(page))}.", soft_wrap=True)
    if console.show_page(page):  # it waits for the browser, which may take seconds
        say("A browser was asked to open it.")


def _beside(data: Path, synthetic: Path, measured: Measurements) -> Table:
    """Some counts: true, measured, and in the synthetic table scaled to the same size.

    True counts may be shown because the census is simulated.
    """
    workload = measured.workload
    places = {workload.query(index): index for index in range(workload.size)}
    table = Table(header_style="bold", box=None, pad_edge=False)
    for header in ("   query", "true", "measured", "synthetic"):
        table.add_column(header, no_wrap=True, justify="left" if "q" in header else "right")
    with duckdb.connect() as connection:
        connection.register("census", pyarrow.parquet.read_table(data))
        connection.execute("CREATE TABLE synthetic AS FROM read_csv(?)", [str(synthetic)])
        for condition in SHOWN:
            counts = []
            for name in ("census", "synthetic"):
                sql = f"SELECT count(*) FILTER (WHERE {condition}) / count(*) FROM {name}"
                [(share,)] = connection.sql(sql).fetchall()
                counts.append(f"{share * measured.n_records:,.0f}")
            place = places.get(condition)
            noisy = "–" if place is None else f"{measured.counts[place]:,.0f}"
            table.add_row(f"   {condition}", counts[0], noisy, counts[1])
    return table


def _own(folder: Path, names: tuple[str, ...]) -> None:
    """Prepare the folder of the demo; files that are not from an earlier demo are not replaced."""
    mark = folder / MARK
    for name in names:
        if (folder / name).exists() and not mark.exists():
            raise GsdError(f"{folder / name}: exists already; choose another folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    for old in folder.glob("ledger.db*"):
        old.unlink()
    shutil.rmtree(folder / "release", ignore_errors=True)


class Summary:
    """The distribution of each column, computed in one pass."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rows = 0
        self._nulls = np.zeros(len(schema))
        self.counts = [np.zeros(_bins(column)) for column in schema]

    def add(self, matrix: NDArray[np.float64]) -> None:
        """Add some rows."""
        self.rows += len(matrix)
        self._nulls += np.isnan(matrix).sum(axis=0)
        for position, column in enumerate(self.schema):
            values = matrix[:, position]
            counts = self.counts[position]
            counts += np.histogram(
                values[~np.isnan(values)], bins=len(counts), range=_ends(column)
            )[0]

    def table(self) -> Table:
        """The summary, as a table for the terminal."""
        table = Table(header_style="bold", box=None, pad_edge=False)
        for header in ("column", "kind", "domain", "null", "spread"):
            table.add_column(header, no_wrap=True, justify="right" if header == "null" else "left")
        for column, nulls, counts in zip(self.schema, self._nulls, self.counts, strict=True):
            domain = column.domain
            if len(domain) > DOMAIN_WIDTH:
                domain = domain[: DOMAIN_WIDTH - 1] + "…"
            share = f"{nulls / self.rows:.0%}" if nulls else ""
            table.add_row(column.name, column.kind, domain, share, _bars(counts))
        return table


def _bins(column: Column) -> int:
    """The number of bars: one for each value, and at most ``BINS``."""
    if isinstance(column, Discrete):
        return min(len(column.values), BINS)
    low, high = _ends(column)
    return min(round(high - low), BINS) if isinstance(column, Integer) else BINS


def _ends(column: Column) -> tuple[float, float]:
    """The range of the bars; codes and whole numbers are in the middle of their bars."""
    low, high = column.bounds
    return (low - 0.5, high + 0.5) if isinstance(column, Discrete | Integer) else (low, high)


def _bars(counts: NDArray[np.float64]) -> str:
    scaled = np.ceil(counts / max(counts.max(), 1) * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[height] for height in scaled)
