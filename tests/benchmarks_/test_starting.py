"""The benchmark of starting, on checkouts that only pretend to do something."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from benchmarks.starting import Checkout, Taken, measure, table

# Each program adds its name to a file; an example compiles where nothing is compiled.
MAKEFILE = """
demo:
	mkdir -p .venv/bin src/__pycache__
	cp python private-gsd .venv/bin
	chmod +x .venv/bin/*
	echo demo >> $(LOG)
test:
	echo test >> $(LOG)
"""
COMMAND = """#!/bin/sh
echo $1 >> {log}
echo name > drafted.toml
if [ $1 = synthesize ]; then
    test -e ../src/__pycache__/a.kernel || echo compiles >> {log}
    touch ../src/__pycache__/a.kernel
fi
"""


def pretending(folder: Path, log: Path) -> str:
    folder.mkdir()
    (folder / "Makefile").write_text(f"LOG := {log}\n{MAKEFILE}")
    (folder / "private-gsd").write_text(COMMAND.format(log=log))
    (folder / "python").write_text("#!/bin/sh\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return f"{folder.name}={folder}"


def test_checkouts_are_measured_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", os.devnull)
    logs = [tmp_path / "one.log", tmp_path / "two.log"]
    names = [pretending(tmp_path / log.stem, log) for log in logs]
    checkouts = [Checkout.of(name, tmp_path / "clones") for name in names]
    found = measure(checkouts, 2, tests=True)
    assert all(len(taken) == 2 for taken in found.values())
    for log in logs:
        lines = log.read_text().split()
        assert lines.count("demo") == 2
        assert lines.count("test") == 2
        assert lines.count("synthesize") == 4
        # The first two examples compile, and the second two do not.
        follows = itertools.pairwise([*lines, ""])
        kernels = [then == "compiles" for now, then in follows if now == "synthesize"]
        assert kernels == [True, True, False, False]
    lines = table(["one", "two"], found).splitlines()
    assert lines[:2] == ["|  | one | two |", "| --- | --- | --- |"]
    assert len(lines) == 2 + len(found)


def test_what_fails_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKELEVEL", "1")  # As under `make test`, where make tells its folders.
    source = pretending(tmp_path / "one", tmp_path / "log")
    checkout = Checkout.of(source, tmp_path / "clones")
    checkout.clone()
    with pytest.raises(SystemExit, match=r"make nothing\n.*No rule to make target"):
        checkout.run("make nothing")


@pytest.mark.parametrize("text", ["/tmp", "name=", "name=/nowhere", "=/tmp"])
def test_a_checkout_has_a_name_and_a_repository(text: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="expected NAME=FOLDER"):
        Checkout.of(text, tmp_path)


def test_times_are_wall_and_processor_time() -> None:
    assert [str(Taken(wall, 1.0)) for wall in (0.123, 12.34, 123.4)] == [
        "0.12 (1.00)",
        "12.3 (1.0)",
        "123 (1)",
    ]
