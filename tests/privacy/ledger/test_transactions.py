"""Transactions: exact under races, deaths, full disks and files that are gone."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.ledger import storage
from private_gsd.privacy.ledger.entries import add_charge
from private_gsd.privacy.ledger.ledger import Ledger
from tests.privacy.ledger.ledger_worker import STEPS, UNITS
from tests.privacy.ledger.ledgers import half_written, pay, small
from tests.privacy.ledger.processes import Worker, race, workers
from tests.windows import removes_open_files

ROUNDS = 200
KILLS = 60


def test_two_processes_race_for_the_last_of_a_budget(path: Path) -> None:
    """Two hundred times: one of them gets it, the other is refused.

    Half of the times they dawdle between the statements, so that any gap between checking and
    writing would be hit.
    """
    with Ledger(path, create=True) as ledger:
        for number in range(ROUNDS):
            ledger.add_dataset(f"d{number}", small(UNITS))
        wins = [0, 0]
        with workers(2, "race", path) as pair:
            for number in range(ROUNDS):
                answers = race(pair, dataset=f"d{number}", units=UNITS // 2 + 1, dawdle=number % 2)
                assert sorted(key for answer in answers for key in answer) == ["refused", "won"]
                (charge,) = ledger.charges(f"d{number}")
                winner = next(i for i in (0, 1) if "won" in answers[i])
                assert charge.id == answers[winner]["won"]
                wins[winner] += 1
    assert min(wins) > 0  # else they did not race


def test_threads_race(path: Path) -> None:
    """Threads that share a ledger, and others with ledgers of their own on the same file."""
    paid: list[int] = []
    begin = threading.Barrier(8)

    def spend(ledger: Ledger) -> None:
        begin.wait()
        try:
            while True:
                paid.append(pay(ledger, 7).id)
        except BudgetError:
            pass

    with Ledger(path, create=True) as shared, Ledger(path) as own, Ledger(path) as other:
        shared.add_dataset("d", small(700 + 6))
        threads = [
            threading.Thread(target=spend, args=(ledger,)) for ledger in [shared] * 6 + [own, other]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(paid) == [charge.id for charge in shared.charges("d")] == [*range(1, 101)]
        assert shared.account("d").remaining == 6


def test_opening_twice_in_a_process_keeps_the_locks(path: Path) -> None:
    """Closing a file drops a process's locks on it, if SQLite does not know: charges vanish."""
    with Ledger(path, create=True) as first:
        first.add_dataset("d", small())
        pay(first)
        Ledger(path, create=True).close()
        Ledger(path, read_only=True).close()
        with workers(1, "race", path) as (worker,):
            assert race([worker], dataset="d", units=UNITS, dawdle=0) == [{"won": 2}]
        assert pay(first).id == 3
    with Ledger(path, create=True) as again:
        assert [charge.id for charge in again.charges("d")] == [1, 2, 3]


def test_a_forked_process_must_open_its_own(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(LedgerError, match="open it anew"):
            pay(ledger)
        ledger.close()
    assert pay(ledger).id == 1


def released_ids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_killed_at_every_step(path: Path) -> None:
    """Before its commit a charge is not there, after it is; and it is before any release."""
    released = path.with_name("released")
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small(10**9))
    with workers(1, "die", path, released) as (worker,):
        for step in STEPS[:-1]:
            with Ledger(path, create=True) as ledger:
                before = len(ledger.charges("d"))
            outputs = len(released_ids(released))
            worker.say(step)
            worker.hear()
            assert worker.hear() == {"status": signal.SIGKILL}
            with Ledger(path, create=True) as ledger:
                ids = [charge.id for charge in ledger.charges("d")]
            committed = step in ("charged", "released")
            assert len(ids) == before + committed, step
            assert len(released_ids(released)) == outputs + (step == "released"), step
            assert set(released_ids(released)) <= set(ids)


@pytest.mark.slow
def test_killed_at_random_moments(path: Path) -> None:
    released = path.with_name("released")
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small(10**12))
    moments = random.Random(7)
    with workers(1, "die", path, released) as (worker,):
        quickest = 0.05
        for number in range(KILLS):
            worker.say("never")
            pid = worker.hear()["pid"]
            start = time.monotonic()
            if number < 3:  # how long they take to begin, on this disk
                before = len(released_ids(released))
                while len(released_ids(released)) == before:
                    assert time.monotonic() < start + 30
                quickest = min(quickest, time.monotonic() - start)
            else:
                time.sleep(moments.uniform(0, 3 * quickest))
            os.kill(pid, signal.SIGKILL)
            assert worker.hear() == {"status": signal.SIGKILL}
            if moments.random() < 0.5:  # else the next one finds what this one left
                with Ledger(path, create=True) as ledger:
                    assert set(released_ids(released)) <= {c.id for c in ledger.charges("d")}
    with Ledger(path, create=True) as ledger:
        ids = {charge.id for charge in ledger.charges("d")}
        assert ledger.account("d").spent == len(ids) * UNITS
        pay(ledger)
    out = released_ids(released)
    assert set(out) <= ids
    assert 3 <= len(out) == len(set(out))  # they did work in between
    assert len(ids) - len(out) <= KILLS  # each died with one unreleased charge at most
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_full_disk(ledger: Ledger, path: Path) -> None:
    with ledger.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 6")
    paid = []
    with pytest.raises(LedgerError) as caught:
        while True:
            paid.append(pay(ledger, 1, groups=["g" * 900]))
    assert str(caught.value).startswith(f"{path}: the disk is full; make room and try again; ")
    assert "nothing may be released" in str(caught.value)
    assert ledger.charges("d") == paid != []
    ledger.close()
    with Ledger(path, create=True) as again:
        assert again.charges("d") == paid
        pay(again, 1, groups=["g" * 9000])
        assert again.account("d").spent == len(paid) + 1


@pytest.mark.slow
def test_a_file_that_cannot_grow(path: Path) -> None:
    """The system refuses a write in earnest, in the middle of a transaction."""
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small(10**9))
    for more in range(20_000, 32_000, 3_100):  # where the write stops short, each time elsewhere
        answer = Worker("run_out_of_disk", path, str(path.stat().st_size + more))
        heard = answer.hear()
        answer.process.communicate()
        assert heard["failed"].startswith(
            f"{path}: the disk could not be read or written; is it full, or failing?"
        )
        assert heard["paid"]
        with Ledger(path, create=True) as ledger:
            ids = [charge.id for charge in ledger.charges("d")]
            assert ids == heard["seen"]
            assert ids[-len(heard["paid"]) :] == heard["paid"]
            assert pay(ledger).id == ids[-1] + 1


def test_a_lock_that_is_never_released(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "BUSY_SECONDS", 0.05)
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert ledger.account("d").spent == 0  # reading does not wait
            with pytest.raises(LedgerError, match="another process has locked it"):
                pay(ledger)
        assert pay(ledger).id == 1


def test_an_interruption_leaves_nothing_behind(ledger: Ledger, path: Path) -> None:
    """Between the insert and the commit: the charge is undone, and the lock let go."""
    with pytest.raises(KeyboardInterrupt), ledger.transaction("IMMEDIATE") as connection:
        add_charge(connection, path, ("d", "r", "m", ["g"], 1))
        raise KeyboardInterrupt
    assert ledger.charges("d") == []
    assert pay(ledger).id == 1


def test_what_a_dead_process_left_half_written_is_undone(path: Path) -> None:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
    half_written(path)
    assert Path(f"{path}-journal").stat().st_size > 0
    with Ledger(path, read_only=True) as ledger:
        assert ledger.account("d").spent == 5
    journal = Path(f"{path}-journal")
    assert not journal.exists() or not journal.stat().st_size
    half_written(path)
    Path(f"{path}-journal").unlink()  # a copy without it
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path)


def test_a_charge_is_in_the_file_when_it_is_made(path: Path) -> None:
    """A process that dies leaves nothing beside the ledger that a copy could lack."""
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
        assert [each for each in path.parent.iterdir() if each.stat().st_size] == [path]
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
    with Ledger(copy) as ledger:
        assert ledger.account("d").spent == 5


@removes_open_files
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


@removes_open_files
def test_a_ledger_that_is_removed_during_a_charge_does_not_pay(ledger: Ledger, path: Path) -> None:
    with (
        pytest.raises(LedgerError, match="nothing may be released"),
        ledger.transaction("IMMEDIATE") as connection,
    ):
        add_charge(connection, path, ("d", "r", "m", ["g"], 1))
        path.unlink()


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
