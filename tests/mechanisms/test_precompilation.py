"""Rehearsals: after the first charge, no kernel is loaded or compiled any more."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.mechanisms.precompilation_worker import CASES

pytestmark = pytest.mark.worker("large")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "default" else pytest.mark.slow)
        for name in [*CASES, "sweep"]
    ],
)
def test_all_kernels_are_there_before_anything_is_paid_for(name: str) -> None:
    """In a new process, for each kind of run that needs other kernels."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.mechanisms.precompilation_worker", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = json.loads(done.stdout)
    assert before > 8
    assert after == []
