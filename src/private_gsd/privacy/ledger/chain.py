"""The ledger's chain: a copy of every row of a ledger, with a digest over all copies before it.

SQLite has no checksums: it does not notice a flipped bit in an amount, or a row lost with a damaged
page. So each row is also an entry of the table ``chain``, whose digest covers the entry and the
digest before it. A ledger is trusted if every digest is right and the entries are exactly the rows.
The chain reveals damage. It does not stop a forger, who could write the whole chain anew.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sqlite3

# The tables that are chained, with their columns.
COLUMNS = {
    "datasets": ("name", "units", "delta", "conversion", "neighbours", "unit", "at"),
    "charges": ("id", "dataset", "run", "at", "mechanism", "groups", "units"),
    "reservations": ("run", "dataset", "units", "at"),
    "cancellations": ("run", "at"),
    "steps": ("charge", "run", "step"),
    "attempts": ("id", "charge", "attempt", "at"),
    "commits": ("charge", "digest", "at"),
}


class Link(NamedTuple):
    """The end of a chain: the number of its last entry, and that entry's digest."""

    number: int
    digest: str


START = Link(0, "")


class BrokenChainError(Exception):
    """The chain, or a table that is compared with it, is damaged."""


def append(connection: sqlite3.Connection, table: str, *values: str | float | None) -> None:
    """Add a row to a table and to the chain; the caller is in an immediate transaction."""
    marks = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} ({', '.join(COLUMNS[table])}) VALUES ({marks})", values
    )
    query = "SELECT id, digest FROM chain ORDER BY id DESC LIMIT 1"
    last = Link(*(connection.execute(query).fetchone() or START))
    entry = _entry(table, values)
    link = (last.number + 1, entry, _digest(last.digest, entry))
    connection.execute("INSERT INTO chain (id, entry, digest) VALUES (?, ?, ?)", link)


def next_id(connection: sqlite3.Connection, table: str) -> int:
    """The number of the next row of a table whose rows are numbered."""
    (last,) = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    return int(last) + 1


def follow(connection: sqlite3.Connection, last: Link) -> Link:
    """The end of the chain, after checking that it continues from a link that was read before.

    Raises:
        BrokenChainError: The link is missing, or a later digest is wrong.
    """
    query = "SELECT id, entry, digest FROM chain WHERE id >= ? ORDER BY id"
    for number, entry, digest in connection.execute(query, (last.number,)):
        if number == last.number and digest == last.digest:
            continue
        if number != last.number + 1 or digest != _digest(last.digest, entry):
            raise BrokenChainError(f"entry {number} of its chain is not what was written")
        last = Link(number, digest)
    query = "SELECT coalesce(max(id), 0) FROM chain"
    if connection.execute(query).fetchone() != (last.number,):
        raise BrokenChainError(f"entry {last.number} of its chain is gone")
    return last


def verify(connection: sqlite3.Connection) -> Link:
    """The end of the chain, after checking every digest and comparing the entries with the rows.

    Raises:
        BrokenChainError: A digest is wrong, or entries and rows differ.
    """
    end = follow(connection, START)
    entries = Counter(entry for (entry,) in connection.execute("SELECT entry FROM chain"))
    for table, columns in COLUMNS.items():
        rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table} NOT INDEXED")
        entries.subtract(_entry(table, row) for row in rows)
    wrong = next((entry for entry, number in entries.items() if number), None)
    if wrong is not None:
        raise BrokenChainError(f"its tables and its chain disagree about {wrong!s:.120}")
    return end


def _entry(table: str, values: tuple[object, ...]) -> str:
    # A damaged row may hold bytes, which JSON cannot represent.
    return json.dumps([table, *values], default=repr)


def _digest(before: str, entry: str) -> str:
    return hashlib.sha256(f"{before}\n{entry}".encode(errors="surrogateescape")).hexdigest()
