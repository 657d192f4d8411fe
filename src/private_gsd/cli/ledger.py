"""``private-gsd ledger``: give a dataset its budget, and show what was spent of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from private_gsd.cli import console, panels
from private_gsd.cli.panels import PRIVACY
from private_gsd.privacy.budget import Conversion, RhoBudget, units_to_rho
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation, open_reservations
from private_gsd.privacy.record import at_most
from private_gsd.schema.neighbours import Neighbours

if TYPE_CHECKING:
    from private_gsd.privacy.accounts import Account, Charge

app = typer.Typer(
    no_args_is_help=True,
    help="Create the budgets of datasets; show what was spent.",
)

BAR_WIDTH = 10
GROUPS_SHOWN = 3

LedgerArgument = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]
DatasetOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", rich_help_panel=PRIVACY, help="The name of the dataset in the ledger."
    ),
]


@app.command()
def create(
    ledger_file: LedgerArgument,
    dataset: DatasetOption,
    epsilon: Annotated[
        float,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The ε of the total budget: all that may ever be spent on the dataset.",
        ),
    ],
    delta: Annotated[
        float,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The δ of the total budget; well below 1 / (number of records).",
        ),
    ],
    conversion: Annotated[
        Conversion | None,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The conversion from (ε, δ) to ρ. 'gdp', the default, needs the least noise, and "
            "serves the mechanisms one-shot and layered; 'zcdp' serves all mechanisms.",
        ),
    ] = None,
    neighbours: Annotated[
        Neighbours,
        typer.Option(
            rich_help_panel=PRIVACY,
            help="The neighbouring relation: neighbouring datasets differ in one record that is "
            "replaced, or in one that is added or removed.",
        ),
    ] = "replace-one",
    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=PRIVACY,
            help="The column with the ids of the unit of protection, such as patient_id: all "
            "records with the same id are protected together. By default each record by itself.",
        ),
    ] = None,
) -> None:
    """Give a dataset its budget, in a new or an existing ledger. It cannot be changed later."""
    # An invalid budget is refused before the file is created.
    RhoBudget.from_epsilon(epsilon, delta, conversion or "gdp")
    with Ledger(ledger_file, create=True) as ledger:
        usual = conversion or ledger.default_conversion(dataset)
        budget = RhoBudget.from_epsilon(epsilon, delta, usual)
        account = ledger.add_dataset(dataset, budget, neighbours, unit)
    console.out.print(
        f"{escape(str(ledger_file))}: dataset {escape(repr(dataset))} may spend epsilon "
        f"{epsilon:g} at delta {at_most(delta)}, {escape(account.relation)}: rho {budget.rho:.6g}, "
        f"of which {units_to_rho(account.remaining):.6g} remains",
        soft_wrap=True,
    )
    if usual == "gdp" and conversion is None:
        console.note(
            "the conversion is 'gdp', for the mechanisms one-shot and layered (and so auto); "
            "adaptive, mst and aim need a dataset with --conversion zcdp, from the beginning"
        )


@app.command()
def show(
    ledger_file: LedgerArgument,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=PRIVACY, help="The dataset to show. By default all."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        panels.json_option(
            "Print the privacy records, which may be published, as one JSON document."
        ),
    ] = False,
) -> None:
    """Show what was spent, for which measurements, and what remains. Nothing is written."""
    with Ledger(ledger_file, create=False, read_only=True) as ledger:
        accounts = ledger.accounts() if dataset is None else [ledger.account(dataset)]
        names = [account.dataset for account in accounts]
        records = [ledger.privacy_record(name) for name in names]
        if as_json:
            typer.echo(json.dumps(records, indent=2))
            return
        charges = [charge for name in names for charge in ledger.charges(name)]
        reserved = [pair for name in names for pair in open_reservations(ledger, name)]
    console.out.print(accounts_table(accounts))
    if any(record["private"] for record in records):
        but = "" if all(record["private"] for record in records) else " but as said below"
        console.out.print(
            "Guaranteed is the total, for all noisy answers that this ledger pays for, now and "
            f"later{but}. The rest is accounting: its epsilons convert rho, and are no guarantee.",
            soft_wrap=True,
        )
    for record in records:
        for reason in record["not_private_because"]:
            console.out.print(
                f"dataset {escape(repr(record['dataset']))} is NOT PRIVATE: {escape(reason)}",
                soft_wrap=True,
            )
    for run, rho in reserved:
        console.out.print(
            f"rho {rho:.6g} is reserved for run {escape(run)!r}, which is not finished: resume it, "
            "or cancel the reservation with 'private-gsd ledger cancel'",
            soft_wrap=True,
        )
    if charges:
        console.out.print()
        console.out.print(charges_table(charges))
    else:
        console.out.print("no charges yet")


@app.command()
def cancel(
    ledger_file: LedgerArgument,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The name of the run.")],
    dataset: DatasetOption,
) -> None:
    """Cancel the reservation of a run that will not be resumed. What it spent stays spent."""
    with Ledger(ledger_file, create=False) as ledger:
        units = Reservation(ledger, dataset, run, "").cancel()
    console.out.print(
        f"{escape(str(ledger_file))}: rho {units_to_rho(units):.6g} reserved for run "
        f"{escape(repr(run))} is cancelled",
        soft_wrap=True,
    )


def accounts_table(accounts: list[Account]) -> Table:
    """The spent, reserved, remaining and total budget of each dataset."""
    table = _table("dataset", "terms", "", ">rho", ">epsilon", "spent")
    for account in accounts:
        budget = account.budget
        # Integers, rounded down: 100% is shown only when nothing remains.
        filled = account.spent * BAR_WIDTH // budget.units
        percent = account.spent * 100 // budget.units
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        rows: tuple[tuple[str, ...], ...] = (
            (
                escape(account.dataset),
                f"delta {at_most(budget.delta)}",
                "spent",
                f"{bar} {percent}%",
            ),
            ("", escape(account.relation), "remaining", ""),
            ("", f"{budget.conversion} epsilon", "total", ""),
        )
        amounts: tuple[int, ...] = (account.spent, account.remaining, budget.units)
        if account.reserved:
            rows = (rows[0], ("", rows[1][1], "reserved", ""), ("", rows[2][1], "remaining", ""))
            rows += (("", "", "total", ""),)
            amounts = (account.spent, account.reserved, account.remaining, budget.units)
        for (name, term, what, drawn), units in zip(rows, amounts, strict=True):
            rho, epsilon = units_to_rho(units), account.epsilon_of(units)
            # The guaranteed total is rounded up, so that the printed number is guaranteed as well.
            said = [at_most(each) if what == "total" else f"{each:.6g}" for each in (rho, epsilon)]
            table.add_row(name, term, what, *said, drawn)
    return table


def charges_table(charges: list[Charge]) -> Table:
    """All charges, the oldest first."""
    table = _table(">id", "at (UTC)", "dataset", "run", "mechanism", "measured", ">rho")
    for charge in charges:
        measured = ", ".join(charge.groups[:GROUPS_SHOWN])
        if len(charge.groups) > GROUPS_SHOWN:
            measured += f" and {len(charge.groups) - GROUPS_SHOWN:,} more"
        table.add_row(
            str(charge.id),
            charge.at[:19].replace("T", " "),
            escape(charge.dataset),
            escape(charge.run),
            escape(charge.mechanism),
            escape(measured),
            f"{charge.rho:.4g}",
        )
    return table


def _table(*headers: str) -> Table:
    """A table; columns whose header starts with ">" are right-aligned."""
    table = Table(header_style="bold", box=None, pad_edge=False)
    for header in headers:
        side: Literal["left", "right"] = "right" if header.startswith(">") else "left"
        table.add_column(header.removeprefix(">"), justify=side, overflow="fold")
    return table
