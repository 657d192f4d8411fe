"""Ledger: what may be disclosed about any row of a dataset in total, and every charge against it.

A ledger is one SQLite file. A charge is on the disk before the noisy value it pays for is drawn: a
run that dies in between has paid for nothing, and never the other way round. Whether a charge fits
is decided in the transaction that writes it, so that two processes cannot both spend the last of a
budget, and all amounts are whole units (see ``budget``), so that no rounding gives anything away.

The tables only grow: triggers refuse to change or remove a row, and to charge over the total,
whoever asks. A chain of digests (see ``ledger_chain``) shows damage whenever a ledger is opened.
What no file can notice is an older copy of itself put in its place: that forgets charges, and must
never be done. A file ``-journal`` beside a ledger, in use or left by a process that died, is part
of it: it must not be removed, nor left out of a copy. Locks and commits are in the file itself. A
ledger belongs on a local disk.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import stat
import threading
import unicodedata
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.errors import BudgetError, LedgerError, did_you_mean, require
from private_gsd.privacy.budget import (
    INSECURE,
    MAX_RHO,
    UNITS_PER_RHO,
    RhoBudget,
    epsilon_of,
    units_to_rho,
)
from private_gsd.privacy.ledger.chain import START, BrokenChainError, append, follow, next_id
from private_gsd.privacy.ledger.storage import check_kind, create_file, identity, open_file, told
from private_gsd.privacy.record import NEIGHBOURS, privacy_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from private_gsd.privacy.budget import Conversion

_ACCOUNTS = """
SELECT name, units, delta, conversion, neighbours,
    (SELECT coalesce(sum(units), 0) FROM charges WHERE dataset = name),
    (SELECT coalesce(sum(max(0, reservations.units - (
            SELECT coalesce(sum(charges.units), 0)
            FROM charges JOIN steps ON charges.id = steps.charge
            WHERE steps.run = reservations.run
        ))), 0)
        FROM reservations WHERE dataset = name AND run NOT IN (SELECT run FROM cancellations))
FROM datasets
"""
_CHARGES = "SELECT id, dataset, run, at, mechanism, groups, units FROM charges"


@dataclass(frozen=True)
class Charge:
    """What was taken from a dataset's budget, once and for ever.

    Attributes:
        id: Its number in the ledger, growing.
        dataset: Whose budget.
        run: Which run paid it.
        at: When: ISO 8601, UTC, to the microsecond.
        mechanism: How the noise was drawn ("discrete gaussian", "noisy top-k").
        groups: What was measured, in words.
        units: How much, in units of 2^-52 of ρ.
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
        """How much, as ρ."""
        return units_to_rho(self.units)


@dataclass(frozen=True)
class Account:
    """A dataset's budget, and how much of it is spent.

    Attributes:
        dataset: The dataset's name.
        budget: The total.
        neighbours: Which tables the guarantee cannot tell apart.
        spent: The sum of all charges, in units of 2^-52 of ρ.
        reserved: What is reserved for runs that have not spent it yet.
    """

    dataset: str
    budget: RhoBudget
    neighbours: str
    spent: int
    reserved: int = 0

    @property
    def remaining(self) -> int:
        """What may still be charged, in units."""
        return self.budget.units - self.spent - self.reserved

    @property
    def epsilon_spent(self) -> float:
        """What all charges convert to, at the budget's δ; accounting, and no guarantee."""
        return self.epsilon_of(self.spent)

    def epsilon_of(self, units: int) -> float:
        """The ε of some units, at the budget's δ."""
        return epsilon_of(units_to_rho(units), self.budget.delta, self.budget.conversion)


class Ledger:
    """A ledger file, opened; threads may share it, processes open it each for itself.

    >>> import tempfile
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
        read_only: Only look. Works where nothing can be written, too.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool | Account = False,
        read_only: bool = False,
    ) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._last = START
        try:
            self._file = file = self.path.resolve()
            self._name = self.path.absolute()
        except (RuntimeError, ValueError) as error:  # links in a circle, a NUL in the name
            raise LedgerError(f"{str(self.path)!r}: not the name of a file: {error}") from error

        def fill(made: sqlite3.Connection) -> None:
            if isinstance(create, Account):
                _add(made, create)

        with told(self.path):
            if create and not read_only and not file.exists():
                create_file(file, self.path, fill)
            if not stat.S_ISREG(file.stat().st_mode):
                raise LedgerError(f"{self.path}: not a file, and so not a ledger")
            self._identity = identity(file)
            check_kind(file, self.path)
            self._connection, self._last = open_file(file, self.path, read_only)

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
        if self._process == os.getpid():
            with self._lock, told(self.path):
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.close()

    def add_dataset(self, name: str, budget: RhoBudget, neighbours: str = "replace-one") -> Account:
        """Give a dataset its total budget. Its terms stand for ever; the same again is no error."""
        asked = Account(name, budget, neighbours, 0)
        _check_account(asked)
        with self.transaction("IMMEDIATE") as connection:
            row = connection.execute(f"{_ACCOUNTS} WHERE name = ?", (name,)).fetchone()
            if row is None:
                _add(connection, asked)
        known = asked if row is None else _account(row)
        if (known.budget, known.neighbours) != (budget, neighbours):
            raise LedgerError(
                f"{self.path}: dataset {name!r} is there already, with {_terms(known)}; its terms "
                f"cannot become {_terms(asked)}, since what was released under them stays released"
            )
        return known

    def usual_conversion(self, name: str) -> Conversion:
        """That of a dataset, if it is there; or what a new one had best have."""
        check_line(name, "a dataset's name")
        with self.transaction() as connection:
            row = connection.execute(f"{_ACCOUNTS} WHERE name = ?", (name,)).fetchone()
        return "gdp" if row is None else _account(row).budget.conversion

    def accounts(self) -> list[Account]:
        """All datasets, by name."""
        with self.transaction() as connection:
            return [_account(row) for row in connection.execute(f"{_ACCOUNTS} ORDER BY name")]

    def account(self, name: str) -> Account:
        """One dataset."""
        with self.transaction() as connection:
            return self.find(connection, name)

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
            return self.insert(connection, (dataset, run, mechanism, groups, units))

    def insert(
        self,
        connection: sqlite3.Connection,
        charge: tuple[str, str, str, Sequence[str], int],
        reserved: int = 0,
    ) -> Charge:
        """Put a charge into a transaction, if it fits.

        Args:
            connection: In an immediate transaction.
            charge: Dataset, run, mechanism, groups and units.
            reserved: What is reserved for the run, which it may spend besides what remains.
        """
        dataset, run, mechanism, groups, units = charge
        if isinstance(units, bool) or not isinstance(units, int) or units <= 0:
            raise BudgetError(f"a charge must be a whole number of units over 0, not {units!r}")
        if units > MAX_RHO * UNITS_PER_RHO:
            raise BudgetError(f"a charge of rho over {MAX_RHO:g} protects nobody")
        check_line(mechanism, "a mechanism")
        check_line(run, "a run")
        if isinstance(groups, str) or not all(isinstance(group, str) for group in groups):
            raise LedgerError(f"groups must be a sequence of text, not {groups!r}")
        account = self.find(connection, dataset)
        account.budget.check_mechanism(mechanism)
        self.require_one_noise(connection, dataset, seeded=INSECURE in mechanism)
        if units > account.remaining + reserved:
            raise BudgetError(self.refusal(account, units))
        number = next_id(connection, "charges")
        values = (number, dataset, run, now(), mechanism, json.dumps(list(groups)), units)
        append(connection, "charges", *values)
        return _charge(values)

    def require_one_noise(
        self, connection: sqlite3.Connection, dataset: str, *, seeded: bool
    ) -> None:
        """Refuse noise from a seed where other noise was charged for, and the other way round.

        A record that was published says what holds of all charges, now and later.
        """
        query = "SELECT 1 FROM charges WHERE dataset = ? AND (instr(mechanism, ?) > 0) <> ?"
        if connection.execute(query, (dataset, INSECURE, seeded)).fetchone() is not None:
            has, asked = ("without", "from") if seeded else ("from", "without")
            raise BudgetError(
                f"{self.path}: dataset {dataset!r} has charges for noise {has} a seed, and takes "
                f"none for noise {asked} a seed: what was promised of it would become false. Use "
                "another dataset for tests"
            )

    def numbered(self, connection: sqlite3.Connection, number: int) -> Charge:
        """A charge by its number."""
        return _charge(connection.execute(f"{_CHARGES} WHERE id = ?", (number,)).fetchone())

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
        query = f"{_CHARGES} WHERE dataset = ? ORDER BY id"
        with self.transaction() as connection:
            account = self.find(connection, name)
            rows = connection.execute(query, (name,)).fetchall()
            return account, [_charge(row) for row in rows]

    def find(self, connection: sqlite3.Connection, name: str) -> Account:
        """A dataset, in a transaction."""
        check_line(name, "a dataset's name")
        row = connection.execute(f"{_ACCOUNTS} WHERE name = ?", (name,)).fetchone()
        if row is None:
            names = [name for (name,) in connection.execute("SELECT name FROM datasets")]
            raise LedgerError(
                f"{self.path}: no dataset {name!r}{did_you_mean(name, names)}; "
                "add it with 'private-gsd ledger create'"
            )
        return _account(row)

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
        """The connection, for one thread and inside one transaction, undone if anything fails."""
        # SQLite's locks do not pass to a forked process, which would break those of its parent.
        if self._process != os.getpid():
            raise LedgerError(f"{self.path}: opened by another process; open it anew in this one")
        writes = kind == "IMMEDIATE"
        after = "; the ledger did not take this down, and nothing may be released" if writes else ""
        with self._lock, told(self.path, after):
            connection = self._connection
            if connection is None:
                raise LedgerError(f"{self.path}: the ledger was closed")
            self._require_same_file()
            try:
                connection.execute(f"BEGIN {kind}")
                self._last = follow(connection, self._last)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if writes:  # or the charge would stand in a file that nobody will look at
                self._require_same_file()

    def _require_same_file(self) -> None:
        """Refuse to go on where the file was removed or replaced since it was opened."""
        try:
            # By the name that was given, too: a link may lead elsewhere by now.
            same = identity(self._file) == identity(self._name) == self._identity
        except OSError:
            same = False
        if not same:
            raise LedgerError(
                f"{self.path}: the ledger was removed, or another put in its place, while it was "
                "in use; nothing may be released. Put back the file that was there, with all its "
                "charges, and try again"
            )

    def refusal(self, account: Account, units: int) -> str:
        """Why a charge does not fit."""

        def said(units: int) -> str:
            return f"rho {units_to_rho(units):.6g} (epsilon {account.epsilon_of(units):.6g})"

        over = units_to_rho(units - account.remaining)
        reserved = ""
        if account.reserved:
            reserved = f"; {said(account.reserved)} is reserved for runs not finished"
        return (
            f"{self.path}: dataset {account.dataset!r}: {said(units)} was asked for, which is rho "
            f"{over:.6g} over the {said(account.remaining)} that remains of a total of "
            f"{said(account.budget.units)}, at delta {account.budget.delta:g}"
            f"{reserved}. Nothing was charged or released for it. Measure less, or with more noise; the total "
            "cannot grow, since what was released stays released"
        )


def now() -> str:
    """This moment."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _account(row: tuple[Any, ...]) -> Account:
    name, units, delta, conversion, neighbours, spent, reserved = row
    return Account(name, RhoBudget(units, delta, conversion), neighbours, spent, reserved)


def _check_account(account: Account) -> None:
    check_line(account.dataset, "a dataset's name")
    if account.neighbours not in NEIGHBOURS:
        known = list(NEIGHBOURS)
        raise LedgerError(f"neighbours must be one of {known}, not {account.neighbours!r}")


def _add(connection: sqlite3.Connection, account: Account) -> None:
    """Put a dataset into a ledger that does not have it."""
    _check_account(account)
    budget = account.budget
    terms = (budget.units, budget.delta, budget.conversion, account.neighbours)
    append(connection, "datasets", account.dataset, *terms, now())


def _charge(row: tuple[Any, ...]) -> Charge:
    number, dataset, run, at, mechanism, groups, units = row
    try:
        named = json.loads(groups)
    except (ValueError, TypeError, RecursionError):
        named = None
    sound = isinstance(named, list) and all(isinstance(group, str) for group in named)
    if not sound or not all(isinstance(text, str) for text in (dataset, run, at, mechanism)):
        raise BrokenChainError(f"charge {number} is not what a ledger writes")
    return Charge(number, dataset, run, at, mechanism, tuple(named), units)


def _terms(account: Account) -> str:
    budget = account.budget
    return (
        f"rho {budget.rho!r} (epsilon {budget.epsilon:.6g} at delta {budget.delta!r}, "
        f"{budget.conversion} conversion) and {account.neighbours} neighbours"
    )


def check_line(text: object, what: str) -> None:
    """Refuse what could not be stored and shown as one line of text, or looks like another one."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable():
        raise LedgerError(f"{what} must be a line of text, not {text!r}")
    if text != text.strip() or not unicodedata.is_normalized("NFC", text):
        raise LedgerError(
            f"{what} must not begin or end with a space, nor be spelled with loose accents: "
            f"{text!r} would pass for another one"
        )
