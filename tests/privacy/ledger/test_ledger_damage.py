"""Damage to a ledger: no flipped bit, lost row or second name leaves more budget than there is."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from private_gsd.errors import LedgerError
from private_gsd.privacy.ledger import storage as module
from private_gsd.privacy.ledger.chain import append
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from tests.privacy.ledger.test_ledger import ledger, path, pay, small

__all__ = ["ledger", "path"]  # fixtures


def seen_in(path: Path) -> tuple[Any, ...]:
    """All that a ledger says."""
    with Ledger(path, read_only=True) as ledger:
        accounts = ledger.accounts()
        return accounts, [ledger.charges(account.dataset) for account in accounts]


def damaged_ledger(path: Path) -> bytes:
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


def test_any_flipped_bit_is_noticed_or_does_no_harm(path: Path) -> None:
    """Random bits of all that is no empty space: headers, rows, pointers, the text of triggers.

    If one in a thousand of them went unnoticed and did harm, the test would fail with a
    probability of 95 %. (Without the chain it was one in fifteen.) The profile "thorough" flips
    all of them.
    """
    whole = damaged_ledger(path)
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
    damaged_ledger(path)
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


def test_a_charge_is_in_the_file_when_it_is_made(path: Path) -> None:
    """A process that dies leaves nothing beside the ledger that a copy could lack."""
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
        assert list(path.parent.iterdir()) == [path]
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
    with Ledger(copy) as ledger:
        assert ledger.account("d").spent == 5


@pytest.mark.parametrize("gone", [True, False])
def test_a_ledger_that_is_removed_while_in_use_takes_no_charge(
    ledger: Ledger, path: Path, gone: bool
) -> None:
    pay(ledger)
    if gone:
        path.unlink()
    else:
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        copy.replace(path)
    for use in (lambda: pay(ledger), lambda: ledger.account("d")):
        with pytest.raises(LedgerError, match="was removed, or another put in its place"):
            use()
    assert path.exists() is not gone  # none is made in its place


def test_a_ledger_that_is_removed_during_a_charge_does_not_pay(ledger: Ledger, path: Path) -> None:
    with (
        pytest.raises(LedgerError, match="nothing may be released"),
        ledger.transaction("IMMEDIATE") as connection,
    ):
        ledger.insert(connection, ("d", "r", "m", ["g"], 1))
        path.unlink()


MOUNTS = """
set -e
cd "$1"
mkdir other folder
touch other/ledger.db
mount --bind ledger.db other/ledger.db
mount --bind . folder
shift
exec "$@"
"""
USE_MOUNTS = """
import json, sys
from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.chain import append

first = Ledger("ledger.db")
for path in ("ledger.db", "other/ledger.db", "folder/ledger.db"):
    try:
        with Ledger(path) as ledger:
            ledger.charge("d", 4, mechanism="m", groups=[], run="r")
        print(json.dumps("paid"))
    except (BudgetError, LedgerError) as error:
        print(json.dumps(str(error)))
    with Ledger(path, read_only=True) as ledger:
        print(json.dumps([ledger.account("d").spent, first.account("d").spent]))
"""


def test_a_ledger_that_is_mounted_twice(path: Path) -> None:
    """The file itself is refused, its folder is as good as the other; none forgets a charge."""
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small(10))
    command = ["unshare", "-rm", "sh", "-c", MOUNTS, "sh", str(path.parent)]
    done = subprocess.run(
        [*command, sys.executable, "-c", USE_MOUNTS], capture_output=True, text=True, check=False
    )
    if done.returncode and done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no mounts of our own here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    first, seen, refused, still, second, both = map(json.loads, done.stdout.splitlines())
    assert (first, second) == ("paid", "paid")
    assert refused.startswith("other/ledger.db: the file itself is mounted here")
    assert (seen, still, both) == ([4, 4], [4, 4], [8, 8])


@pytest.mark.parametrize("name", [".private-gsd-ledger.db", "ledger.db"])
def test_only_drafts_of_ours_are_removed(tmp_path: Path, name: str) -> None:
    """Never the ledger itself, nor a link that the user made."""
    path, link = tmp_path / name, tmp_path / ".private-gsd-backup.db"
    Ledger(path, create=True).close()
    link.hardlink_to(path)
    with pytest.raises(LedgerError, match="second name"):
        Ledger(path)
    assert path.exists()
    assert link.exists()
    with pytest.raises(LedgerError, match="is a name for a ledger that is being made"):
        Ledger(tmp_path / f".private-gsd-{'0' * 16}", create=True)


def test_a_link_that_leads_to_another_ledger_by_now(tmp_path: Path) -> None:
    for name in ("one.db", "two.db"):
        with Ledger(tmp_path / name, create=True) as made:
            made.add_dataset("d", small())
    link = tmp_path / "link.db"
    link.symlink_to("one.db")
    with Ledger(link) as opened:
        pay(opened)
        link.unlink()
        link.symlink_to("two.db")
        with pytest.raises(LedgerError, match="another put in its place"):
            pay(opened)


def test_statistics_of_a_tool_do_no_harm(path: Path) -> None:
    truth = damaged_ledger(path) and seen_in(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("ANALYZE")
    assert seen_in(path) == truth


@pytest.mark.parametrize("groups", ["not json", "5", "null", "[1]"])
def test_a_forged_charge_is_one_line(path: Path, groups: str) -> None:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        with ledger.transaction("IMMEDIATE") as connection:
            append(connection, "charges", 1, "d", "r", "now", "m", groups, 1)
        with pytest.raises(LedgerError, match="charge 1 is not what a ledger writes"):
            ledger.charges("d")


def test_mount_points_are_read_as_the_system_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    line = rb"36 35 98:0 /mnt1 /a\040b\134c rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
    monkeypatch.setattr(Path, "read_bytes", lambda _: line + b"\n")
    assert module.mount_points(Path("l.db")) == {Path("/a b\\c")}
