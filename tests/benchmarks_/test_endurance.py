"""The test of endurance: its checks notice what they are for, and it runs from end to end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.endurance import damages
from benchmarks.endurance.children import Ended, call
from benchmarks.endurance.looking import Looked
from benchmarks.endurance.scenes import differing, listing

from private_gsd.errors import BudgetError

ROOT = Path(__file__).parents[2]


def test_how_children_end(tmp_path: Path) -> None:
    def refuse() -> None:
        raise BudgetError("nothing is left")

    ended = call(refuse, tmp_path)
    assert ended.refused
    assert (ended.code, ended.last_words) == (BudgetError.exit_code, "error: nothing is left")
    assert call(lambda: 1 / 0, tmp_path).trouble == "traceback"
    assert call(lambda: os.kill(os.getpid(), signal.SIGUSR1), tmp_path).trouble == "crash"
    killed = call(lambda: os.kill(os.getpid(), signal.SIGKILL), tmp_path)
    assert killed.killed
    assert killed.trouble is None
    assert call(lambda: None, tmp_path).code == 0
    assert not list(tmp_path.iterdir())


def test_every_damage_changes_something() -> None:
    rng = random.Random(1)
    for content in (b"some text, and more of it", bytes(5000), b"1"):
        for name in damages.DAMAGES:
            if name == "cut short" and len(content) == 1:
                continue
            assert damages.damaged(content, name, rng, None) != content
    names = {damages.choose(number, swap=True) for number in range(7)}
    assert names == {*damages.DAMAGES, damages.SWAPPED}


def test_another_result_is_a_failure() -> None:
    looked = Looked()
    looked.take(Ended(8, "", "error: too much"), lambda: False, "a charge")
    looked.take(Ended(0, "fine", ""), lambda: True, "a look")
    assert (looked.worst, looked.words) == ("refused", [])
    looked.take(Ended(0, "fine", ""), lambda: False, "another look")
    assert (looked.worst, looked.words) == ("silent", ["silent: another look: another result"])
    looked.take(Ended(1, "", ""), lambda: True, "no word")  # nobody knows why
    assert looked.outcomes[-1] == "silent"
    looked.take(Ended(99, "", "Traceback (most recent call last)\nKeyError"), lambda: True, "x")
    assert looked.worst == "traceback"


def test_what_is_drawn_twice_is_noticed(tmp_path: Path) -> None:
    before = {"charge 1: sex": b"12", "selection 1": (2,)}
    assert differing(before, {**before, "charge 2: age": b"3"}) == []
    assert differing(before, {**before, "charge 1: sex": b"13"}) == ["charge 1: sex"]
    for name in ("arrays-0123456789abcdef.npz", "arrays-fedcba9876543210.npz", "table-3.npy"):
        (tmp_path / name).touch()
    assert listing(tmp_path) == {"arrays-*.npz", "arrays-*.npz, 2 times", "table-*.npy"}


@pytest.mark.slow
@pytest.mark.parametrize("only", ["measurements/measurements.json"])
def test_the_program(tmp_path: Path, only: str) -> None:
    """A few kills, a race of each kind and some damages, in a process without threads."""
    words = ["--kills", "6", "--races", "1", "--damages", "2", "--jobs", "1", "--only", only]
    command = [sys.executable, "-m", "benchmarks.endurance", *words, "--json"]
    done = subprocess.run(
        [*command, str(tmp_path / "all"), "--no-sync"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "all").read_text())
    assert sum(each.get("kills", 0) for each in found) == 6
    assert sum(each.get("races", 0) for each in found) == 4
    assert sum(each.get("damages", 0) for each in found) == 4
    assert all(not each["failures"] for each in found)
