"""``private-gsd plan``: the measurements of a release, their noise, and the time it takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from private_gsd.cli import console, options
from private_gsd.cli.panels import DATA, OUTPUT, PRIVACY
from private_gsd.cli.synthesizer_options import SynthesizerOptions, with_synthesizer_options
from private_gsd.mechanisms.forecast import HEADERS, SHOWN

if TYPE_CHECKING:
    from private_gsd.mechanisms.forecast import Forecast


@with_synthesizer_options
def plan(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="The sensitive table, of which only the number of records is read; not needed "
            "with --expected-records.",
        ),
    ] = None,
    *,
    stated: SynthesizerOptions,
    query: options.Query = None,
    expected_records: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=DATA,
            help="The approximate number of records of the table, from public knowledge. Needed "
            "under add-remove, where the number is private.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=PRIVACY,
            help="The ledger whose δ and conversion the release would have.",
        ),
    ] = None,
    dataset: options.Dataset = None,
    every: Annotated[
        bool, typer.Option("--all", rich_help_panel=OUTPUT, help="Show every query group.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Show what would be measured, and with how much noise. Nothing is spent.

    Only the number of records of the table is read; with --expected-records, not even that.
    """
    synth = stated.synthesizer()
    with console.notes_for_warnings():
        table = None if data is None else options.table_of(data, query)
        forecast = synth.plan(
            table,
            expected_records=expected_records,
            ledger=ledger,
            dataset=options.dataset_of(table) if dataset is None else dataset,
        )
    if as_json:
        typer.echo(json.dumps(forecast.document(), indent=2))
    else:
        show(forecast, every)


def show(forecast: Forecast, every: bool) -> None:
    """Print the forecast."""
    workload, budget = forecast.workload, forecast.budget

    def say(words: str) -> None:
        console.out.print(words, soft_wrap=True)

    about = "about " if forecast.guessed else ""
    say(
        f"{about}{forecast.n_records:,} {forecast.records}, {workload.size:,} queries in "
        f"{workload.num_groups:,} groups, {forecast.mechanism.name}"
    )
    say(
        f"rho = {budget.rho:.4g} (epsilon = {budget.epsilon:.4g} at delta = {budget.delta:.4g}), "
        f"{forecast.neighbours} neighbours"
    )
    if workload.schema.unit is not None:
        say(f"the unit of protection is {escape(workload.schema.unit.in_words)}")
    if forecast.counting:
        say(
            f"the number of {forecast.records} gets noise of {forecast.counting:,.3g} "
            f"{forecast.records}"
        )
    if forecast.mechanism.emphasis:
        say(forecast.mechanism.emphasis)
    if forecast.selection_summary:
        selected = forecast.plan.pairs is None
        what = "Each group, if it is selected" if selected else "What is measured in any case"
        say(f"{forecast.selection_summary}. {what}:")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for header in HEADERS:
        side: Literal["left", "right"] = "left" if header == HEADERS[0] else "right"
        table.add_column(header, justify=side, overflow="fold")
    ordered = forecast.noisiest
    for group in ordered if every else ordered[:SHOWN]:
        table.add_row(*map(escape, group.texts()))
    console.out.print(table)
    if len(ordered) > SHOWN and not every:
        say(f"... and {len(ordered) - SHOWN:,} more (--all shows them)")
    if forecast.joint_summary:
        say(f"{forecast.joint_summary}.")
    say(
        "The errors are those of a measured share. The projection, which makes one table from all "
        "measurements, then removes much of the noise."
    )
    say(
        f"Noise and a projection to {forecast.rows:,} rows take about {forecast.seconds:,.1f} s on "
        f"one core and {forecast.bytes / 1e6:,.0f} MB."
    )
    say("Nothing was spent. 'private-gsd synthesize' makes the release.")
