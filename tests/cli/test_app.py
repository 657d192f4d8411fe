"""The commands together: their list, their help, and how the program ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import private_gsd
from private_gsd.cli.app import COMMANDS, loaded
from tests.cli.running import COMMAND, run, run_alone

# What takes a second or more to import.
HEAVY = ("numpy", "numba", "duckdb", "pyarrow", "sqlglot", "opendp")
PANELS = {"Data", "Privacy", "Queries", "Synthesis", "Output"}


def commands() -> list[Any]:
    """Every command and every command of a group, whole."""
    found = [loaded(name) for name in COMMANDS]
    groups = [each for each in found if hasattr(each, "commands")]
    return [each for each in found if each not in groups] + [
        each for group in groups for each in group.commands.values()
    ]


def test_version(tmp_path: Path) -> None:
    assert run_alone("--version", cwd=tmp_path)[0] == f"private-gsd {private_gsd.__version__}\n"


def heavy(cwd: Path, *words: str) -> set[str]:
    """What of ``HEAVY`` a command imports; the command must succeed."""
    program = f"""
import sys
from private_gsd.cli import main
sys.argv = ["private-gsd", *{words!r}]
try:
    main()
except SystemExit as end:
    assert not end.code
print("loaded:", *({{name.partition(".")[0] for name in sys.modules}} & {set(HEAVY)!r}))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd)
    first, *found = done.stdout.splitlines()[-1].split()
    assert first == "loaded:"
    return set(found)


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_little_is_imported_before_a_command_is_used(tmp_path: Path, word: str) -> None:
    assert heavy(tmp_path, word) == set()


def test_a_ledger_is_shown_without_numba(tmp_path: Path) -> None:
    total = ("--epsilon", "1", "--delta", "1e-9")
    for words in (("create", "ledger.db", "--dataset", "mine", *total), ("show", "ledger.db")):
        assert heavy(tmp_path, "ledger", *words) <= {"numpy", "pyarrow"}


def test_a_schema_is_checked_without_numba(tmp_path: Path) -> None:
    table = private_gsd.datasets.census(50)
    private_gsd.datasets.census_schema().write(tmp_path / "schema.toml")
    pyarrow.parquet.write_table(table, tmp_path / "census.parquet")
    alone = heavy(tmp_path, "schema", "check", "schema.toml")
    assert alone <= {"numpy", "pyarrow", "sqlglot"}
    assert "numba" not in heavy(tmp_path, "schema", "check", "schema.toml", "census.parquet")


def test_help_lists_the_commands(tmp_path: Path) -> None:
    text, _ = run_alone("--help", cwd=tmp_path)
    for name in COMMANDS:
        assert f" {name} " in text
    # No word of it is lost where lines are broken.
    words = " ".join(text.replace("│", " ").split())
    for line in COMMANDS.values():
        assert line in words


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says(name: str) -> None:
    assert loaded(name).help.splitlines()[0] == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(tmp_path: Path, name: str) -> None:
    text, _ = run(name, "--help", cwd=tmp_path)
    assert f"private-gsd {name}" in text


def test_a_misspelt_command(tmp_path: Path) -> None:
    _, error = run("synthesise", cwd=tmp_path, code=2)
    assert "No such command 'synthesise'. Did you mean 'synthesize'?" in error


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{' '.join(COMMAND)} --help | true",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_options_follow_one_convention() -> None:
    """One option has one name, one meaning and one kind, wherever it is."""
    kinds: dict[str, set[bool]] = {}
    for command in commands():
        named = {option: each for each in command.params for option in each.opts}
        assert named.keys() & {"--output", "-o"} in (set(), {"--output", "-o"}), command.name
        assert not {"--data", "--seed", "--totals", "--evidence", "--groups"} & named.keys()
        for option, each in named.items():
            kinds.setdefault(option, set()).add(bool(getattr(each, "is_flag", False)))
            if option.startswith("--") and option != "--help":
                assert each.rich_help_panel in PANELS, f"{command.name} {option}"
                assert each.help and each.help.endswith("."), f"{command.name} {option}"
    assert kinds["--json"] == {True}
    assert all(len(each) == 1 for each in kinds.values())


def test_data_is_an_argument_and_rows_are_synthetic() -> None:
    for command in commands():
        for each in command.params:
            if each.name == "data":
                assert each.param_type_name == "argument", command.name
            if each.name == "rows":
                assert "synthetic rows" in each.help, command.name
