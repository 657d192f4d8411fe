"""Accountants: what a release must be paid to before it exists."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from private_gsd.errors import BudgetError
from private_gsd.privacy.budget import RhoBudget, units_to_rho

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.privacy.budget import Conversion
    from private_gsd.privacy.ledger.ledger import Ledger


class Accountant(Protocol):
    """Pay, or be refused before anything is released."""

    @property
    def conversion(self) -> Conversion:
        """How what is paid is stated as (ε, δ), which the noise must allow for."""

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """Spend units of ρ on what is about to be released; returns the charge's number.

        Refused where the dataset's guarantee is about other neighbours than the release's.
        """


@dataclass(frozen=True)
class LedgerAccountant:
    """Charges one dataset of a ledger, durably, on behalf of one run."""

    ledger: Ledger
    dataset: str
    run: str

    @property
    def conversion(self) -> Conversion:
        """The dataset's."""
        return self.ledger.account(self.dataset).budget.conversion

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """Committed to disk when this returns."""
        # The terms of a dataset never change, so that they can be looked at before.
        require_same(self.ledger.account(self.dataset).neighbours, neighbours)
        charge = self.ledger.charge(
            self.dataset, units, mechanism=mechanism, groups=tuple(groups), run=self.run
        )
        return str(charge.id)


@dataclass
class LocalAccountant:
    """Counts what one process spends, where there is no ledger. It forgets when the process ends.

    >>> accountant = LocalAccountant(RhoBudget.from_rho(1.0, delta=1e-9))
    >>> accountant.charge(accountant.budget.units, "gaussian", ["sex x age"], "replace-one")
    '1'
    >>> accountant.charge(1, "gaussian", ["one more"], "replace-one")
    Traceback (most recent call last):
        ...
    private_gsd.BudgetError: a charge of rho = 2.22045e-16 exceeds what is left, rho = 0
    """

    budget: RhoBudget
    neighbours: str = "replace-one"
    charges: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def conversion(self) -> Conversion:
        """The budget's."""
        return self.budget.conversion

    @property
    def spent(self) -> int:
        """Units spent so far."""
        return sum(units for units, _, _ in self.charges)

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """Refuses before the budget is exceeded."""
        require_same(self.neighbours, neighbours)
        if isinstance(units, bool) or not isinstance(units, int) or units <= 0:
            raise BudgetError(f"a charge is a positive number of units, not {units!r}")
        self.budget.check_mechanism(mechanism)
        with self._lock:
            left = self.budget.units - self.spent
            if units > left:
                raise BudgetError(
                    f"a charge of rho = {units_to_rho(units):g} exceeds what is left, "
                    f"rho = {units_to_rho(left):g}"
                )
            self.charges.append((units, mechanism, tuple(groups)))
            return str(len(self.charges))


def require_same(promised: str, used: str) -> None:
    """Refuse a release about other neighbours than the promise."""
    if promised != used:
        raise BudgetError(
            f"the budget is for {promised} neighbours, the release for {used}: its noise would not "
            "keep the promise; use the same"
        )
