"""The ledger: exact, atomic, durable, and no other file than a ledger."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import INSECURE, MAX_RHO, UNITS_PER_RHO, RhoBudget, epsilon_of
from private_gsd.privacy.ledger import ledger as ledger_module
from private_gsd.privacy.ledger import storage as module
from private_gsd.privacy.ledger.ledger import Account, Charge, Ledger
from tests.privacy.ledger.ledger_worker import STEPS, UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKER = Path(__file__).with_name("ledger_worker.py")
ROUNDS = 200
KILLS = 60


def small(units: int = 10 * UNITS) -> RhoBudget:
    return RhoBudget(units, 1e-9, "paper")


def pay(ledger: Ledger, units: int = UNITS, dataset: str = "d", **words: Any) -> Charge:
    return ledger.charge(
        dataset, units, **{"mechanism": "discrete gaussian", "groups": ["age"], "run": "r", **words}
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        yield ledger


class Worker:
    """Another process, and a conversation with it."""

    def __init__(self, *words: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, WORKER, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, line: str) -> None:
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
        worker.tell(line)
    return [worker.hear() for worker in pair]


# Amounts


@pytest.mark.parametrize("parts", [1, 3, 7, 1000])
def test_a_split_budget_can_be_spent_to_the_last_unit(path: Path, parts: int) -> None:
    budget = RhoBudget.from_rho(0.1, delta=1e-6)
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", budget)
        split = budget.split([1 / 3] * parts)
        for units in split:
            pay(ledger, units)
        rest = budget.units - sum(split)
        assert ledger.account("d").remaining == rest < parts + 1
        with pytest.raises(BudgetError):
            pay(ledger, rest + 1)
        if rest:
            pay(ledger, rest)
        with pytest.raises(BudgetError):
            pay(ledger, 1)
        assert ledger.account("d").spent == budget.units
        assert sum(charge.units for charge in ledger.charges("d")) == budget.units


def test_the_largest_budget_is_exact(path: Path) -> None:
    most = int(MAX_RHO) * UNITS_PER_RHO  # far over 2^53: no float tells it from one unit less
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("less", small(most - 1))
        with pytest.raises(BudgetError, match=r"rho 2.22045e-16 over the rho 1000 "):
            pay(ledger, most, "less")
        ledger.add_dataset("d", small(most))
        pay(ledger, most - 1)
        with pytest.raises(BudgetError):
            pay(ledger, 2)
        pay(ledger, 1)
        assert ledger.account("d").remaining == 0
        with pytest.raises(BudgetError):
            pay(ledger, most)
        with pytest.raises(BudgetError, match="protects nobody"):
            pay(ledger, 10**400)


@given(total=st.integers(1, 50) | st.integers(2**54, 2**61), data=st.data())
def test_charges_are_taken_exactly_while_they_fit(
    tmp_path_factory: pytest.TempPathFactory, total: int, data: st.DataObject
) -> None:
    """Against a sum in Python; amounts near what remains are the interesting ones."""
    folder = tmp_path_factory.mktemp("exact")
    with Ledger(folder / "ledger.db", create=True) as ledger:
        ledger.add_dataset("d", small(total))
        left = total
        for _ in range(6):
            units = data.draw(st.integers(left, left + 1) | st.integers(1, total))
            if units == 0:
                continue
            if units <= left:
                pay(ledger, units)
                left -= units
            else:
                with pytest.raises(BudgetError):
                    pay(ledger, units)
            assert ledger.account("d").remaining == left


@pytest.mark.parametrize("units", [0, -1, 1.0, True, "1", None])
def test_amounts_that_are_none(ledger: Ledger, units: Any) -> None:
    with pytest.raises(BudgetError, match="a whole number of units over 0"):
        pay(ledger, units)
    assert ledger.charges("d") == []


def test_a_refusal_says_what_was_asked_what_remains_and_what_to_do(path: Path) -> None:
    budget = RhoBudget.from_rho(0.01, delta=1e-6)
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("census", budget)
        pay(ledger, 3 * budget.units // 4, "census")
        with pytest.raises(BudgetError) as caught:
            pay(ledger, budget.units // 2, "census")
        assert len(ledger.charges("census")) == 1
    said = str(caught.value)
    assert said.startswith(f"{path}: dataset 'census': ")
    for rho in (0.005, 0.0025, 0.01):
        assert f"rho {rho:g} (epsilon {epsilon_of(rho, 1e-6):.6g})" in said
    assert "rho 0.0025 over the" in said
    assert "Nothing was charged or released for it. Measure less, or with more noise" in said


# What is written


def test_a_charge_is_kept_as_it_was_made(path: Path) -> None:
    before = datetime.now(UTC)
    groups = ("age × sex", "", 'a "quoted"\nvalue', "\udcff")
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("Größe 1", small(), "add-remove")
        made = pay(ledger, 5, "Größe 1", mechanism="noisy top-k", groups=groups, run="run 7")
    with Ledger(path) as ledger:
        assert ledger.charges("Größe 1") == [made]
        assert ledger.accounts() == [Account("Größe 1", small(), "add-remove", 5)]
        assert ledger.account("Größe 1").epsilon_spent == epsilon_of(made.rho, 1e-9, "paper")
    assert made == Charge(1, "Größe 1", "run 7", made.at, "noisy top-k", groups, 5)
    assert made.rho * UNITS_PER_RHO == 5
    assert made.at.endswith("+00:00")
    assert len(made.at) == len("2026-01-01T00:00:00.000000+00:00")
    assert before <= datetime.fromisoformat(made.at) <= datetime.now(UTC)


def test_accounts_are_apart(ledger: Ledger) -> None:
    ledger.add_dataset("a", small(5))
    pay(ledger, 3, "a")
    pay(ledger, 7)
    assert [(a.dataset, a.spent, a.remaining) for a in ledger.accounts()] == [
        ("a", 3, 2),
        ("d", 7, 10 * UNITS - 7),
    ]
    assert [charge.units for charge in ledger.charges("a")] == [3]
    assert ledger.account("a").epsilon_spent > 0


def test_nothing_spent_is_epsilon_zero(ledger: Ledger) -> None:
    assert ledger.account("d").epsilon_spent == 0.0


def test_a_dataset_again(ledger: Ledger) -> None:
    pay(ledger, 4)
    assert ledger.add_dataset("d", small()).spent == 4
    for budget, neighbours in (
        (small(7), "replace-one"),
        (RhoBudget(10 * UNITS, 1e-8, "paper"), "replace-one"),
        (RhoBudget(10 * UNITS, 1e-9, "zcdp"), "replace-one"),
        (small(), "add-remove"),
    ):
        with pytest.raises(LedgerError) as caught:
            ledger.add_dataset("d", budget, neighbours)
        for terms in ((small(), "replace-one"), (budget, neighbours)):
            assert ledger_module._terms(Account("d", *terms, 0)) in str(caught.value)
    assert ledger.accounts() == [Account("d", small(), "replace-one", 4)]


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\0b", "\udcff", 5])
def test_names_that_are_no_line_of_text(ledger: Ledger, name: Any) -> None:
    for use in (
        lambda: ledger.add_dataset(name, small()),
        lambda: ledger.account(name),
        lambda: pay(ledger, 1, name),
        lambda: pay(ledger, 1, run=name),
        lambda: pay(ledger, 1, mechanism=name),
    ):
        with pytest.raises(LedgerError, match="must be a line of text"):
            use()
    assert ledger.charges("d") == []


def test_other_mistakes(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"ledger.db: no dataset 'dd' \(did you mean 'd'\?\)"):
        pay(ledger, 1, "dd")
    with pytest.raises(LedgerError, match="groups must be a sequence of text"):
        pay(ledger, 1, groups="age")
    with pytest.raises(LedgerError, match="neighbours must be one of"):
        ledger.add_dataset("e", small(), "next-door")
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="was closed"):
        ledger.accounts()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET units = 1",
        "UPDATE charges SET run = 'other'",
        "DELETE FROM charges",
        "UPDATE datasets SET units = units + 1",
        "DELETE FROM datasets",
        "INSERT OR REPLACE INTO charges VALUES (1, 'd', 'r', '', 'm', '[]', 1)",
        "INSERT OR IGNORE INTO charges VALUES (1, 'd', 'r', '', 'm', '[]', 1)",
        "REPLACE INTO datasets VALUES ('d', 1000000, 0.5, 'paper', 'replace-one', '')",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', 9901)",
        "INSERT INTO charges VALUES (9, 'nobody', 'r', '', 'm', '[]', 1)",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', 0)",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', -5)",
        "INSERT INTO charges VALUES (9, 'd', 'r', '', 'm', '[]', 0.5)",
        "INSERT INTO charges VALUES (-1, 'd', 'r', '', 'm', '[]', 1)",
        "INSERT INTO datasets VALUES ('e', -1, 0.5, 'paper', 'replace-one', '')",
    ],
)
def test_no_tool_can_take_back_or_overspend(ledger: Ledger, path: Path, statement: str) -> None:
    made = pay(ledger, 100)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:  # no pragma of ours set
        with pytest.raises(sqlite3.IntegrityError):
            other.execute(statement)
        other.execute("INSERT INTO charges VALUES (2, 'd', 'r', '', 'm', '[]', 9900)")  # fits
    assert ledger.charges("d")[0] == made
    assert ledger.account("d").budget == small()
    assert ledger.account("d").remaining == 0


# Races


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


def test_two_processes_race_to_create_a_ledger(tmp_path: Path) -> None:
    with workers(2, "race_to_create") as pair:
        for number in range(20):
            path = tmp_path / f"{number}.db"
            answers = race(pair, path=str(path))
            assert {answer.get("won", str(answer)) for answer in answers} == {1, 2}
            with Ledger(path) as ledger:
                assert ledger.account("d").spent == 2
    assert not list(tmp_path.glob(".*"))  # no drafts


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


# Deaths


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
            worker.tell(step)
            worker.hear()
            assert worker.hear() == {"status": signal.SIGKILL}
            with Ledger(path, create=True) as ledger:
                ids = [charge.id for charge in ledger.charges("d")]
            committed = step in ("charged", "released")
            assert len(ids) == before + committed, step
            assert len(released_ids(released)) == outputs + (step == "released"), step
            assert set(released_ids(released)) <= set(ids)


def test_killed_at_random_moments(path: Path) -> None:
    released = path.with_name("released")
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small(10**12))
    moments = random.Random(7)
    with workers(1, "die", path, released) as (worker,):
        quickest = 0.05
        for number in range(KILLS):
            worker.tell("never")
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


# Disks


def test_a_full_disk(ledger: Ledger, path: Path) -> None:
    assert ledger._connection is not None
    ledger._connection.execute("PRAGMA max_page_count = 6")
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
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.05)
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert ledger.account("d").spent == 0  # reading does not wait
            with pytest.raises(LedgerError, match="another process has locked it"):
                pay(ledger)
        assert pay(ledger).id == 1


def test_an_interruption_leaves_nothing_behind(ledger: Ledger) -> None:
    """Between the insert and the commit: the charge is undone, and the lock let go."""
    assert ledger._connection is not None
    real = ledger._connection

    class Interrupted:
        @property
        def in_transaction(self) -> bool:
            return real.in_transaction

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            if statement == "COMMIT":
                raise KeyboardInterrupt
            return real.execute(statement, *values)

    ledger._connection = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        pay(ledger)
    ledger._connection = real
    assert ledger.charges("d") == []
    assert pay(ledger).id == 1


def script(code: str, *words: str | Path) -> list[Any]:
    """What some code prints, as JSON, run as a user whom read-only files bind."""
    command = [sys.executable, WORKER, "without_rights", sys.executable, "-c", code, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("root here cannot give up its rights")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


TRY = """
import json, sys
from private_gsd.errors import LedgerError
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger

def look(path):
    with Ledger(path, read_only=True) as ledger:
        return ledger.account("d").spent

def pay(path):
    with Ledger(path, create=True) as ledger:
        return ledger.charge("d", 1, mechanism="m", groups=[], run="r").id

for use in (look, pay):
    for path in sys.argv[1:]:
        try:
            print(json.dumps(use(path)))
        except LedgerError as error:
            print(json.dumps(str(error)))
"""


def half_written(path: Path) -> None:
    """A ledger as a process leaves it that dies while it writes a charge."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        other.execute("BEGIN IMMEDIATE")
        for number in range(50, 90):
            values = (number, "d", "r", "now", "m", json.dumps(["g" * 400]), 1)
            other.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        for name in ("", "-journal"):
            shutil.copy(f"{path}{name}", f"{path}{name}.kept")
    for name in ("", "-journal"):
        Path(f"{path}{name}.kept").rename(f"{path}{name}")


def test_what_a_dead_process_left_half_written_is_undone(path: Path) -> None:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
    half_written(path)
    assert Path(f"{path}-journal").stat().st_size > 0
    with Ledger(path, read_only=True) as ledger:
        assert ledger.account("d").spent == 5
    assert not Path(f"{path}-journal").exists()
    half_written(path)
    Path(f"{path}-journal").unlink()  # a copy without it
    with pytest.raises(LedgerError, match="damaged"):
        Ledger(path)


def test_read_only_files_and_folders(tmp_path: Path) -> None:
    original = tmp_path / "ledger.db"
    with Ledger(original, create=True) as ledger:
        ledger.add_dataset("d", small())
        pay(ledger, 5)
    file, folder, half = (tmp_path / name / "ledger.db" for name in ("file", "folder", "half"))
    for copy in (file, folder, half):
        copy.parent.mkdir()
        shutil.copy(original, copy)
    half_written(half)
    for copy in (file, folder, half):
        for each in copy.parent.iterdir():
            each.chmod(0o444)
        if copy is not file:
            copy.parent.chmod(0o555)
    new = folder.with_name("new.db")
    seen = script(TRY, file, folder, half, new)
    for copy in (folder, half):
        copy.parent.chmod(0o755)
    looked, paid = seen[:4], seen[4:]
    assert looked[:2] == [5, 5]
    assert looked[2].startswith(f"{half}: it is read-only")  # what is half written must be undone
    assert looked[3].startswith(f"{new}: no such ledger")
    for copy, said in zip((file, folder, half, new), paid, strict=True):
        assert said.startswith(f"{copy}: it is read-only") or "cannot be written to" in said
    assert not new.exists()
    for copy in (file, folder):
        with Ledger(copy) as ledger:
            assert ledger.account("d").spent == 5


def test_looking_writes_nothing(ledger: Ledger, path: Path) -> None:
    ledger.close()
    before = path.read_bytes()
    with Ledger(path, read_only=True) as reader:
        for use in (lambda: pay(reader), lambda: reader.add_dataset("e", small())):
            with pytest.raises(LedgerError, match="opened only to be read"):
                use()
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# Budgets stated by the curve of Gaussian noise


def test_other_noise_than_gaussian_is_refused(path: Path) -> None:
    """By us, and by the file itself."""
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", RhoBudget.from_rho(0.5, 1e-6, "gdp"))
        ledger.add_dataset("any", RhoBudget.from_rho(0.5, 1e-6))
        for mechanism in (
            "noisy top-k",
            "laplace",
            "Discrete Gaussian",
            "discrete gaussian, or not",
        ):
            with pytest.raises(BudgetError, match="says nothing of"):
                ledger.charge("d", 1, mechanism=mechanism, groups=["g"], run="r")
            ledger.charge("any", 1, mechanism=mechanism, groups=["g"], run="r")
        ledger.charge("d", 1, mechanism="discrete gaussian", groups=["g"], run="r")
        assert ledger.account("d").spent == 1
        ledger.add_dataset("seeded", RhoBudget.from_rho(0.5, 1e-6, "gdp"))
        pay(ledger, 1, "seeded", mechanism=f"discrete gaussian ({INSECURE})")
    with closing(sqlite3.connect(path)) as other:
        values = "VALUES ('d', 'r', 'now', ?, '[]', 1)"
        insert = f"INSERT INTO charges (dataset, run, at, mechanism, groups, units) {values}"
        with pytest.raises(sqlite3.IntegrityError, match="not Gaussian"):
            other.execute(insert, ("noisy top-k",))
        other.execute(insert, ("discrete gaussian",))


@pytest.mark.parametrize("first", [0, 1])
def test_noise_from_a_seed_and_other_noise_do_not_share_an_account(path: Path, first: int) -> None:
    """Or a record that was published, which speaks of now and later, would become false."""
    kinds = ["discrete gaussian", f"discrete gaussian ({INSECURE})"]
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        ledger.add_dataset("e", small())
        pay(ledger, 1, mechanism=kinds[first])
        with pytest.raises(BudgetError, match="what was promised of it would become false"):
            pay(ledger, 1, mechanism=kinds[1 - first])
        pay(ledger, 1, mechanism=kinds[first])
        pay(ledger, 1, "e", mechanism=kinds[1 - first])
        assert ledger.account("d").spent == 2
    with closing(sqlite3.connect(path)) as other:
        values = "VALUES ('d', 'r', 'now', ?, '[]', 1)"
        insert = f"INSERT INTO charges (dataset, run, at, mechanism, groups, units) {values}"
        with pytest.raises(sqlite3.IntegrityError, match="seeded noise beside other noise"):
            other.execute(insert, (kinds[1 - first],))


def test_a_local_accountant_refuses_it_too() -> None:
    accountant = LocalAccountant(RhoBudget.from_rho(0.5, 1e-6, "gdp"))
    with pytest.raises(BudgetError, match="conversion 'gdp'"):
        accountant.charge(1, "noisy top-k", ["g"], "replace-one")
    accountant.charge(1, "discrete gaussian", ["g"], "replace-one")
    assert accountant.spent == 1


def test_what_gaussian_noise_spends(path: Path) -> None:
    """Said by its own curve; and dp_accounting comes to the same from the charges."""
    budget = RhoBudget.from_epsilon(1.0, 1e-6, "gdp")
    assert budget.rho > 1.05 * RhoBudget.from_epsilon(1.0, 1e-6).rho
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", budget)
        for part in (2, 3, 6):
            pay(ledger, budget.units // part, mechanism="discrete gaussian")
        record = ledger.privacy_record("d")
        accountant = PLDAccountant()
        accountant.compose(ledger.to_dp_accounting("d"))
    assert record["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-6)
    assert accountant.get_epsilon(1e-6) == pytest.approx(1.0, rel=2e-3)
    assert "and, since its noise is Gaussian, (epsilon, delta)" in record["guarantee"]
    assert "Balle and Wang" in record["conversion_in_words"]


# Files that are no ledgers


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE charges (units)")


def other_database_in_use(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE charges (units)")
        for name in ("", "-wal"):
            shutil.copy(f"{path}{name}", f"{path}{name}.kept")
    for name in ("", "-wal"):
        Path(f"{path}{name}.kept").rename(f"{path}{name}")


def of_version(path: Path, version: int) -> None:
    Ledger(path, create=True).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")


def used_ledger(path: Path) -> bytearray:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        for _ in range(100):
            pay(ledger, 1, groups=["g" * 200])
    return bytearray(path.read_bytes())


def cut(path: Path, size: int) -> None:
    path.write_bytes(used_ledger(path)[:size])


def scribbled(path: Path) -> None:
    content = used_ledger(path)
    content[2 * 4096 + 8 : 2 * 4096 + 400] = random.Random(3).randbytes(392)
    path.write_bytes(content)


def without_a_trigger(path: Path) -> None:
    used_ledger(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TRIGGER charges_delete")
        other.execute("DELETE FROM charges")
        other.commit()


def spoiled_amount(path: Path) -> None:
    used_ledger(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        other.execute("DROP TRIGGER charges_update")
        other.execute("UPDATE charges SET units = -units")
        other.execute(f"CREATE TRIGGER charges_update BEFORE UPDATE ON charges {module._GROWS}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("dataset,units\n" * 500), "not a ledger"),
        (lambda path: path.write_text("x"), "not a ledger"),
        (lambda path: path.touch(), "not a ledger"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + b"\1" * 5000), "not a ledger"),
        (lambda path: path.mkdir(), "not a file"),
        (os.mkfifo, "not a file"),
        (lambda path: path.symlink_to("/dev/null"), "not a file"),
        (lambda path: path.symlink_to(path), "not the name of a file"),
        (other_database, "not a ledger; choose another file"),
        (other_database_in_use, "not a ledger; choose another file"),
        (
            lambda path: of_version(path, module.VERSION + 1),
            f"a ledger of format {module.VERSION + 1}, and this private-gsd reads format",
        ),
        (lambda path: of_version(path, module.VERSION - 1), "; use the private-gsd that made it"),
        (lambda path: cut(path, 60), "not a ledger"),
        (lambda path: cut(path, 100), "damaged"),
        (lambda path: cut(path, 4096), "damaged"),
        (lambda path: cut(path, 5000), "damaged"),
        (lambda path: cut(path, 5 * 4096), "damaged"),
        (scribbled, "damaged"),
        (without_a_trigger, "damaged"),
        (spoiled_amount, "damaged"),
    ],
)
def test_not_a_ledger(path: Path, make: Callable[[Path], object], message: str) -> None:
    make(path)

    def state() -> dict[str, bytes | None]:
        return {p.name: p.read_bytes() if p.is_file() else None for p in path.parent.iterdir()}

    before = state()
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(LedgerError) as caught:
            Ledger(path, **options)
        assert str(path) in str(caught.value)
        assert message in str(caught.value)
        assert state() == before


def test_no_such_ledger(tmp_path: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(LedgerError, match=r"gone.db: no such ledger; make one with"):
            Ledger(tmp_path / "gone.db", **options)
    with pytest.raises(LedgerError, match=r"nowhere/gone.db: there is no folder"):
        Ledger(tmp_path / "nowhere" / "gone.db", create=True)
    with pytest.raises(LedgerError, match="not the name of a file"):
        Ledger(f"{tmp_path}/a\0b", create=True)
    (tmp_path / "text").touch()
    with pytest.raises(LedgerError, match=r"text/gone.db"):
        Ledger(tmp_path / "text" / "gone.db", create=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["text"]


def test_half_a_ledger_is_not_made_a_new_one(path: Path) -> None:
    """SQLite would apply an old -journal to a new file of the same name."""
    Path(f"{path}-journal").write_bytes(b"what a dead process left")
    with pytest.raises(LedgerError, match=r"ledger.db-journal: part of a ledger"):
        Ledger(path, create=True)
    assert not path.exists()


def test_odd_names_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a?mode=memory", "50%25 #1", ":memory:", "Größe", "-"):
        with Ledger(name, create=True) as ledger:
            ledger.add_dataset("d", small())
        assert (tmp_path / name).stat().st_size > 4096
    (tmp_path / "link").symlink_to("-")
    with Ledger("link") as ledger:
        assert ledger.account("d").spent == 0
    assert len(list(tmp_path.iterdir())) == 6


# What is told to others


def test_a_privacy_record(path: Path) -> None:
    budget = RhoBudget.from_rho(0.25, delta=1e-6)
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("census", budget, "add-remove")
        charge = pay(ledger, budget.units // 4, "census", groups=["age × sex", "income"])
        record = ledger.privacy_record("census")
    assert json.loads(json.dumps(record)) == record
    for key, rho in (("total", 0.25), ("spent", 0.0625), ("remaining", 0.1875)):
        assert record[key] == {
            "units": rho * UNITS_PER_RHO,
            "rho": rho,
            "epsilon": epsilon_of(rho, 1e-6, "zcdp"),
        }
    assert record["charges"] == [
        {
            "id": 1,
            "at": charge.at[:10],  # how long a run takes may depend on the data
            "run": "r",
            "mechanism": "discrete gaussian",
            "groups": ["age × sex", "income"],
            "units": budget.units // 4,
            "rho": 0.0625,
        }
    ]
    assert (record["dataset"], record["delta"], record["conversion"]) == ("census", 1e-6, "zcdp")
    assert record["neighbours"] == "add-remove"
    assert "Proposition 12" in record["conversion_in_words"]
    for words in (
        "with rho = 0.25, which is the total of the dataset's account",
        f"epsilon = {epsilon_of(0.25, 1e-6)!r} and delta = 1e-06",
        "What is spent so far, rho = 0.0625, is accounting, and no guarantee",
        "one has all rows of the other and one more",
    ):
        assert words in record["guarantee"]


def test_dp_accounting_comes_to_the_same_epsilon(path: Path) -> None:
    events = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    budget = RhoBudget.from_rho(0.3, delta=1e-7)
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", budget)
        assert ledger.to_dp_accounting("d") == events.ComposedDpEvent([])
        for units in budget.split([3, 1, 2, 0.1]):
            pay(ledger, units)
        event = ledger.to_dp_accounting("d")
        spent = ledger.account("d").epsilon_spent
    assert [type(part) for part in event.events] == [events.ZCDpEvent] * 4
    orders = [1 + 10 ** (power / 2000) for power in range(-2000, 6000)]
    accountant = rdp.RdpAccountant(orders, events.NeighboringRelation.REPLACE_ONE)
    assert accountant.supports(event)
    accountant.compose(event)
    assert accountant.get_epsilon(1e-7) == pytest.approx(spent, rel=1e-6)


def test_without_dp_accounting(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"pip install 'private-gsd\[accounting\]'"):
        ledger.to_dp_accounting("d")


def test_a_second_name_is_refused(tmp_path: Path) -> None:
    """Each name of a hard-linked file would have charges of its own."""
    with Ledger(tmp_path / "one.db", create=True):
        pass
    os.link(tmp_path / "one.db", tmp_path / "two.db")
    for name in ("one.db", "two.db"):
        with pytest.raises(LedgerError, match="the file has a second name"):
            Ledger(tmp_path / name, create=True)


@pytest.mark.parametrize("name", ["census ", " census", "cafe\u0301"])
def test_names_that_would_pass_for_others(tmp_path: Path, name: str) -> None:
    with (
        Ledger(tmp_path / "ledger.db", create=True) as ledger,
        pytest.raises(LedgerError, match="would pass for"),
    ):
        ledger.add_dataset(name, RhoBudget.from_rho(1.0, 1e-9))
