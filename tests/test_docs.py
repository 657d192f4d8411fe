"""Every example in the README and the docs runs and gives what it shows."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import Schema, datasets
from tests.cli.running import run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that examples speak of."""
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(datasets.census(5000), tmp_path / "census.csv")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=page.name, marks=pytest.mark.slow if page.parent.name == "docs" else ()
        )
        for page in PAGES
    ],
)
def test_examples(page: Path, folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for language, title, body in BLOCK.findall(page.read_text()):
        if title:
            (folder / title).write_text(body)
        if language == "toml":
            Schema.read(folder / title)
        elif language == "pycon":
            check_session(page.name, body, names)
        elif language == "console":
            for line in body.splitlines():
                run_command(line.removeprefix("$ "), folder)
        else:
            assert title or language == "sh", f"{page.name}: nothing runs a {language} block"


def check_session(name: str, body: str, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(body, names, name, name, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=output.append, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, "".join(output)


def run_command(line: str, folder: Path) -> None:
    """Here if it is a command of ours and no more, which saves starting a process."""
    words = shlex.split(line)
    if words[0] == "private-gsd" and not {"&&", "||"} & set(words):
        end = words.index(">") if ">" in words else len(words)
        told, _ = run(*words[1:end], cwd=folder)
        for target in words[end + 1 :]:
            (folder / target).write_text(told)
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {line}\n{done.stderr}"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
