"""Arguments and options that several commands share."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from private_gsd.cli.panels import DATA, OUTPUT, PRIVACY, SYNTHESIS, json_option, output_option
from private_gsd.data.encoding import OnInvalid

if TYPE_CHECKING:
    from private_gsd.data.sources import PostgresQuery

TABLE = "A CSV or Parquet file, a folder, or a glob; or postgresql://…, with --query."

TABLE_FILE = output_option("The file of the synthetic table: .csv or .parquet.")

Data = Annotated[str, typer.Argument(metavar="DATA", help=f"The sensitive table. {TABLE}")]
ReleaseFolder = Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")]
Query = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=DATA,
        metavar="SELECT",
        help="The SELECT statement whose rows are the table, for a PostgreSQL server.",
    ),
]
SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema", metavar="FILE", rich_help_panel=DATA, help="The public schema: a TOML file."
    ),
]
WhenInvalid = Annotated[
    OnInvalid,
    typer.Option(
        "--on-invalid", rich_help_panel=DATA, help="What to do with values outside the schema."
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel=PRIVACY,
        help="The name of the dataset in the ledger. By default the name of the file.",
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=SYNTHESIS,
        help="The number of synthetic rows. By default from 5000 to 20000, more where there is "
        "less noise.",
    ),
]
RandomState = Annotated[
    int,
    typer.Option(
        rich_help_panel=SYNTHESIS,
        min=0,
        help="The seed of the projection; privacy does not depend on it.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(rich_help_panel=SYNTHESIS, help="The number of threads. By default all cores."),
]
TableFile = Annotated[Path, TABLE_FILE]
OptionalTableFile = Annotated[Path | None, TABLE_FILE]
Force = Annotated[
    bool,
    typer.Option("--force", rich_help_panel=OUTPUT, help="Replace the output if it exists."),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="Print nothing but errors."),
]
Json = Annotated[bool, json_option("Print one JSON document.")]


def table_of(data: str, query: str | None) -> str | PostgresQuery:
    """The source that DATA and --query give."""
    # Commands that read no table start without DuckDB.
    from private_gsd.data.sources import PostgresQuery
    from private_gsd.data.sources.postgres import is_address, refuse_addresses

    if is_address(data):
        return PostgresQuery(data, query or "")
    refuse_addresses(data)
    if query is not None:
        raise typer.BadParameter("--query goes with the address of a server, postgresql://…")
    return data


def dataset_of(table: str | PostgresQuery | None) -> str:
    """The default name of the dataset in the ledger: the name of the file, or "table"."""
    if not isinstance(table, str) or glob.has_magic(table):
        return "table"
    return Path(table).stem.encode("utf-8", "ignore").decode() or "table"
