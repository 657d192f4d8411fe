"""Ledger: what may be disclosed about any record of a dataset in total, and every charge to it.

A ledger is one SQLite file. A charge is on the disk before the noisy value it pays for is drawn: a
run that dies in between has paid for nothing, and never the other way round. Whether a charge fits
is decided in the transaction that writes it, so that two processes cannot both spend the last of a
budget, and all amounts are whole units (see ``budget``), so that no rounding gives anything away.

The tables only grow: triggers refuse to change or remove a row, and to charge over the total,
whoever asks. A chain of digests (see ``chain``) shows damage whenever a ledger is opened.
What no file can notice is an older copy of itself put in its place: that forgets charges, and must
never be done. A file ``-journal`` beside a ledger, in use or left by a process that died, is part
of it: it must not be removed, nor left out of a copy. Locks and commits are in the file itself. A
ledger belongs on a local disk.
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

# How many datasets ``repr`` names before it only counts the rest.
NAMED_DATASETS = 5


class Ledger:
    """A ledger file, opened; threads may share it, each process opens its own.

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
        create: Make the file if there is none, instead of refusing. An account is put in it at
            once.
        read_only: Whether the file is only read. Works where nothing can be written, too.
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
        """The file, by the name that was given."""
        return self._file.path

    def __repr__(self) -> str:
        return f"<Ledger {self.path}: {self._state()}>"

    def _state(self) -> str:
        if self._file.closed:
            return "closed"
        if self._file.in_use:  # perhaps by this very thread, which must not wait for itself
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
        """The connection, for one thread and inside one transaction, undone if anything fails.

        Args:
            kind: "DEFERRED" to read, "IMMEDIATE" to write.
        """
        return self._file.transaction(kind)

    def add_dataset(self, name: str, budget: RhoBudget, neighbours: str = "replace-one") -> Account:
        """Give a dataset its total budget. Its terms stand for ever; the same again is no error."""
        new = Account(name, budget, neighbours)
        with self.transaction("IMMEDIATE") as connection:
            known = find_account(connection, name)
            if known is None:
                add_account(connection, new)
        if known is None:
            return new
        if (known.budget, known.neighbours) != (budget, neighbours):
            raise LedgerError(
                f"{self.path}: dataset {name!r} is there already, with {known.terms}; its terms "
                f"cannot become {new.terms}, since what was released under them stays released"
            )
        return known

    def default_conversion(self, name: str) -> Conversion:
        """The conversion of a dataset, or for a new one that which needs the least noise."""
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
        """Pay for a release, before it is made. When this returns, the charge is on the disk.

        Args:
            dataset: Whose budget.
            units: How much, in units of 2^-52 of ρ.
            mechanism: How the noise will be drawn. "discrete gaussian" claims noise on whole
                numbers, of the scale that ``gaussian_scale`` has for the dataset's conversion.
            groups: What will be measured, in words.
            run: Which run pays.

        Raises:
            BudgetError: More than remains was asked for; nothing is charged.
            LedgerError: The ledger could not take it down; nothing may be released.
        """
        with self.transaction("IMMEDIATE") as connection:
            return add_charge(connection, self.path, (dataset, run, mechanism, groups, units))

    def privacy_record(self, name: str) -> dict[str, Any]:
        """What is promised about a dataset and every charge, to be published as JSON."""
        return privacy_record(*self._statement(name))

    def to_dp_accounting(self, name: str) -> Any:
        """The charges as a ``dp_accounting.ComposedDpEvent``, for others to compute the ε anew.

        Under the conversion "gdp" they are Gaussians for a sensitivity of 1, which the noise
        of each has allowed for: compose them as if for ADD_OR_REMOVE_ONE, whatever the dataset's
        neighbours are. (REPLACE_ONE doubles the sensitivity, to be safe, and the ε with it.)
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
