"""Transactions: an open ledger file, and the transactions in which it is read and written."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from private_gsd.errors import LedgerError
from private_gsd.privacy.ledger.chain import START, follow
from private_gsd.privacy.ledger.storage import (
    check_format,
    create_file,
    identity,
    ledger_errors,
    open_file,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator


class LedgerFile:
    """An open ledger file. Threads may share it; each process opens the file itself.

    Args:
        path: The file.
        fill: Writes the first accounts of a new file. If None, the file must exist.
        read_only: Whether the file is only read. This works for read-only files, too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fill: Callable[[sqlite3.Connection], None] | None,
        *,
        read_only: bool,
    ) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._last = START
        try:
            if "\0" in str(self.path):  # which Windows finds later
                raise ValueError("embedded null character")
            self._file = file = self.path.resolve()
            self._name = self.path.absolute()
        except (RuntimeError, ValueError) as error:  # links in a circle, a NUL in the name
            raise LedgerError(f"{str(self.path)!r}: not the name of a file: {error}") from error
        with ledger_errors(self.path):
            if fill is not None and not read_only and not file.exists():
                create_file(file, self.path, fill)
            if not stat.S_ISREG(file.stat().st_mode):
                raise LedgerError(f"{self.path}: not a file, and so not a ledger")
            self._identity = identity(file)
            check_format(file, self.path)
            self._connection, self._last = open_file(file, self.path, read_only)

    @property
    def closed(self) -> bool:
        """Whether the file was closed."""
        return self._connection is None

    @property
    def in_use(self) -> bool:
        """Whether a thread of this process is in a transaction."""
        return self._lock.locked()

    def close(self) -> None:
        """Close the file; closing twice is no error."""
        if self._process == os.getpid():
            with self._lock, ledger_errors(self.path):
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.close()

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
        """A connection inside a transaction, which is rolled back if anything fails.

        Args:
            kind: "DEFERRED" to read, "IMMEDIATE" to write.
        """
        # SQLite's locks are not inherited by a forked process; using the connection there would
        # break the locks of the parent.
        if self._process != os.getpid():
            raise LedgerError(f"{self.path}: opened by another process; open it anew in this one")
        writes = kind == "IMMEDIATE"
        after = "; the ledger did not record this, and nothing may be released" if writes else ""
        with self._lock, ledger_errors(self.path, after):
            connection = self._connection
            if connection is None:
                raise LedgerError(f"{self.path}: the ledger was closed")
            self._require_same_file()
            try:
                connection.execute(f"BEGIN {kind}")
                self._last = follow(connection, self._last)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if writes:  # else the charge may be in a file that was replaced meanwhile
                self._require_same_file()

    def _require_same_file(self) -> None:
        """Refuse to continue if the file was removed or replaced since it was opened."""
        try:
            # The path that was given is compared, too: a link may point to another file by now.
            same = identity(self._file) == identity(self._name) == self._identity
        except OSError:
            same = False
        if not same:
            raise LedgerError(
                f"{self.path}: the ledger was removed, or another put in its place, while it was "
                "in use; nothing may be released. Put back the file that was there, with all its "
                "charges, and try again"
            )
