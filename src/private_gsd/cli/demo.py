"""``private-gsd demo``: everything the package can do so far, on a simulated census."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow.parquet
import typer
from rich.markup import escape
from rich.table import Table

from private_gsd import datasets
from private_gsd.cli import output
from private_gsd.errors import GsdError
from private_gsd.schema import Discrete, Integer, Numeric, Schema
from private_gsd.sources import open_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.schema import Column

MARK = ".private-gsd-demo"
BLOCKS = " ▁▂▃▄▅▆▇█"
BINS = 12
DOMAIN_WIDTH = 25  # the table then fits a terminal of 80


def demo(
    rows: Annotated[int, typer.Option(min=1, help="How many people to simulate.")] = 100_000,
    folder: Annotated[
        Path, typer.Option("--output", "-o", help="Where to leave the files.")
    ] = Path("demo"),
) -> None:
    """Show what private-gsd does, on a simulated census (no real person is in it)."""
    names = ("census.parquet", "drafted.toml", "schema.toml")
    data, drafted, public = (folder / name for name in names)
    _own(folder, names)
    say = output.out.print

    schema = datasets.census_schema()
    say(f"[bold]1. A sensitive table.[/] {rows:,} simulated people in {escape(str(data))}")
    with pyarrow.parquet.ParquetWriter(data, schema.arrow_schema) as writer:
        for batch in output.with_progress(datasets.census_batches(rows), "Simulating", rows):
            writer.write_batch(batch)

    say(f"[bold]2. A schema drafted from it[/], to start from: {escape(str(drafted))}")
    source = open_source(data)
    batches = output.with_progress(source.batches(), "Drafting", source.rows)
    Schema.draft_batches(batches).write(drafted)
    say("   Learned from the data, so not public knowledge: its file says so.")

    say(f"[bold]3. The public schema[/], as the data holder would write it: {escape(str(public))}")
    schema.write(public)

    say("[bold]4. The table as a stream of numbers[/], checked against the public schema")
    start = time.perf_counter()
    source = open_source(data, schema)
    summary = Summary(schema)
    for matrix in output.with_progress(source.encoded(), "Encoding", source.rows):
        summary.add(matrix)
    seconds = time.perf_counter() - start
    say(summary.table())
    say(
        f"{summary.rows:,} rows x {len(schema)} columns read, checked and encoded in "
        f"{seconds:.2f} s ({1e6 * seconds / summary.rows:.2f} µs a row)."
    )
    say("These figures are exact, which only a simulated table allows.")
    say(
        "\n[bold]Your own table:[/]\n"
        "  private-gsd schema draft YOUR.csv -o schema.toml   (then edit it: public facts only)\n"
        "  private-gsd schema check schema.toml YOUR.csv",
        soft_wrap=True,
    )


def _own(folder: Path, names: tuple[str, ...]) -> None:
    """Take a folder for the demo; files there that no demo left are not touched."""
    mark = folder / MARK
    for name in names:
        if (folder / name).exists() and not mark.exists():
            raise GsdError(f"{folder / name}: exists already; choose another folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()


class Summary:
    """How each column is distributed, in one pass."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rows = 0
        self._nulls = np.zeros(len(schema))
        self._counts = [np.zeros(_bins(column)) for column in schema]

    def add(self, matrix: NDArray[np.float64]) -> None:
        """Take in some rows."""
        self.rows += len(matrix)
        self._nulls += np.isnan(matrix).sum(axis=0)
        for position, column in enumerate(self.schema):
            values = matrix[:, position]
            counts = self._counts[position]
            counts += np.histogram(
                values[~np.isnan(values)], bins=len(counts), range=_ends(column)
            )[0]

    def table(self) -> Table:
        """The summary, to look at."""
        table = Table(header_style="bold", box=None, pad_edge=False)
        for header in ("column", "kind", "domain", "null", "spread"):
            table.add_column(header, no_wrap=True, justify="right" if header == "null" else "left")
        for column, nulls, counts in zip(self.schema, self._nulls, self._counts, strict=True):
            domain = column.domain
            if len(domain) > DOMAIN_WIDTH:
                domain = domain[: DOMAIN_WIDTH - 1] + "…"
            share = f"{nulls / self.rows:.0%}" if nulls else ""
            table.add_row(column.name, column.kind, domain, share, _bars(counts))
        return table


def _bins(column: Column) -> int:
    """How many bars to draw: one for each value, while they are few."""
    if isinstance(column, Discrete):
        return min(len(column.values), BINS)
    low, high = _ends(column)
    return min(round(high - low), BINS) if isinstance(column, Integer) else BINS


def _ends(column: Column) -> tuple[float, float]:
    """Where the bars begin and end; whole numbers stand in the middle of their bars."""
    if isinstance(column, Discrete):
        return -0.5, len(column.values) - 0.5
    assert isinstance(column, Numeric)
    low, high = column.bounds
    return (low - 0.5, high + 0.5) if isinstance(column, Integer) else (low, high)


def _bars(counts: NDArray[np.float64]) -> str:
    scaled = np.ceil(counts / max(counts.max(), 1) * (len(BLOCKS) - 1)).astype(int)
    return "".join(BLOCKS[height] for height in scaled)
