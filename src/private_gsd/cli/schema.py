"""``private-gsd schema``: draft, check and convert schema files."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape

from private_gsd.cli import console, options, panels
from private_gsd.cli.panels import DATA
from private_gsd.data.encoding import Encoder, Problems
from private_gsd.errors import SchemaError
from private_gsd.schema import Schema, toml
from private_gsd.schema.schema import read_foreign
from private_gsd.sql.rules import check_rules

app = typer.Typer(no_args_is_help=True, help="Draft, check and convert schema files.")

SchemaArgument = Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema file.")]
OutputOption = Annotated[
    Path | None,
    panels.output_option(
        "The file that the schema is written to. By default the schema is printed."
    ),
]


@app.command()
def draft(
    data: options.Data,
    output_file: OutputOption = None,
    query: options.Query = None,
    force: options.Force = False,
) -> None:
    """Draft a schema from the data. Replace its contents by public knowledge before you use it."""
    from private_gsd.data.sources import open_source

    source = open_source(options.table_of(data, query))
    batches = console.with_progress(source.batches(), "drafting", source.rows)
    schema = Schema.draft_batches(batches)
    _deliver(schema.to_toml(), output_file, force)
    for remark in schema.notes:
        console.note(remark)
    console.err.print(f"[bold red]DRAFT.[/] {toml.DRAFT_WARNING}")


@app.command()
def check(
    schema_file: SchemaArgument,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help=f"The sensitive table to check. {options.TABLE}"),
    ] = None,
    query: options.Query = None,
    on_invalid: options.WhenInvalid = "error",
) -> None:
    """Check a schema file, and a table against it. Only errors in the table are shown."""
    schema = Schema.read(schema_file)
    check_rules(schema)
    encoder = Encoder(schema, on_invalid=on_invalid)
    if schema.drafted:
        console.err.print(f"[bold red]DRAFT.[/] {toml.DRAFT_WARNING}")
    if data is None:
        console.out.print(console.schema_table(schema, f"{schema_file}: {len(schema)} columns"))
        return
    # What only a table needs: DuckDB, and Numba where there are rules.
    from private_gsd.data.sources import open_source

    with console.notes_for_warnings():
        source = open_source(options.table_of(data, query), schema)
    start = time.perf_counter()
    problems, rows = Problems(), 0
    broken: Counter[str] = Counter()
    for batch in console.with_progress(source.batches(), "checking", source.rows):
        matrix = source.encode(batch, encoder, problems)
        rows += batch.num_rows
        if schema.constraints and not problems:
            from private_gsd.projection.constraints import broken_rules

            broken.update(broken_rules(schema, matrix))
    if problems:
        raise problems.error(source.name)
    units = ""
    if schema.unit is not None:
        from private_gsd.counting.of_units import read_ids

        found = read_ids(source)
        units = f", {found.units:,} units, of whose rows {found.rows:,} are taken"
    seconds = time.perf_counter() - start
    for name, number in problems.coerced.items():
        console.note(f"column {name!r}: {number:,} values were moved into the domain")
    for rule, number in broken.items():
        console.note(f"{number:,} rows break the rule {rule!r}; no synthetic row will")
    console.out.print(
        f"{escape(source.name)}: all {rows:,} rows {_fit(problems)}{units} ({seconds:.1f} s)"
    )


def _fit(problems: Problems) -> str:
    return "fit the schema, once coerced" if problems.coerced else "fit the schema"


@app.command()
def convert(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="SDV metadata, an mbi domain or a dpsynth domain."),
    ],
    output_file: OutputOption = None,
    style: Annotated[
        Literal["sdv", "mbi", "dpsynth"] | None,
        typer.Option(
            "--from", rich_help_panel=DATA, help="The format of the file. By default it is guessed."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=DATA,
            help="The table, if SDV metadata describes several tables.",
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Convert another tool's schema. Missing facts are marked, and must be added by hand."""
    settings = {} if table is None else {"table": table}
    if table is not None:
        style = "sdv"
    keys, remarks = read_foreign(file, style, **settings)
    _deliver(toml.dumps(keys, notes=remarks), output_file, force)
    for remark in remarks:
        console.note(remark)
    try:
        Schema.from_dict({"columns": keys})
    except SchemaError as error:
        console.note(f"the schema is not complete yet:\n  {error}")


def _deliver(text: str, output_file: Path | None, force: bool) -> None:
    if output_file is None:
        typer.echo(text, nl=False)
    else:
        console.write_text(output_file, text, force=force)
        console.note(f"wrote {output_file}")
