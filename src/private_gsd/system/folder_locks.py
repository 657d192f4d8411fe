"""Locks: one process at a time works in a folder; a process that dies leaves the folder free.

Where folders can be locked, the folder itself is: nobody can remove such a lock. Elsewhere, on
Windows, SQLite locks a file in it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from private_gsd.system.file_systems import FOLDERS_OPEN
from private_gsd.system.operating_system import optional_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The file that is locked where folders cannot be.
LOCK = ".lock"
_fcntl = optional_module("fcntl")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder; ``BlockingIOError`` if it is locked already, be it by this process.

    Args:
        folder: The folder, which must exist.
    """
    with _locked_folder(folder) if FOLDERS_OPEN and _fcntl else locked_file(folder / LOCK):
        yield


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        _fcntl.flock(descriptor, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_file(file: Path) -> Iterator[None]:
    """Lock a file as SQLite locks a database. The file stays empty.

    Args:
        file: The file, which is made if it is not there.
    """
    with closing(_opened(file)) as connection:
        try:
            # Without a journal beside it: nothing is ever written to the file.
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise BlockingIOError(f"{file}: is locked") from None
            raise OSError(None, str(error), str(file)) from None
        yield
    if sys.platform == "win32":
        # Refused while another process has the file open, and so while another locks it.
        with suppress(OSError):
            file.unlink()


def _opened(file: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise OSError(None, str(error), str(file)) from None
