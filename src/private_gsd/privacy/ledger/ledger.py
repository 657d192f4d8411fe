"""Ledger: the total privacy budget of each dataset, and every charge to it.

A ledger is one SQLite file. A charge is on the disk before the noise that it pays for is drawn: if
a run dies in between, budget was spent without a result; noise is never drawn without a charge. A
charge is checked against the budget in the transaction that writes it, so that two processes cannot
both spend the last of a budget. All amounts are whole units (see ``budget``), so that no rounding
spends more than the total.

The tables only grow: triggers refuse to change or remove a row, or to charge more than the total,
whichever program writes. A chain of digests (see ``chain``) reveals damage whenever a ledger is
opened. A ledger cannot detect that it was replaced by an older copy of itself. Such a copy lacks
charges, and must never be put in place. A file ``-journal`` beside a ledger is part of the ledger:
it must not be removed, nor left out of a copy. A ledger belongs on a local disk, since SQLite locks
the file itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from private_gsd.errors import BudgetError, LedgerError, require
from private_gsd.privacy.accounts import Account
from private_gsd.privacy.budget import units_to_rho
from private_gsd.privacy.ledger.entries import (
    add_account,
    add_charge,
    all_accounts,
    charges_of,
    find_account,
    require_account,
)
from private_gsd.privacy.ledger.transactions import LedgerFile
from private_gsd.privacy.record import privacy_record

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from private_gsd.privacy.accounts import Charge
    from private_gsd.privacy.budget import Conversion, RhoBudget

# ``repr`` names at most this many datasets, and states the number of the others.
NAMED_DATASETS = 5


class Ledger:
    """An open ledger file. Threads may share it; each process opens the file itself.

    >>> import tempfile
    >>> from private_gsd.privacy.budget import RhoBudget
    >>> with tempfile.TemporaryDirectory() as folder, Ledger(
    ...     f"{folder}/ledger.db", create=True
    ... ) as ledger:
    ...     budget = RhoBudget.from_rho(0.5, delta=1e-9)
    ...     ledger.add_dataset("census", budget).remaining == budget.units
    ...     paid = ledger.charge(
    ...         "census", budget.units, mechanism="discrete gaussian", groups=["age"], run="first"
    ...     )
    ...     paid.id, ledger.account("census").remaining
    True
    (1, 0)

    Args:
        path: The file.
        create: Whether to make the file if it does not exist. If an account is given, the new file
            has this account.
        read_only: Whether the file is only read. This works for read-only files, too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool | Account = False,
        read_only: bool = False,
    ) -> None:
        def fill(made: sqlite3.Connection) -> None:
            if isinstance(create, Account):
                add_account(made, create)

        self._file = LedgerFile(path, fill if create else None, read_only=read_only)

    @property
    def path(self) -> Path:
        """The path of the file, as it was given."""
        return self._file.path

    def __repr__(self) -> str:
        return f"<Ledger {self.path}: {self._state()}>"

    def _state(self) -> str:
        if self._file.closed:
            return "closed"
        if self._file.in_use:  # perhaps by this thread, which would wait for itself
            return "in use"
        try:
            accounts = self.accounts()
        except (BudgetError, LedgerError):
            return "cannot be read"

        def said(account: Account) -> str:
            amounts = (account.spent, account.budget.units, account.reserved, account.remaining)
            spent, total, reserved, left = (f"{units_to_rho(units):.6g}" for units in amounts)
            amount = f"rho {spent} of {total} spent, {reserved} reserved, {left} left"
            return f"{account.dataset!r} {amount}"

        words = [said(account) for account in accounts[:NAMED_DATASETS]]
        if len(accounts) > NAMED_DATASETS:
            words.append(f"and {len(accounts) - NAMED_DATASETS:,} more")
        return "; ".join(words) or "no datasets"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; closing twice is no error."""
        self._file.close()

    def transaction(self, kind: str = "DEFERRED") -> AbstractContextManager[sqlite3.Connection]:
        """A connection inside a transaction, which is rolled back if anything fails.

        Args:
            kind: "DEFERRED" to read, "IMMEDIATE" to write.
        """
        return self._file.transaction(kind)

    def add_dataset(
        self,
        name: str,
        budget: RhoBudget,
        neighbours: str = "replace-one",
        unit: str | None = None,
    ) -> Account:
        """Add a dataset with its total budget.

        The terms of a dataset never change. Adding a dataset again with the same terms is allowed.
        """
        new = Account(name, budget, neighbours, unit=unit)
        with self.transaction("IMMEDIATE") as connection:
            known = find_account(connection, name)
            if known is None:
                add_account(connection, new)
        if known is None:
            return new
        if (known.budget, known.relation) != (budget, new.relation):
            raise LedgerError(
                f"{self.path}: dataset {name!r} is there already, with {known.terms}; its terms "
                f"cannot become {new.terms}, since what was released under them stays released"
            )
        return known

    def default_conversion(self, name: str) -> Conversion:
        """The conversion of a dataset; for a new dataset the one that needs the least noise."""
        with self.transaction() as connection:
            known = find_account(connection, name)
        return "gdp" if known is None else known.budget.conversion

    def accounts(self) -> list[Account]:
        """The accounts of all datasets, by name."""
        with self.transaction() as connection:
            return all_accounts(connection)

    def account(self, name: str) -> Account:
        """The account of one dataset."""
        with self.transaction() as connection:
            return require_account(connection, self.path, name)

    def charges(self, name: str) -> list[Charge]:
        """All charges to a dataset, the first one first."""
        return self._statement(name)[1]

    def charge(
        self, dataset: str, units: int, *, mechanism: str, groups: Sequence[str], run: str
    ) -> Charge:
        """Charge for a measurement before its noise is drawn.

        When this method returns, the charge is on the disk.

        Args:
            dataset: The dataset whose budget is charged.
            units: The amount, in units of 2^-52 of ρ.
            mechanism: The name of the noise. "discrete gaussian" claims noise on whole numbers
                with the scale that ``gaussian_scale`` gives for the dataset's conversion.
            groups: The query groups that will be measured, in words.
            run: The run that pays.

        Raises:
            BudgetError: The charge exceeds the remaining budget; nothing is charged.
            LedgerError: The charge could not be recorded; nothing may be released.
        """
        with self.transaction("IMMEDIATE") as connection:
            return add_charge(connection, self.path, (dataset, run, mechanism, groups, units))

    def privacy_record(self, name: str) -> dict[str, Any]:
        """The guarantee for a dataset and all of its charges, to be published as JSON."""
        return privacy_record(*self._statement(name))

    def to_dp_accounting(self, name: str) -> Any:
        """The charges as a ``dp_accounting.ComposedDpEvent``, to compute ε with another library.

        Under the conversion "gdp" the events are Gaussians for a sensitivity of 1, since the noise
        of each charge was scaled by its sensitivity. Compose them with ADD_OR_REMOVE_ONE, whatever
        the dataset's neighbours are: REPLACE_ONE would double the sensitivity, and ε with it.
        """
        events = require("dp_accounting", what="Exporting dp_accounting events", extra="accounting")
        account, charges = self._statement(name)
        if account.budget.conversion == "gdp":
            scales = [1 / math.sqrt(2 * charge.rho) for charge in charges]
            return events.ComposedDpEvent([events.GaussianDpEvent(scale) for scale in scales])
        return events.ComposedDpEvent([events.ZCDpEvent(rho=charge.rho) for charge in charges])

    def _statement(self, name: str) -> tuple[Account, list[Charge]]:
        """A dataset and its charges, as they were at one moment."""
        with self.transaction() as connection:
            account = require_account(connection, self.path, name)
            return account, charges_of(connection, name)
