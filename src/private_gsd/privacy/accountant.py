"""Accountants: objects that are charged for a measurement before its noise is drawn."""

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
    """An object that is charged for measurements, and refuses charges that exceed the budget."""

    @property
    def conversion(self) -> Conversion:
        """The conversion from ρ to (ε, δ); the calibration of the noise depends on it."""

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """Charge for a measurement before its noise is drawn.

        Args:
            units: The amount, in units of 2^-52 of ρ.
            mechanism: The name of the noise, such as "discrete gaussian".
            groups: The query groups that are measured, in words.
            neighbours: The neighbouring relation that the noise is calibrated to, with its unit of
                protection (see ``relation``).

        Returns:
            The number of the charge.

        Raises:
            BudgetError: The charge exceeds the budget, or the guarantee of the dataset is for
                another neighbouring relation.
        """


@dataclass(frozen=True)
class LedgerAccountant:
    """Charges one dataset of a ledger, durably, on behalf of one run."""

    ledger: Ledger
    dataset: str
    run: str

    @property
    def conversion(self) -> Conversion:
        """The conversion of the dataset's budget."""
        return self.ledger.account(self.dataset).budget.conversion

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """Charge the ledger; the charge is on the disk when this returns."""
        # The neighbouring relation of a dataset never changes, so that it can be read beforehand.
        require_same(self.ledger.account(self.dataset).relation, neighbours)
        charge = self.ledger.charge(
            self.dataset, units, mechanism=mechanism, groups=tuple(groups), run=self.run
        )
        return str(charge.id)


@dataclass
class LocalAccountant:
    """Adds up the charges of one process, where there is no ledger; nothing is stored on the disk.

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
        """The conversion of the budget."""
        return self.budget.conversion

    @property
    def spent(self) -> int:
        """The sum of all charges, in units."""
        return sum(units for units, _, _ in self.charges)

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """Record a charge that fits into the budget; refuse any other."""
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
    """Refuse a release under another neighbouring relation than that of the budget."""
    if promised != used:
        raise BudgetError(
            f"the budget is for {promised} neighbours, the release for {used}: its noise would not "
            "keep the promise; use the same"
        )
