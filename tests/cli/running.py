"""Commands run by tests: in this process, which saves a second for each, or as processes."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from private_gsd.cli import main

COMMAND = (sys.executable, "-m", "private_gsd.cli")
# The noisy answers are fitted as they are, which takes a tenth of the time.
QUICK_SEARCH = ("--projector", "gsd:denoise=false")

# Words for the table of the fixture ``folder``.
NAMES = ["sex", "age", "marital", "citizen", "tenure"]
COMMON = ["table.csv", "--schema", "schema.toml", "--epsilon", "1"]
QUICK = [*COMMON, "--rows", "100", *QUICK_SEARCH]


def run(*words: str | Path, cwd: Path, code: int = 0) -> tuple[str, str]:
    """Run a command here; check the exit code. An error that is not told as one is raised."""
    out, err = io.StringIO(), io.StringIO()
    status: Any = 0
    with (
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["private-gsd", *map(str, words)])
        patch.setenv("COLUMNS", "100")
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    assert status == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def run_alone(*words: str | Path, cwd: Path, code: int = 0) -> tuple[str, str]:
    """Run a command as a process; check the exit code and that nobody sees a traceback."""
    done = subprocess.run(
        [COMMAND[0], "-W", "error", *COMMAND[1:], *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr
