"""Accounts and charges: exact amounts, and what is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.budget import INSECURE, MAX_RHO, UNITS_PER_RHO, RhoBudget, epsilon_of
from private_gsd.privacy.ledger.chain import append
from private_gsd.privacy.ledger.ledger import Ledger
from tests.privacy.ledger.ledgers import pay, small


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


@pytest.mark.parametrize("name", ["census ", " census", "cafe\u0301"])
def test_names_that_would_pass_for_others(tmp_path: Path, name: str) -> None:
    with (
        Ledger(tmp_path / "ledger.db", create=True) as ledger,
        pytest.raises(LedgerError, match="would pass for"),
    ):
        ledger.add_dataset(name, RhoBudget.from_rho(1.0, 1e-9))


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


@pytest.mark.parametrize("groups", ["not json", "5", "null", "[1]"])
def test_a_forged_charge_is_one_line(path: Path, groups: str) -> None:
    with Ledger(path, create=True) as ledger:
        ledger.add_dataset("d", small())
        with ledger.transaction("IMMEDIATE") as connection:
            append(connection, "charges", 1, "d", "r", "now", "m", groups, 1)
        with pytest.raises(LedgerError, match="charge 1 is not what a ledger writes"):
            ledger.charges("d")
