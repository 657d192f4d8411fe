"""Accounts: the total budget of a dataset, its spent and reserved parts, and its charges."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from private_gsd.errors import LedgerError
from private_gsd.privacy.budget import RhoBudget, check_neighbours, epsilon_of, units_to_rho
from private_gsd.schema.neighbours import relation_of


@dataclass(frozen=True)
class Charge:
    """A charge to a dataset's budget, which is never undone.

    Attributes:
        id: The number of the charge in its ledger, growing.
        dataset: The dataset whose budget was charged.
        run: The run that paid.
        at: The moment of the charge: ISO 8601, UTC, to the microsecond.
        mechanism: The noise that was paid for ("discrete gaussian", "noisy top-k").
        groups: The query groups that were measured, in words.
        units: The amount, in units of 2^-52 of ρ.
    """

    id: int
    dataset: str
    run: str
    at: str
    mechanism: str
    groups: tuple[str, ...]
    units: int

    @property
    def rho(self) -> float:
        """The amount as ρ."""
        return units_to_rho(self.units)


@dataclass(frozen=True)
class Account:
    """A dataset's budget, and how much of it is spent and reserved.

    Attributes:
        dataset: The name of the dataset.
        budget: The total.
        neighbours: The neighbouring relation of the guarantee.
        spent: The sum of all charges, in units of 2^-52 of ρ.
        reserved: The sum of what runs have reserved and not spent yet, in units.
        unit: The column with the ids of the unit of protection; None where it is a record.
    """

    dataset: str
    budget: RhoBudget
    neighbours: str
    spent: int = 0
    reserved: int = 0
    unit: str | None = None

    def __post_init__(self) -> None:
        check_line(self.dataset, "a dataset's name")
        check_neighbours(self.neighbours)
        if self.unit is not None:
            check_line(self.unit, "the column of a unit's ids")

    @property
    def relation(self) -> str:
        """The neighbouring relation with its unit of protection, which never change."""
        return relation_of(self.neighbours, self.unit)

    @property
    def remaining(self) -> int:
        """The amount that may still be charged or reserved, in units."""
        return self.budget.units - self.spent - self.reserved

    def epsilon_of(self, units: int) -> float:
        """The ε of an amount, at the budget's δ; accounting, and no guarantee."""
        return epsilon_of(units_to_rho(units), self.budget.delta, self.budget.conversion)

    @property
    def terms(self) -> str:
        """The terms of the account, which never change, in words."""
        budget = self.budget
        return (
            f"rho {budget.rho!r} (epsilon {budget.epsilon:.6g} at delta {budget.delta!r}, "
            f"{budget.conversion} conversion) and {self.relation} neighbours"
        )


def check_line(text: object, what: str) -> None:
    """Refuse text that is not one printable line, or that looks the same as another text."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise LedgerError(f"{what} must be a line of text, not {text!r}")
    if text != text.strip() or not unicodedata.is_normalized("NFC", text):
        raise LedgerError(
            f"{what} must not begin or end with a space, nor be spelled with loose accents: "
            f"{text!r} would pass for another one"
        )
