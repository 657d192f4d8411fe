"""The ledger's file: how it is made, recognised and opened, and what its troubles are called."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from contextlib import closing, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

from private_gsd.errors import LedgerError
from private_gsd.privacy.budget import GAUSSIANS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

APPLICATION_ID = 0x4753444C  # "GSDL"
VERSION = 3
# Ledgers of version 2 do not know the conversion "gaussian", and are as good for all others.
VERSIONS = (2, VERSION)
BUSY_SECONDS = 30.0

_GROWS = "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"


def _only_grow(table: str, same: str) -> str:
    """Triggers that refuse to change or remove a row, or to put one in the place of the same."""
    # INSERT OR REPLACE removes rows without asking the triggers for DELETE, hence that for INSERT.
    return f"""
CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} {_GROWS};
CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} {_GROWS};
CREATE TRIGGER {table}_replace BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {_GROWS};"""


_CONVERSIONS = {2: "'tight', 'paper'", 3: "'tight', 'paper', 'gaussian'"}
_GAUSSIAN_ALONE = f"""
CREATE TRIGGER charges_gaussian BEFORE INSERT ON charges
    WHEN NEW.mechanism NOT IN {GAUSSIANS}
        AND EXISTS (SELECT 1 FROM datasets WHERE name = NEW.dataset AND conversion = 'gaussian')
    BEGIN SELECT RAISE(ABORT, 'not Gaussian'); END;"""


def _schema(version: int = VERSION) -> str:
    """All that a ledger has before its first dataset."""
    return f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {version};
CREATE TABLE datasets (
    name TEXT PRIMARY KEY NOT NULL CHECK (length(name) > 0),
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0),
    delta REAL NOT NULL CHECK (delta > 0 AND delta < 1),
    conversion TEXT NOT NULL CHECK (conversion IN ({_CONVERSIONS[version]})),
    neighbours TEXT NOT NULL CHECK (neighbours IN ('replace-one', 'add-remove')),
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE charges (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    dataset TEXT NOT NULL REFERENCES datasets (name),
    run TEXT NOT NULL,
    at TEXT NOT NULL,
    mechanism TEXT NOT NULL,
    groups TEXT NOT NULL,
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0)
);
CREATE TABLE runs (
    run TEXT PRIMARY KEY NOT NULL,
    dataset TEXT NOT NULL REFERENCES datasets (name),
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units > 0),
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE given_back (
    run TEXT PRIMARY KEY NOT NULL REFERENCES runs (run),
    at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE steps (
    charge INTEGER PRIMARY KEY REFERENCES charges (id),
    run TEXT NOT NULL REFERENCES runs (run),
    step TEXT NOT NULL,
    UNIQUE (run, step)
);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    charge INTEGER NOT NULL REFERENCES charges (id),
    attempt TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE TABLE kept (
    charge INTEGER PRIMARY KEY REFERENCES charges (id),
    digest TEXT NOT NULL,
    at TEXT NOT NULL
);
CREATE INDEX charges_by_dataset ON charges (dataset, units);
{_only_grow("datasets", "name = NEW.name")}
{_only_grow("charges", "id = NEW.id")}
{_only_grow("runs", "run = NEW.run")}
{_only_grow("given_back", "run = NEW.run")}
{_only_grow("steps", "charge = NEW.charge OR (run = NEW.run AND step = NEW.step)")}
{_only_grow("attempts", "id = NEW.id")}
{_only_grow("kept", "charge = NEW.charge")}
CREATE TRIGGER charges_total BEFORE INSERT ON charges
    WHEN NEW.units > coalesce((SELECT units FROM datasets WHERE name = NEW.dataset), 0)
        - coalesce((SELECT sum(units) FROM charges WHERE dataset = NEW.dataset), 0)
    BEGIN SELECT RAISE(ABORT, 'over the total'); END;
{_GAUSSIAN_ALONE if version > 2 else ""}
COMMIT;
"""


DAMAGED = (
    "the ledger is damaged. Mend it with SQLite's .recover, or restore a copy, but none from "
    "before the last charge: it would forget what was released"
)
_CAUSES = {
    sqlite3.SQLITE_BUSY: f"another process kept it locked for {BUSY_SECONDS:g} seconds; "
    "try again when that is done",
    sqlite3.SQLITE_FULL: "the disk is full; make room and try again",
    sqlite3.SQLITE_IOERR: "the disk could not be read or written; is it full, or failing?",
    sqlite3.SQLITE_READONLY: "it is read-only, or was opened only to be read; make it and its "
    "folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its folder cannot be written to, where "
    "SQLite must keep a -wal file; make both writable, or only look, with 'private-gsd ledger "
    "show' or read_only=True",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: "not a ledger, or a damaged one; choose another file",
}


def create_file(
    file: Path, path: Path, fill: Callable[[sqlite3.Connection], object] = lambda _: None
) -> None:
    """Make a ledger. Other processes, and a crash, see the whole of it or nothing.

    Args:
        file: The file.
        path: What the user calls it.
        fill: Puts in what it has from its first moment on.
    """
    for beside in (_beside(file, "-wal"), _beside(file, "-journal")):
        if beside.exists():  # SQLite would apply it to the new file
            if file.exists():
                return  # another process made it meanwhile, and it is that one's
            raise LedgerError(
                f"{beside}: part of a ledger whose other part, {file.name}, is missing; put that "
                "back, or move this one away"
            )
    if not file.parent.is_dir():
        raise LedgerError(f"{path}: there is no folder {path.parent}; make it first")
    draft = file.with_name(f".private-gsd-{secrets.token_hex(8)}")
    try:
        with closing(_connect(draft, "mode=rwc")) as connection:
            # Not in WAL yet, whose last writes happen on closing, where a full disk goes unheard.
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_schema())
            fill(connection)
        os.link(draft, file)
    except FileExistsError:
        pass  # another process made it meanwhile
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            _beside(draft, suffix).unlink(missing_ok=True)


def check_kind(file: Path, path: Path) -> None:
    """Refuse what is no ledger of ours, without changing it or leaving anything beside it."""
    # Not by reading the file ourselves: closing it would drop the locks that SQLite may hold on it
    # in this process. "immutable" leaves its -wal alone, and the two numbers stand in the file
    # from its first moment. With "writable_schema", a file that is short because another process
    # is writing it right now, or died in doing so, is not yet called damaged.
    with closing(_connect(file, "mode=ro&immutable=1")) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        (kind,) = connection.execute("PRAGMA application_id").fetchone()
        version = version_of(connection)
    if kind != APPLICATION_ID:
        raise LedgerError(f"{path}: not a ledger; choose another file")
    if version not in VERSIONS:
        raise LedgerError(
            f"{path}: a ledger of version {version}, and this private-gsd knows {VERSION}; use "
            f"{'a newer' if version > VERSION else 'the'} private-gsd"
            f"{'' if version > VERSION else ' that made it'}"
        )


def open_file(file: Path, path: Path, read_only: bool) -> sqlite3.Connection:
    """Open a ledger, to be written or only to be read."""
    if not read_only and file.stat().st_nlink > 1:
        # A process that died making it may have left its draft, which is the same file.
        for draft in file.parent.glob(".private-gsd-*"):
            with suppress(OSError):
                if draft.stat().st_ino == file.stat().st_ino:
                    draft.unlink()
    if not read_only and file.stat().st_nlink > 1:
        # Each name would have a -wal of its own, and so its own charges, until one is lost.
        raise LedgerError(f"{path}: the file has a second name (a hard link); remove that one")
    # For reading, too, the file is opened to be written if it can be: the last to close it then
    # leaves no -wal and -shm behind. SQLite by itself makes do with reading.
    try:
        return _prepared(_connect(file, "mode=rw"), path, read_only)
    except sqlite3.OperationalError as error:
        blocked = error.sqlite_errorcode & 0xFF in (
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_READONLY,
        )
        if not (read_only and blocked) or os.access(file.parent, os.W_OK):
            raise
    wal = _beside(file, "-wal")
    if wal.exists() and wal.stat().st_size > 0:
        raise LedgerError(
            f"{path}: its newest charges stand in {wal.name}, which cannot be read in a folder "
            "that is read-only; copy both files to another folder, and look at them there"
        )
    return _prepared(_connect(file, "mode=ro&immutable=1"), path, read_only)


def _connect(file: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{file.as_uri()}?{options}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # transactions begin and end where we say
        check_same_thread=False,
    )


def _prepared(connection: sqlite3.Connection, path: Path, read_only: bool) -> sqlite3.Connection:
    """The connection, set to be durable, once the file is found whole."""
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: the disk, not its cache
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        # The -wal goes into the file when the last process closes it, and only then: SQLite before
        # 3.51.3 can lose pages where one process does so while another one writes.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        elif connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise LedgerError(f"{path}: this disk does not allow SQLite's WAL; use a local disk")
        whole = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        if not whole or _objects(connection) != _own_objects(version_of(connection)):
            raise LedgerError(f"{path}: {DAMAGED}")
    except BaseException:
        connection.close()
        raise
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a ledger."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _objects(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' ORDER BY name"
    ).fetchall()


@cache
def _own_objects(version: int) -> list[tuple[str, str]]:
    """The tables and triggers of every ledger: one without its triggers is not trusted."""
    if version not in VERSIONS:  # it was looked at before; somebody changes it now
        return []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(_schema(version))
        return _objects(connection)


@contextmanager
def told(path: Path, after: str = "") -> Iterator[None]:
    """Say in words what went wrong with a file."""
    try:
        yield
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
