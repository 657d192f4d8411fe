"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from private_gsd.data.sources import PostgresQuery
from private_gsd.data.sources.postgres import is_address, refuse_addresses
from private_gsd.projection import NAMES
from private_gsd.schema import Schema
from private_gsd.workloads import Workload, read_predicates
from private_gsd.workloads.specs import listed_specs, workload_of

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="CSV or Parquet, or a glob; or postgresql://…, with --query."
    ),
]
Query = Annotated[
    str | None, typer.Option(help="Of a PostgreSQL server: the SELECT whose rows are the table.")
]
SchemaFile = Annotated[Path, typer.Option("--schema", help="The public schema.")]
Epsilon = Annotated[float, typer.Option(help="The budget of this release.")]
Delta = Annotated[float | None, typer.Option(help="By default 1 / rows².")]
WorkloadNames = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        help="Repeatable; by default single columns, pairs or triples, as the budget allows. "
        + listed_specs(),
    ),
]
QueriesFile = Annotated[
    Path | None,
    typer.Option("--queries", help="Also ask the conditions in this file: SQL, one a line."),
]
MechanismName = Annotated[
    Literal["auto", "one-shot", "layered", "adaptive", "mst", "aim"],
    typer.Option(help="How to spend it."),
]
Epochs = Annotated[int, typer.Option(help="Of the adaptive mechanism.")]
Groups = Annotated[int, typer.Option(help="Of the adaptive mechanism, an epoch.")]
NeighboursName = Annotated[
    Literal["replace-one", "add-remove"],
    typer.Option(help="Whether the number of rows is public, or measured too."),
]
Totals = Annotated[
    Path | None,
    typer.Option(help="Public totals to match: CSV with the columns condition (SQL) and count."),
]
Derived = Annotated[
    list[str] | None,
    typer.Option(
        help="Repeatable: a statistic to match as measured, such as 'median(age)' or "
        "'mean(income) WHERE age < 30'."
    ),
]
Evidence = Annotated[
    list[Path] | None,
    typer.Option(help="Repeatable: a folder of measurements made elsewhere, to use beside ours."),
]
Rows = Annotated[
    int | None,
    typer.Option(help="How many synthetic rows; by default 5000, and up to 20000 by the noise."),
]
ProjectorName = Annotated[
    str,
    typer.Option(
        help=f"What makes the table: {', '.join(NAMES)}; settings follow a colon, as in "
        "rap:iterations=200."
    ),
]
Every = Annotated[bool, typer.Option("--all", help="Show every group.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where to write it: .csv or .parquet.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]


def workload_asked(
    schema: Schema, names: list[str] | None, queries: Path | None
) -> Workload | list[str] | None:
    """What the words on the command line ask: names, a file of conditions, or both."""
    if queries is None:
        return names or None
    asked = read_predicates(schema, queries)
    return asked if not names else workload_of(schema, names) + asked


def table_of(data: str, query: str | None) -> str | PostgresQuery:
    """What the words on the command line stand for."""
    if is_address(data):
        return PostgresQuery(data, query or "")
    refuse_addresses(data)
    if query is not None:
        raise typer.BadParameter("--query goes with the address of a server, postgresql://…")
    return data


ReleaseFolder = Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")]
