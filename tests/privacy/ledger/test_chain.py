"""The chain: no flipped bit, lost row or changed row goes unnoticed."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from private_gsd.errors import LedgerError
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from tests.privacy.ledger.ledgers import pay, small


def seen_in(path: Path) -> tuple[Any, ...]:
    """All that a ledger says."""
    with Ledger(path, read_only=True) as ledger:
        accounts = ledger.accounts()
        return accounts, [ledger.charges(account.dataset) for account in accounts]


def ledger_with_all_tables(path: Path) -> bytes:
    """A ledger of every kind of row, whole."""
    with Ledger(path, create=True) as ledger:
        for name in ("d", "e"):
            ledger.add_dataset(name, small())
            pay(ledger, 5, name)
        finished, begun = (Reservation(ledger, "d", run, "a") for run in ("finished", "begun"))
        for run in (finished, begun):
            run.reserve(30)
            run.charge("first", 10, "m", ["g"])
        finished.commit("first", "digest")
        finished.cancel()
    return path.read_bytes()


@pytest.mark.slow
def test_any_flipped_bit_is_noticed_or_does_no_harm(path: Path) -> None:
    """Random bits of all that is no empty space: headers, rows, pointers, the text of triggers.

    If one in a thousand of them went unnoticed and did harm, the test would fail with a
    probability of 95 %. (Without the chain it was one in fifteen.) The profile "thorough" flips
    all of them.
    """
    whole = ledger_with_all_tables(path)
    truth = seen_in(path)
    bits = [(place, bit) for place, byte in enumerate(whole) if byte for bit in range(8)]
    if os.environ.get("HYPOTHESIS_PROFILE") != "thorough":
        bits = random.Random(24).sample(bits, 3000)
    noticed = 0
    for place, bit in bits:
        content = bytearray(whole)
        content[place] ^= 1 << bit
        path.write_bytes(content)
        try:
            assert seen_in(path) == truth
        except LedgerError as error:
            noticed += 1
            assert str(error).startswith(f"{path}: ")
            with pytest.raises(LedgerError):
                Ledger(path)
    assert noticed > 0.8 * len(bits)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE datasets SET units = units + 1 WHERE name = 'd'",
        "UPDATE datasets SET delta = delta * 2",
        "UPDATE charges SET units = units - 1 WHERE id = 1",
        "UPDATE reservations SET units = units - 1 WHERE run = 'begun'",
        "UPDATE commits SET digest = 'other'",
        "UPDATE charges SET groups = '[' WHERE id = 1",
        "UPDATE charges SET groups = CAST(x'ff' AS TEXT) WHERE id = 1",
        "UPDATE datasets SET delta = 'none'",
        "DELETE FROM attempts",
        "DELETE FROM chain WHERE id = (SELECT max(id) FROM chain)",
        "DELETE FROM charges WHERE id = (SELECT max(id) FROM charges)",
        "INSERT INTO cancellations VALUES ('begun', 'now')",
    ],
)
def test_a_row_that_was_changed_is_noticed(path: Path, statement: str) -> None:
    """Even where the tables and triggers are whole again."""
    ledger_with_all_tables(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        triggers = other.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            other.execute(f"DROP TRIGGER {name}")
        assert other.execute(statement).rowcount > 0
        for _, sql in triggers:
            other.execute(sql)
    for options in ({}, {"read_only": True}):
        with pytest.raises(LedgerError, match=r"the ledger is damaged: .*Release nothing more"):
            Ledger(path, **options)
