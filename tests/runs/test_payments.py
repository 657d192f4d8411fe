"""How steps are paid for: from a reservation, of a run or of a sweep, or by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from private_gsd import BudgetError, Ledger, LedgerError
from private_gsd.privacy.accountant import LocalAccountant
from private_gsd.privacy.budget import RhoBudget
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.runs.payments import LedgerPayments, SweepPayments, UnledgeredPayments
from private_gsd.system.interruptions import InterruptGuard

# All of it is reserved.
BUDGET = RhoBudget(100, 1e-6, "zcdp")
CHARGE = ("noisy top-k", ["1 of 3 groups"], "replace-one")


@pytest.fixture
def reservation(tmp_path: Path) -> Iterator[Reservation]:
    with Ledger(tmp_path / "ledger.db", create=True) as ledger:
        ledger.add_dataset("table", BUDGET)
        found = Reservation(ledger, "table", "run", "first")
        found.reserve(BUDGET.units)
        yield found


def test_a_step_is_paid_for_once(reservation: Reservation) -> None:
    payments = LedgerPayments(reservation, InterruptGuard())
    assert payments.name == str(reservation.ledger.path)
    assert payments.paid("select") is None
    accountant = payments.accountant("select")
    assert accountant.conversion == "zcdp"
    first = accountant.charge(30, *CHARGE)
    assert payments.accountant("select").charge(30, *CHARGE) == first
    assert payments.paid("select") == 30
    assert reservation.ledger.account("table").spent == 30
    with pytest.raises(LedgerError, match="has paid for something else"):
        accountant.charge(31, *CHARGE)
    with pytest.raises(BudgetError):
        payments.accountant("measure").charge(71, *CHARGE)
    assert payments.paid("measure") is None


def test_what_is_committed_is_not_drawn_again(reservation: Reservation) -> None:
    payments = LedgerPayments(reservation, InterruptGuard())
    payments.accountant("select").charge(30, *CHARGE)
    assert payments.committed("select") is None
    payments.commit("select", "0123")
    assert payments.committed("select") == "0123"
    with pytest.raises(LedgerError):
        payments.accountant("select").charge(30, *CHARGE)
    with pytest.raises(LedgerError):
        payments.commit("select", "4567")


def test_nothing_is_paid_after_ctrl_c(reservation: Reservation) -> None:
    interruptions = InterruptGuard()
    payments = LedgerPayments(reservation, interruptions)
    with pytest.raises(KeyboardInterrupt):
        interruptions(2, None)
    for each in (payments, SweepPayments(reservation, 0, interruptions)):
        with pytest.raises(KeyboardInterrupt):
            each.accountant("select").charge(30, *CHARGE)
    assert reservation.ledger.charges("table") == []


def test_the_ledger_is_about_the_same_neighbours(reservation: Reservation) -> None:
    payments = LedgerPayments(reservation, InterruptGuard())
    with pytest.raises(BudgetError, match="for replace-one neighbours, the release for add-remove"):
        payments.accountant("select").charge(30, *CHARGE[:2], "add-remove")
    assert reservation.ledger.charges("table") == []


def test_runs_of_a_sweep_share_a_reservation(reservation: Reservation) -> None:
    for number in (0, 1):
        payments = SweepPayments(reservation, number, InterruptGuard())
        assert payments.name == str(reservation.ledger.path)
        payments.accountant("select").charge(40, *CHARGE)
        payments.commit("select", "")
        # No run of a sweep resumes.
        assert payments.paid("select") is None
        assert payments.committed("select") is None
    with pytest.raises(BudgetError):
        SweepPayments(reservation, 2, InterruptGuard()).accountant("select").charge(40, *CHARGE)
    steps = [charge.run for charge in reservation.ledger.charges("table")]
    assert steps == ["run 0: select", "run 1: select"]


def test_an_experiment_pays_nobody_and_spends_no_more_than_its_budget() -> None:
    accountant = LocalAccountant(BUDGET)
    payments = UnledgeredPayments(accountant)
    payments.accountant("select").charge(30, *CHARGE)
    payments.commit("select", "")
    assert accountant.spent == 30
    assert payments.paid("select") is None
    assert payments.committed("select") is None
    with pytest.raises(BudgetError, match="exceeds what is left"):
        payments.accountant("measure").charge(71, *CHARGE)
