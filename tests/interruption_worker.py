"""Interrupt adaptive runs at random moments, each in a process of its own.

Run as ``python -m tests.interruption_worker FOLDER``. Prints how many charges a whole run has, and
for each trial the exit code of its process, and its charges at the signal and in the end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.fitting import QUICK
from tests.test_interruptions import charges, fit_adaptively

EPOCHS = 6


def fit(folder: Path) -> None:
    fit_adaptively(folder, QUICK, EPOCHS)


def known(folder: Path) -> int:
    return len(charges(folder)) if (folder / "ledger.db").exists() else 0


def child(folder: Path) -> int:
    """A run in a process that has all kernels, and listens."""
    reading, writing = os.pipe()
    number = os.fork()
    if number:
        os.close(writing)
        os.read(reading, 1)  # Python forgets signals that come while it forks
        os.close(reading)
        return number
    code = 1
    try:
        os.write(writing, b".")
        fit(folder)
        code = 0
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def main(folder: Path) -> None:
    fit(folder / "first")  # kernels are loaded here
    begin = time.perf_counter()
    os.waitpid(child(folder / "whole"), 0)
    whole = time.perf_counter() - begin
    rng = random.Random(5)
    trials = []
    for number in range(50):
        mine = folder / str(number)
        process = child(mine)
        time.sleep(rng.random() * whole)
        os.kill(process, signal.SIGINT)
        before = known(mine)  # or more, if this process had to wait; never fewer
        _, status = os.waitpid(process, 0)
        trials.append([os.waitstatus_to_exitcode(status), before, known(mine)])
    sys.stdout.write(json.dumps([known(folder / "whole"), trials]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
