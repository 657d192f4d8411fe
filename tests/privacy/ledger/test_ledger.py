"""The ledger: what is written is what is read, and what it says to others."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dp_accounting.pld import PLDAccountant

from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.accounts import Account, Charge
from private_gsd.privacy.budget import UNITS_PER_RHO, RhoBudget, epsilon_of
from private_gsd.privacy.ledger.ledger import NAMED_DATASETS, Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from tests.privacy.ledger.ledger_worker import UNITS
from tests.privacy.ledger.ledgers import pay, small
from tests.windows import removes_open_files


def test_a_charge_is_read_as_it_was_made(path: Path) -> None:
    before = datetime.now(UTC)
    groups = ("age × sex", "", 'a "quoted"\nvalue', "\udcff")
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("Größe 1", small(), "add-remove")
        made = pay(ledger, 5, "Größe 1", mechanism="noisy top-k", groups=groups, run="run 7")
    with Ledger(path) as ledger:
        assert ledger.charges("Größe 1") == [made]
        assert ledger.accounts() == [Account("Größe 1", small(), "add-remove", 5)]
        assert ledger.account("Größe 1").epsilon_of(5) == epsilon_of(made.rho, 1e-9, "paper")
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


def test_nothing_spent_is_epsilon_zero(ledger: Ledger) -> None:
    account = ledger.account("d")
    assert account.epsilon_of(account.spent) == 0.0


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
            assert Account("d", *terms).terms in str(caught.value)
    assert ledger.accounts() == [Account("d", small(), "replace-one", 4)]


def test_other_mistakes(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match=r"ledger.db: no dataset 'dd' \(did you mean 'd'\?\)"):
        pay(ledger, 1, "dd")
    with pytest.raises(LedgerError, match="groups must be a sequence of text"):
        pay(ledger, 1, groups="age")
    with pytest.raises(BudgetError, match="neighbours must be 'replace-one' or 'add-remove'"):
        ledger.add_dataset("e", small(), "next-door")
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="was closed"):
        ledger.accounts()


def test_looking_writes_nothing(ledger: Ledger, path: Path) -> None:
    ledger.close()
    before = path.read_bytes()
    with Ledger(path, read_only=True) as reader:
        for use in (lambda: pay(reader), lambda: reader.add_dataset("e", small())):
            with pytest.raises(LedgerError, match="opened only to be read"):
                use()
    assert path.read_bytes() == before
    assert [each for each in path.parent.iterdir() if each.stat().st_size] == [path]


def test_what_gaussian_noise_spends(path: Path) -> None:
    """Stated by its own conversion; and dp_accounting comes to the same from the charges."""
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
        "one has all records of the other and one more",
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
        account = ledger.account("d")
    spent = account.epsilon_of(account.spent)
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


@removes_open_files
def test_its_repr_says_its_state(path: Path) -> None:
    budget = RhoBudget.from_rho(1.0, delta=1e-9)
    with Ledger(path, create=True) as ledger:
        assert repr(ledger) == f"<Ledger {path}: no datasets>"
        ledger.add_dataset("table", budget)
        pay(ledger, budget.units // 2, "table")
        Reservation(ledger, "table", "run", "first").reserve(budget.units // 8)
        said = "'table' rho 0.5 of 1 spent, 0.125 reserved, 0.375 left"
        assert repr(ledger) == f"<Ledger {path}: {said}>"
        ledger.add_dataset("a", RhoBudget.from_rho(0.25, delta=1e-9))
        other = "'a' rho 0 of 0.25 spent, 0 reserved, 0.25 left"
        assert repr(ledger) == f"<Ledger {path}: {other}; {said}>"
        for number in range(NAMED_DATASETS):
            ledger.add_dataset(f"more {number}", budget)
        assert repr(ledger).endswith("; and 2 more>")
        with ledger.transaction():
            assert repr(ledger) == f"<Ledger {path}: in use>"
        path.unlink()
        assert repr(ledger) == f"<Ledger {path}: cannot be read>"
    assert repr(ledger) == f"<Ledger {path}: closed>"
