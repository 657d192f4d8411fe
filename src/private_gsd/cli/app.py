"""The application: its commands, each loaded when it is used, and error messages."""

from __future__ import annotations

import importlib
import io
import sys
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from private_gsd import __version__
from private_gsd.cli import console
from private_gsd.errors import GsdError
from private_gsd.system.operating_system import is_closed_pipe

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each command and its line in the list of commands. The module of the same name holds the command:
# a function of that name, or an ``app`` with subcommands.
COMMANDS = {
    "demo": "Show what private-gsd does, on a simulated census.",
    "schema": "Draft, check and convert schema files.",
    "plan": "Show what would be measured, and with how much noise. Nothing is spent.",
    "synthesize": "Make a private synthetic table from a sensitive table.",
    "resume": "Resume a run that was killed. Nothing is spent twice.",
    "sample": "Draw rows from a release, and as many new ones as you like. Nothing is spent.",
    "report": "Write the release report: a page about a release, which may be published with it.",
    "evaluate": (
        "Compare a synthetic table with the real table. The evaluation report is confidential."
    ),
    "ledger": "Create the budgets of datasets; show what was spent.",
}


class Commands(TyperGroup):
    """A group of commands that loads the module of a command only when the command is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, and the arguments of that command."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else loaded(name), rest


@cache
def loaded(name: str) -> Any:
    """The command with this name, from its module."""
    module = importlib.import_module(f"private_gsd.cli.{name}")
    one = typer.Typer(add_completion=False)
    one.callback()(lambda: None)
    if hasattr(module, "app"):
        one.add_typer(module.app, name=name)
    else:
        one.command(name)(getattr(module, name))
    group: Any = typer.main.get_command(one)
    commands: Mapping[str, Any] = group.commands
    return commands[name]


app = typer.Typer(
    name="private-gsd",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Differentially private synthetic tables, made by a genetic algorithm.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"private-gsd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; users' mistakes give a message and an exit code, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="private_gsd.spell")  # what its encoding lacks
    try:
        app()
    except GsdError as error:
        _fail(str(error), error.exit_code)
    except OSError as error:
        if is_closed_pipe(error):
            console.silence_stdout()
            sys.exit(0)
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _fail(message: str, code: int) -> None:
    console.err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    sys.exit(code)
