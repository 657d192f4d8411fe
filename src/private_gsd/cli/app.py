"""The commands, and what happens when something goes wrong."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer
from rich.markup import escape

import private_gsd
from private_gsd.cli import console, demo, evaluate, ledger, plan, schema, synthesize
from private_gsd.errors import GsdError

app = typer.Typer(
    name="private-gsd",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Differentially private synthetic tables, made by a genetic algorithm.",
)
app.add_typer(schema.app, name="schema")
app.add_typer(ledger.app, name="ledger")
app.command()(demo.demo)
for command in (plan.plan, synthesize.synthesize, synthesize.resume, synthesize.sample):
    app.command()(command)
app.command()(evaluate.evaluate)
app.command()(evaluate.report)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"private-gsd {private_gsd.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; a user's mistake gives a message and an exit code, no traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our characters
    try:
        app()
    except GsdError as error:
        _fail(str(error), error.exit_code)
    except BrokenPipeError:
        console.silence_stdout()
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _fail(message: str, code: int) -> None:
    console.err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    sys.exit(code)
