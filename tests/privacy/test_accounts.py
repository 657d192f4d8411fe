"""Accounts: what remains, what it is as epsilon, and names that are one line of text."""

from __future__ import annotations

from typing import Any

import pytest

from private_gsd.errors import BudgetError, LedgerError
from private_gsd.privacy.accounts import Account, Charge, check_line
from private_gsd.privacy.budget import UNITS_PER_RHO, RhoBudget, epsilon_of

BUDGET = RhoBudget.from_rho(1.0, 1e-6, "gdp")


def test_what_remains_is_neither_spent_nor_reserved() -> None:
    account = Account("d", BUDGET, "add-remove", UNITS_PER_RHO // 2, UNITS_PER_RHO // 8)
    assert account.remaining == 3 * UNITS_PER_RHO // 8
    assert account.epsilon_of(account.spent) == epsilon_of(0.5, 1e-6, "gdp")
    assert account.terms.startswith("rho 1.0 (epsilon ")
    assert account.terms.endswith(" at delta 1e-06, gdp conversion) and add-remove neighbours")


def test_an_amount_as_rho() -> None:
    assert Charge(1, "d", "r", "now", "m", (), UNITS_PER_RHO // 4).rho == 0.25


@pytest.mark.parametrize("name", ["", " ", "a\nb", " a", "a ", "cafe\u0301", 5, None])
def test_a_name_is_one_line_of_text(name: Any) -> None:
    with pytest.raises(LedgerError, match=r"^a run must (be a line of text|not begin or end)"):
        check_line(name, "a run")
    with pytest.raises(LedgerError, match=r"^a dataset's name must"):
        Account(name, BUDGET, "replace-one")


def test_neighbours_have_names() -> None:
    with pytest.raises(BudgetError, match=r"not 'replace' \(did you mean 'replace-one'\?\)"):
        Account("d", BUDGET, "replace")
