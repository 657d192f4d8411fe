"""The ledger's file: how it is made, recognised and opened, and the messages of its errors."""

from __future__ import annotations

import errno
import os
import re
import secrets
import sqlite3
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from private_gsd.errors import LedgerError
from private_gsd.privacy.ledger.chain import BrokenChainError, verify
from private_gsd.privacy.ledger.ledger_tables import APPLICATION_ID, CREATE_TABLES, VERSION
from private_gsd.system import file_systems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from private_gsd.privacy.ledger.chain import Link

BUSY_SECONDS = 30.0
# How a transaction commits: its journal is removed, or emptied. SQLite waits for a removal by fsync
# on the folder, which is not enough on macOS and not possible on Windows; it waits for the emptied
# journal as for any file.
JOURNAL = "delete" if file_systems.FOLDERS_SYNC else "truncate"
# The name of a ledger file that is being made.
_DRAFT = re.compile(r"\.private-gsd-[0-9a-f]{16}")

DAMAGED = (
    "the ledger is damaged{}. Release nothing more of its datasets. Put back a copy from after the "
    "last charge: privacy.json of every release lists charges that it must have. If there is none, "
    "take the whole budget as spent"
)
_CAUSES = {
    sqlite3.SQLITE_BUSY: f"another process has locked it for {BUSY_SECONDS:g} seconds; "
    "try again when that is done",
    sqlite3.SQLITE_FULL: "the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "the disk could not be read or written; is it full, or failing?",
    sqlite3.SQLITE_READONLY: "it is read-only, or was opened only to be read; make it and its "
    "folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its folder cannot be written to, where "
    "SQLite puts a -journal while it writes; make both writable, or only look, with 'private-gsd "
    "ledger show' or read_only=True",
    sqlite3.SQLITE_CORRUPT: DAMAGED.format(""),
    sqlite3.SQLITE_NOTADB: "not a ledger, or a damaged one; choose another file",
}


def create_file(file: Path, path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make a ledger, so that it exists whole or not at all, also after a crash.

    Args:
        file: The file.
        path: The path that the user gave, for error messages.
        fill: Writes the first accounts of the ledger.
    """
    journal = _beside(file, "-journal")
    if _holds_something(journal):  # SQLite would apply it to the new file
        if file.exists():
            return  # another process made the ledger meanwhile, and is using the journal
        raise LedgerError(
            f"{journal}: part of a ledger whose other part, {file.name}, is missing; put that "
            "back, or move this one away"
        )
    if not file.parent.is_dir():
        raise LedgerError(f"{path}: there is no folder {path.parent}; make it first")
    if _DRAFT.fullmatch(file.name):
        raise LedgerError(f"{path}: is a name for a ledger that is being made; choose another")
    draft = file.with_name(f".private-gsd-{secrets.token_hex(8)}")
    try:
        with closing(_connect(draft, "mode=rwc")) as connection:
            _set_durable(connection)
            connection.executescript(CREATE_TABLES)
            fill(connection)
        file_systems.place_new(draft, file)
    except FileExistsError:
        pass  # another process made it meanwhile
    finally:
        for suffix in ("", "-journal"):
            file_systems.remove(_beside(draft, suffix))


def check_format(file: Path, path: Path) -> None:
    """Refuse a file that is no ledger of this format, without changing any file."""
    # The file is not read directly: closing it would release the locks that SQLite may have on it
    # in this process. "immutable" ignores a -journal; the two numbers are written when the file is
    # made. With "writable_schema", a file that is short because another process is writing it, or
    # died while writing it, is not yet reported as damaged.
    with closing(_connect(file, "mode=ro&immutable=1")) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        (kind,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION_ID:
        raise LedgerError(f"{path}: not a ledger; choose another file")
    if version != VERSION:
        other = "a newer private-gsd" if version > VERSION else "the private-gsd that made it"
        raise LedgerError(
            f"{path}: a ledger of format {version}, and this private-gsd reads format {VERSION}; "
            f"use {other}"
        )


def open_file(file: Path, path: Path, read_only: bool) -> tuple[sqlite3.Connection, Link]:
    """Open a ledger to be written or only read; returns the connection and the end of the chain."""
    if not read_only:
        _require_one_name(file, path)
    # Also for reading, the file is opened for writing if possible, so that SQLite can roll back the
    # transaction of a process that died. If it is not possible, SQLite opens it for reading.
    connection = _connect(file, "mode=rw")
    try:
        _set_durable(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        elif connection.execute(f"PRAGMA journal_mode = {JOURNAL}").fetchone() != (JOURNAL,):
            raise LedgerError(f"{path}: cannot be given a rollback journal; is it in use?")
        connection.execute("BEGIN")
        end = _verified(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection, end


def identity(file: Path) -> tuple[int, int]:
    """The device and inode of a file, which are the same under all of its names."""
    found = file.stat()
    return found.st_dev, found.st_ino


def _require_one_name(file: Path, path: Path) -> None:
    """Refuse a file with a second name.

    The name of the -journal follows from the name of the file. Opened by another name, SQLite would
    not find the journal of a process that died, and would not roll back its transaction.
    """
    if file.stat().st_nlink > 1:
        # A process that died while making the ledger may have left its draft, a hard link to it.
        for draft in file.parent.glob(".private-gsd-*"):
            with suppress(OSError):
                ours = _DRAFT.fullmatch(draft.name) and draft != file
                if ours and identity(draft) == identity(file):
                    draft.unlink()
    if file.stat().st_nlink > 1:
        raise LedgerError(f"{path}: the file has a second name (a hard link); remove that one")
    if file in mount_points(path):
        raise LedgerError(
            f"{path}: the file itself is mounted here, and so has another name elsewhere; mount "
            "the folder that it is in, and use it there"
        )


def mount_points(path: Path) -> set[Path]:
    """All mount points.

    Args:
        path: The path of the ledger, for the error message.
    """
    try:
        return file_systems.mount_points()
    except OSError as error:
        raise LedgerError(
            f"{path}: /proc/self/mountinfo cannot be read, and so it is not known whether the "
            "file has another name; make /proc visible"
        ) from error


def _connect(file: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{_uri(file)}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions are explicit
        check_same_thread=False,
    )
    # Damaged text must be readable, to be compared with the chain.
    connection.text_factory = lambda text: text.decode(errors="surrogateescape")
    return connection


def _set_durable(connection: sqlite3.Connection) -> None:
    """Make commits durable: when a commit returns, it is on the disk.

    A rollback journal commits by removing the journal, and only EXTRA waits for the removal. Where
    it cannot, the journal is emptied instead (see ``JOURNAL``).
    """
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: the disk, not its cache


def _holds_something(journal: Path) -> bool:
    """Whether a journal has anything that SQLite would apply: an emptied one stays behind."""
    return journal.exists() and (JOURNAL == "delete" or journal.stat().st_size > 0)


def _uri(file: Path) -> str:
    """The address of a file as SQLite reads it, also for a folder that is shared by Windows."""
    path = file.as_posix()
    return f"file://{'' if path.startswith('/') else '/'}{quote(os.fsencode(path))}"


def _verified(connection: sqlite3.Connection) -> Link:
    """The end of the chain, after checking that the ledger is undamaged."""
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise BrokenChainError(f"SQLite says: {found}")
    if _objects(connection) != _own_objects():
        raise BrokenChainError("its tables or triggers are not those of a ledger")
    return verify(connection)


def _objects(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    # Statistics that a tool has added (ANALYZE) are ignored.
    query = (
        "SELECT type, name, tbl_name, sql FROM sqlite_master "
        "WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY name"
    )
    return connection.execute(query).fetchall()


@cache
def _own_objects() -> list[tuple[str, ...]]:
    """The tables and triggers that every ledger must have."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(CREATE_TABLES)
        return _objects(connection)


@contextmanager
def ledger_errors(path: Path, after: str = "") -> Iterator[None]:
    """Turn errors of a file into a ``LedgerError`` that says what to do.

    Args:
        path: The path that the user gave, for the message.
        after: The end of the message for an error that ends a transaction.
    """
    try:
        yield
    except (BrokenChainError, UnicodeDecodeError) as error:  # the latter in SQLite's own message
        reason = str(error) if str(error).isprintable() else repr(str(error))
        raise LedgerError(f"{path}: {DAMAGED.format(f': {reason}')}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise LedgerError(f"{path}: {_CAUSES.get(code, error)}{after}") from error
    except FileNotFoundError as error:
        hint = "no such ledger; make one with 'private-gsd ledger create'"
        raise LedgerError(f"{path}: {hint}") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LedgerError(f"{path}: not the name of a file: links in a circle") from error
        raise LedgerError(f"{path}: {error.strerror or error}{after}") from error


def _beside(file: Path, suffix: str) -> Path:
    return file.with_name(file.name + suffix)
