"""The command line as a process of its own, with stand-ins for what is random.

    python -m tests.neighbours.launcher NUMBER [--kill] WORD...

NUMBER tells processes apart that work on one run; --kill ends the process before it searches, by a
signal that nobody can catch.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any
from unittest import mock

from private_gsd.cli import main
from private_gsd.runs import runner
from tests.neighbours.standing_in import everything_equal


def _die(*words: Any, **named: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    number, *words = sys.argv[1:]
    project: Any = runner.project
    if words[0] == "--kill":
        words, project = words[1:], _die
    sys.argv = ["private-gsd", *words]
    with everything_equal(int(number)), mock.patch.object(runner, "project", project):
        main()
