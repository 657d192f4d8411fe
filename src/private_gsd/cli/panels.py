"""The panels of the help texts, and options that are in every command's words."""

from __future__ import annotations

from typing import Any

import typer

# The panels of help texts, by topic.
DATA, PRIVACY, QUERIES = "Data", "Privacy", "Queries"
SYNTHESIS, OUTPUT = "Synthesis", "Output"


def output_option(text: str) -> Any:
    """The option -o FILE, with its help text."""
    return typer.Option("--output", "-o", metavar="FILE", rich_help_panel=OUTPUT, help=text)


def json_option(text: str) -> Any:
    """The flag --json, with its help text."""
    return typer.Option("--json", rich_help_panel=OUTPUT, help=text)
