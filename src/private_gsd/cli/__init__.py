"""The command line: thin commands over the package."""

from private_gsd.cli.app import main

__all__ = ["main"]
