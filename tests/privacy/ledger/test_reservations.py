"""Runs in a ledger: what is held, who may keep what was drawn, and that no total is overspent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from private_gsd.errors import BudgetError, LedgerError, NotCommittedError
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import LedgerRun, held_by_runs

TOTAL = 1000


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db", create=True) as opened:
        for name in ("d", "e"):
            opened.add_dataset(name, RhoBudget(TOTAL, 1e-6))
        yield opened


def run_of(ledger: Ledger, name: str = "r", attempt: str = "me", dataset: str = "d") -> LedgerRun:
    return LedgerRun(ledger, dataset, name, attempt)


def pay(run: LedgerRun, step: str, units: int) -> None:
    run.charge(step, units, "noise", ["all"])


def test_what_is_held_is_nobody_elses(ledger: Ledger) -> None:
    run = run_of(ledger)
    assert not run_of(ledger).begun
    run.begin(600)
    run.begin(600)  # the same again is no error
    assert run.begun
    account = ledger.account("d")
    assert (account.spent, account.held, account.remaining) == (0, 600, 400)
    with pytest.raises(BudgetError, match="is held for runs not finished"):
        ledger.charge("d", 401, mechanism="noise", groups=["all"], run="other")
    with pytest.raises(BudgetError):
        run_of(ledger, "other").begin(401)
    ledger.charge("d", 400, mechanism="noise", groups=["all"], run="other")
    pay(run, "a", 250)
    assert held_by_runs(ledger, "d") == [("r", 350 / 2**52)]
    with pytest.raises(BudgetError):
        pay(run, "b", 351)
    pay(run, "b", 350)
    account = ledger.account("d")
    assert (account.spent, account.held, account.remaining) == (1000, 0, 0)
    assert held_by_runs(ledger, "d") == []


def test_a_run_is_what_it_began_as(ledger: Ledger) -> None:
    run_of(ledger).begin(10)
    with pytest.raises(LedgerError, match="began with another dataset or budget"):
        run_of(ledger).begin(11)
    with pytest.raises(LedgerError, match="began with another dataset or budget"):
        run_of(ledger, dataset="e").begin(10)
    for stranger in (run_of(ledger, dataset="e"), run_of(ledger, "unknown")):
        with pytest.raises(LedgerError, match="has no run"):
            pay(stranger, "a", 1)
        with pytest.raises(LedgerError, match="has no run"):
            stranger.give_back()
    pay(run_of(ledger), "a", 3)
    with pytest.raises(LedgerError, match="has paid for something else at 'a'"):
        pay(run_of(ledger), "a", 4)
    assert ledger.account("d").spent == 3


def test_the_last_to_begin_a_step_may_keep(ledger: Ledger) -> None:
    first, second = run_of(ledger, attempt="first"), run_of(ledger, attempt="second")
    first.begin(10)
    pay(first, "a", 10)
    pay(second, "a", 10)  # under the same charge
    assert len(ledger.charges("d")) == 1
    with pytest.raises(NotCommittedError, match="another process goes on"):
        first.keep("a", "mine")
    assert second.kept("a") is None
    second.keep("a", "theirs")
    assert first.kept("a") == "theirs"
    assert second.kept_at("theirs") == 1
    assert second.kept_at("mine") == 0
    for late in (first, second):
        with pytest.raises(NotCommittedError):
            late.keep("a", "again")
        with pytest.raises(LedgerError, match="was drawn and kept, and is not in the release"):
            pay(late, "a", 10)
    with pytest.raises(NotCommittedError):
        first.keep("never paid", "x")
    assert [charge.run for charge in first.charges()] == ["r a"]


def test_what_was_given_back_is_free_and_the_run_over(ledger: Ledger) -> None:
    run = run_of(ledger)
    run.begin(900)
    pay(run, "a", 100)
    assert run.give_back() == 800
    assert run.give_back() == 0
    assert ledger.account("d").remaining == 900
    with pytest.raises(LedgerError, match="has given back what it held"):
        pay(run, "b", 1)
    run_of(ledger, "next").begin(900)


def test_the_tables_of_runs_only_grow(ledger: Ledger) -> None:
    run = run_of(ledger)
    run.begin(10)
    pay(run, "a", 10)
    run.keep("a", "x")
    run.give_back()
    for statement in (
        "UPDATE runs SET units = 1",
        "DELETE FROM runs",
        "DELETE FROM kept",
        "UPDATE kept SET digest = 'y'",
        "INSERT OR REPLACE INTO kept VALUES (1, 'y', 'now')",
        "DELETE FROM attempts",
        "DELETE FROM steps",
        "INSERT OR REPLACE INTO steps VALUES (1, 'r', 'b')",
        "DELETE FROM given_back",
    ):
        with pytest.raises(LedgerError, match="only grows"), ledger.transaction() as connection:
            connection.execute(statement)


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_things_overspends(ledger: Ledger, seed: int) -> None:
    rng = random.Random(seed)
    names = ["p", "q", "r"]
    for _ in range(60):
        run = run_of(ledger, rng.choice(names), rng.choice("xy"))
        units = rng.randint(1, 400)
        try:
            match rng.randint(0, 3):
                case 0:
                    run.begin(units)
                case 1:
                    pay(run, rng.choice("abc"), units)
                case 2:
                    run.give_back()
                case _:
                    ledger.charge("d", units, mechanism="noise", groups=["all"], run="plain")
        except (BudgetError, LedgerError):
            pass
        account = ledger.account("d")
        assert account.spent == sum(charge.units for charge in ledger.charges("d")) <= TOTAL
        assert account.held >= 0
        assert account.remaining >= 0
