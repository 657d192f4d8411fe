"""Locks: one of many processes gets a folder, and a process that is killed leaves it free."""

from __future__ import annotations

import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from private_gsd.system import folder_locks
from private_gsd.system.folder_locks import LOCK, locked, locked_file

if TYPE_CHECKING:
    from collections.abc import Callable

# Locks a folder as soon as it is told to, says whether it could, and holds the lock until it ends.
HOLDER = """
import sys
from pathlib import Path
from private_gsd.system import folder_locks

place = Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
try:
    with getattr(folder_locks, sys.argv[1])(place):
        print("locked", flush=True)
        sys.stdin.readline()
except BlockingIOError:
    print("taken", flush=True)
"""
RACERS = 6
KINDS = [("locked", ""), ("locked_file", LOCK)]


class Holder:
    """A process that locks a folder when it is told to."""

    def __init__(self, kind: str, place: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, kind, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.hear() == "ready"

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go_ahead(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_processes_race_and_one_that_is_killed_leaves_the_folder_free(
    tmp_path: Path, kind: str, name: str
) -> None:
    lock: Callable[[Path], AbstractContextManager[None]] = getattr(folder_locks, kind)
    racers = [Holder(kind, tmp_path / name) for _ in range(RACERS)]
    try:
        for racer in racers:
            racer.go_ahead()
        heard = [racer.hear() for racer in racers]
        assert sorted(heard) == ["locked", *["taken"] * (RACERS - 1)]
        with pytest.raises(BlockingIOError), lock(tmp_path / name):
            pass
        racers[heard.index("locked")].kill()
        with lock(tmp_path / name):
            pass
    finally:
        for racer in racers:
            racer.kill()


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_within_one_process_too(tmp_path: Path, kind: str, name: str) -> None:
    """And a lock that ends, well or not, can be had again; nothing is written into the folder."""
    lock: Callable[[Path], AbstractContextManager[None]] = getattr(folder_locks, kind)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), lock(tmp_path / name):
            with pytest.raises(BlockingIOError), lock(tmp_path / name):
                pass
            raise ZeroDivisionError
    assert [path.stat().st_size for path in tmp_path.iterdir()] in ([], [0])


def test_what_cannot_be_locked(tmp_path: Path) -> None:
    """An error of the file system, and none that says that somebody has the lock."""
    for place, lock in ((tmp_path / "nowhere", locked), (tmp_path / "nowhere" / LOCK, locked_file)):
        with pytest.raises(OSError, match="nowhere") as caught, lock(place):
            pass
        assert not isinstance(caught.value, BlockingIOError)
    (tmp_path / LOCK).write_bytes(bytes(range(256)) * 16)  # no database
    with pytest.raises(OSError, match="not a database"), locked_file(tmp_path / LOCK):
        pass
