"""``private-gsd plan``: what would be measured, how well, and how long it would take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from private_gsd.cli import console, options
from private_gsd.schema import Schema
from private_gsd.synthesis.synthesizer import Synthesizer

if TYPE_CHECKING:
    from private_gsd.mechanisms.forecast import Forecast

SHOWN = 12
WORDS = {
    "mst": "all columns are measured, and a tree of pairs that is selected by their distance from "
    "independent columns",
    "aim": "all columns are measured, and in rounds what is farthest from the table so far, beyond "
    "the noise of the first round",
}


def plan(
    data: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="The table; not looked at with --expected-rows."),
    ] = None,
    *,
    schema: options.SchemaFile,
    epsilon: options.Epsilon,
    query: options.Query = None,
    delta: options.Delta = None,
    workload: options.WorkloadNames = None,
    queries: options.QueriesFile = None,
    mechanism: options.MechanismName = "auto",
    epochs: options.Epochs = 25,
    groups: options.Groups = 1,
    neighbours: options.NeighboursName = "replace-one",
    rows: options.Rows = None,
    expected_rows: Annotated[
        int | None,
        typer.Option(
            help="About how many rows the table has, from public knowledge; needed under "
            "add-remove, where the number is private."
        ),
    ] = None,
    projector: options.ProjectorName = "gsd",
    every: options.Every = False,
    as_json: options.Json = False,
) -> None:
    """Show what would be measured, with how much noise, before anything is spent.

    Of the table only the number of rows is looked at, and nothing at all with --expected-rows.
    """
    public = Schema.read(schema)
    synth = Synthesizer(
        public,
        epsilon,
        delta=delta,
        workload=options.workload_asked(public, workload, queries),
        mechanism=mechanism,
        epochs=epochs,
        groups=groups,
        neighbours=neighbours,
        rows=rows,
        projector=projector,
    )
    with console.notes_for_warnings(), console.run_progress("Counting rows"):
        table = None if data is None else options.table_of(data, query)
        forecast = synth.plan(table, expected_rows=expected_rows)
    if as_json:
        typer.echo(json.dumps(forecast.document(), indent=2))
    else:
        show(forecast, every)


def show(forecast: Forecast, every: bool) -> None:
    """The forecast, to look at."""
    asked, budget = forecast.workload, forecast.budget

    def say(words: str) -> None:
        console.out.print(words, soft_wrap=True)

    about = "about " if forecast.guessed else ""
    say(
        f"{about}{forecast.people:,} rows, {asked.size:,} queries in {asked.num_groups:,} groups, "
        f"{forecast.mechanism.name}"
    )
    say(
        f"rho = {budget.rho:.4g} (epsilon = {budget.epsilon:.4g} at delta = {budget.delta:.4g}), "
        f"{forecast.neighbours} neighbours"
    )
    if forecast.counting:
        say(f"the number of rows gets noise of {forecast.counting:,.3g} rows")
    if forecast.mechanism.name == "adaptive":
        say(
            f"{forecast.epochs} epochs of {forecast.mechanism.groups} "
            f"{'group' if forecast.mechanism.groups == 1 else 'groups'}, selected by their error "
            f"with noise of {forecast.selecting:,.3g} rows. Each group, if it is selected:"
        )
    if forecast.mechanism.name in WORDS:
        say(
            f"{WORDS[forecast.mechanism.name]}, with noise of {forecast.selecting:,.3g} rows on "
            "their distance. Each group, if it is selected:"
        )
    table = Table(box=None, header_style="bold", pad_edge=False)
    for header, side in (
        *(("group", "left"), ("queries", "right"), ("rho", "right"), ("noise, rows", "right")),
        *(("mean error", "right"), ("largest", "right")),
    ):
        table.add_column(header, justify=side, overflow="fold")  # type: ignore[arg-type]
    # Of groups with the same noise, those with the most queries first.
    ordered = sorted(forecast.groups, key=lambda group: (-group.noise, -group.queries))
    for group in ordered if every else ordered[:SHOWN]:
        table.add_row(
            escape(group.name),
            f"{group.queries:,}",
            f"{group.rho:.3g}",
            f"{group.noise:,.4g}",
            f"{group.error:.3%}",
            f"{group.largest:.2%}",
        )
    console.out.print(table)
    if len(ordered) > SHOWN and not every:
        say(f"... and {len(ordered) - SHOWN:,} more (--all shows them)")
    say(
        "Errors are those of a measured share, before the search, which makes one table of all of "
        "them and so takes much of the noise out."
    )
    say(
        f"The search for {forecast.rows:,} rows takes about {forecast.seconds:,.1f} s on one core "
        f"and {forecast.bytes / 1e6:,.0f} MB."
    )
    say("Nothing was spent. Go on with 'private-gsd synthesize'.")
