"""The benchmark of other systems' packages: what fails is said, and the best figures are bold."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import peers
from benchmarks.numbers.making import Run
from benchmarks.peers import OURS, SCORES, report

from private_gsd import Categorical, Schema

SCHEMA = Schema([Categorical(name, values=[0, 1]) for name in "abc"])


@pytest.fixture
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)
    monkeypatch.setattr(peers, "table_of", lambda data: (SCHEMA, rows[:40], rows[40:]))


@pytest.mark.usefixtures("_table")
def test_what_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # An interpreter with our packages and none of theirs.
    monkeypatch.setattr(peers, "environment", lambda package, folder: sys.executable)
    found = peers.perform(Run("table.csv", "smartnoise-mst", 1.0, 0), 60, tmp_path)
    assert found["failed"] == "ModuleNotFoundError: No module named 'snsynth'"
    assert found["data"] == "table"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (b"", "no reason given"),
        (b"killed", "killed"),
        (b"  File a\nValueError: one\n", "ValueError: one"),
        (
            b'a.OpenDPException: \n  Failed("two\n  lines\n")',
            'a.OpenDPException: Failed("two lines ")',
        ),
    ],
)
def test_the_last_error_is_the_reason(output: bytes, expected: str) -> None:
    assert peers.reason(output) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("_table")
def test_our_own_rows_have_all_scores(tmp_path: Path) -> None:
    found = peers.perform(Run("table.csv", OURS, 1.0, 0), 60, tmp_path)
    assert set(SCORES) <= set(found)
    assert 0 <= found["pairs mean"] <= found["pairs max"] <= 1


def test_the_best_figures_are_bold() -> None:
    good, bad = (
        {"data": "t", "epsilon": 1.0, **dict.fromkeys(SCORES, value), "F1": 1 - value}
        for value in (0.1, 0.2)
    )
    runs = [
        {**good, "system": "one"},
        {**bad, "system": "two"},
        {"data": "t", "epsilon": 1.0, "system": "three", "failed": "over 600 s"},
    ]
    one, two, three = report(runs).splitlines()[-3:]
    assert one.count("**0.1**") == len(SCORES) - 1
    assert "**" not in two
    assert three.startswith("| three (1 failed: over 600 s) |")
