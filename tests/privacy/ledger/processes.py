"""Other processes for the tests of the ledger, and conversations with them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("ledger_worker.py")


class Worker:
    """Another process, and a conversation with it."""

    def __init__(self, *words: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, WORKER, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        heard = json.loads(self.process.stdout.readline())
        assert isinstance(heard, dict)
        return heard


@contextmanager
def workers(number: int, *words: str | Path) -> Iterator[list[Worker]]:
    started = [Worker(*words) for _ in range(number)]
    try:
        for worker in started:
            assert worker.hear() == {"ready": True}
        yield started
    finally:
        for worker in started:
            worker.process.communicate()  # the end of its input, and so of it


def race(pair: list[Worker], **command: object) -> list[dict[str, Any]]:
    """Give all workers the same command, to be run at the same moment."""
    line = json.dumps({**command, "start": time.monotonic() + 0.002})
    for worker in pair:
        worker.say(line)
    return [worker.hear() for worker in pair]


def script(code: str, *words: str | Path) -> list[Any]:
    """What some code prints, as JSON, run as a user whom read-only files bind."""
    command = [sys.executable, WORKER, "without_rights", sys.executable, "-c", code, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("root here cannot give up its rights")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
