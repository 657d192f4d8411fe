"""How runs end on the command line: signals, and what was paid for."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.csv
import pytest

from private_gsd import Ledger, LedgerError, Release, datasets
from private_gsd.cli.run_output import guarantee
from tests.cli.running import COMMAND, COMMON, NAMES, run


@pytest.mark.slow
def test_what_was_paid_for_is_not_thrown_away(folder: Path) -> None:
    """Told to end, or to write what cannot be written: the release is kept, and where is said."""
    command = [*COMMAND, "synthesize", *COMMON, "--rows", "2000000"]
    process = subprocess.Popen(
        [*command, "--ledger", "l.db", "--create-ledger", "-o", "o.csv"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (folder / "l.db").exists() or not charged(folder / "l.db"):
        time.sleep(0.02)
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "Traceback" not in err
    release = Path(err.split("resume with: private-gsd resume ")[1].strip())
    assert release.is_dir()
    shutil.rmtree(release.parent)


def test_what_was_half_made_is_silent_about_it() -> None:
    """As a zip file is, whose making was interrupted."""
    program = """
import os, signal
from private_gsd.cli.run_output import orderly_end

class Half:
    def __init__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        self.made = True

    def __del__(self):
        assert self.made

with orderly_end():
    Half()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, b"")


def charged(ledger: Path) -> bool:
    try:
        with Ledger(ledger, read_only=True) as opened:
            return bool(opened.charges("table"))
    except LedgerError:
        return False


def test_nohup_is_heeded() -> None:
    """A run that ignores SIGHUP from its start goes on, whenever the signal comes."""
    program = """
import os, signal
from private_gsd.cli.run_output import orderly_end

for heeded in (False, True):
    signal.signal(signal.SIGHUP, signal.SIG_DFL if heeded else signal.SIG_IGN)
    with orderly_end():
        os.kill(os.getpid(), signal.SIGHUP)
    print("alive", flush=True)
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGHUP, "alive\n", "")


@pytest.mark.slow
def test_interrupted_and_resumed(folder: Path) -> None:
    """Ctrl-C: one line, 130, and what was paid for is not lost."""
    pyarrow.csv.write_csv(datasets.census(20_000).select(NAMES), folder / "table.csv")
    words = [*COMMON, "--rows", "400000", "--release", "r", "-o", "o.csv"]
    process = subprocess.Popen(
        [*COMMAND, "synthesize", *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (folder / "r" / "measurements" / "measurements.json").exists():
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert "error: interrupted" in error
    assert "resume with: private-gsd resume" in error
    assert "Traceback" not in error
    run("resume", "r", "-o", "o.csv", cwd=folder)
    assert Release.load(folder / "r").complete


def test_what_is_said_of_a_release() -> None:
    """A guarantee, or why there is none; and the accounting."""
    record = {
        "dataset": "d",
        "neighbours": "replace-one",
        "delta": 1e-6,
        "total": {"epsilon": 1.0, "rho": 0.0123456},
        "spent": {"epsilon": 0.5, "rho": 0.004},
        "this_release_alone": False,
        "not_private_because": [],
        "claims": {},
    }
    private, accounting = guarantee(record)
    assert "epsilon = 1 at delta = 1e-06 (rho = 0.01235) is guaranteed for all noisy" in private
    assert accounting == (
        "accounting: rho = 0.004 of the total of 0.01235 is spent on dataset 'd' so far"
    )
    reasons = guarantee({**record, "not_private_because": ["one", "two"]})
    assert reasons == ["NOT PRIVATE: one", "NOT PRIVATE: two", accounting]
