"""Reservations: what is reserved, who may commit what was drawn, and no total is overspent."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from private_gsd.errors import BudgetError, LedgerError, NotCommittedError
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation, open_reservations

TOTAL = 1000


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db", create=True) as opened:
        for name in ("d", "e"):
            opened.add_dataset(name, RhoBudget(TOTAL, 1e-6))
        yield opened


def run_of(ledger: Ledger, name: str = "r", attempt: str = "me", dataset: str = "d") -> Reservation:
    return Reservation(ledger, dataset, name, attempt)


def pay(run: Reservation, step: str, units: int) -> None:
    run.charge(step, units, "noise", ["all"])


def test_what_is_reserved_is_nobody_elses(ledger: Ledger) -> None:
    run = run_of(ledger)
    assert not run_of(ledger).exists
    run.reserve(600)
    run.reserve(600)  # the same again is no error
    assert run.exists
    account = ledger.account("d")
    assert (account.spent, account.reserved, account.remaining) == (0, 600, 400)
    with pytest.raises(BudgetError, match="is reserved for runs not finished"):
        ledger.charge("d", 401, mechanism="noise", groups=["all"], run="other")
    with pytest.raises(BudgetError):
        run_of(ledger, "other").reserve(401)
    ledger.charge("d", 400, mechanism="noise", groups=["all"], run="other")
    pay(run, "a", 250)
    assert open_reservations(ledger, "d") == [("r", 350 / 2**52)]
    with pytest.raises(BudgetError):
        pay(run, "b", 351)
    pay(run, "b", 350)
    account = ledger.account("d")
    assert (account.spent, account.reserved, account.remaining) == (1000, 0, 0)
    assert open_reservations(ledger, "d") == []


def test_a_reservation_cannot_change(ledger: Ledger) -> None:
    run_of(ledger).reserve(10)
    with pytest.raises(LedgerError, match="began with another dataset or budget"):
        run_of(ledger).reserve(11)
    with pytest.raises(LedgerError, match="began with another dataset or budget"):
        run_of(ledger, dataset="e").reserve(10)
    for stranger in (run_of(ledger, dataset="e"), run_of(ledger, "unknown")):
        with pytest.raises(LedgerError, match="has no run"):
            pay(stranger, "a", 1)
        with pytest.raises(LedgerError, match="has no run"):
            stranger.cancel()
    pay(run_of(ledger), "a", 3)
    with pytest.raises(LedgerError, match="has paid for something else at 'a'"):
        pay(run_of(ledger), "a", 4)
    assert ledger.account("d").spent == 3


def test_the_last_attempt_at_a_step_may_commit(ledger: Ledger) -> None:
    first, second = run_of(ledger, attempt="first"), run_of(ledger, attempt="second")
    first.reserve(10)
    pay(first, "a", 10)
    pay(second, "a", 10)  # under the same charge
    assert len(ledger.charges("d")) == 1
    with pytest.raises(NotCommittedError, match="another process has resumed"):
        first.commit("a", "mine")
    assert second.committed("a") is None
    second.commit("a", "theirs")
    assert first.committed("a") == "theirs"
    assert second.committed_at("theirs") == 1
    assert second.committed_at("mine") == 0
    for late in (first, second):
        with pytest.raises(NotCommittedError):
            late.commit("a", "again")
        with pytest.raises(LedgerError, match="was drawn and committed, and is not in the release"):
            pay(late, "a", 10)
    with pytest.raises(NotCommittedError):
        first.commit("never paid", "x")
    assert [charge.run for charge in first.charges()] == ["r a"]


def test_a_cancelled_reservation_can_be_spent_by_others_alone(ledger: Ledger) -> None:
    run = run_of(ledger)
    run.reserve(900)
    pay(run, "a", 100)
    assert run.cancel() == 800
    assert run.cancel() == 0
    assert ledger.account("d").remaining == 900
    with pytest.raises(LedgerError, match="the reservation of run 'r' was cancelled"):
        pay(run, "b", 1)
    run_of(ledger, "next").reserve(900)


def test_the_tables_of_reservations_only_grow(ledger: Ledger) -> None:
    run = run_of(ledger)
    run.reserve(10)
    pay(run, "a", 10)
    run.commit("a", "x")
    run.cancel()
    for statement in (
        "UPDATE reservations SET units = 1",
        "DELETE FROM reservations",
        "DELETE FROM commits",
        "UPDATE commits SET digest = 'y'",
        "INSERT OR REPLACE INTO commits VALUES (1, 'y', 'now')",
        "DELETE FROM attempts",
        "DELETE FROM steps",
        "INSERT OR REPLACE INTO steps VALUES (1, 'r', 'b')",
        "DELETE FROM cancellations",
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
                    run.reserve(units)
                case 1:
                    pay(run, rng.choice("abc"), units)
                case 2:
                    run.cancel()
                case _:
                    ledger.charge("d", units, mechanism="noise", groups=["all"], run="plain")
        except (BudgetError, LedgerError):
            pass
        account = ledger.account("d")
        assert account.spent == sum(charge.units for charge in ledger.charges("d")) <= TOTAL
        assert account.reserved >= 0
        assert account.remaining >= 0
