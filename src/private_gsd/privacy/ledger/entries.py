"""Entries: the accounts and charges in a ledger's tables, read and written inside a transaction."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from private_gsd.errors import BudgetError, LedgerError, did_you_mean
from private_gsd.privacy.accounts import Account, Charge, check_line
from private_gsd.privacy.budget import INSECURE, MAX_RHO, UNITS_PER_RHO, RhoBudget, units_to_rho
from private_gsd.privacy.ledger.chain import BrokenChainError, append, next_id

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

_ACCOUNTS = """
SELECT name, units, delta, conversion, neighbours, unit,
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


def now() -> str:
    """The current time: ISO 8601, UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def all_accounts(connection: sqlite3.Connection) -> list[Account]:
    """The accounts of all datasets, by name."""
    return [_account(row) for row in connection.execute(f"{_ACCOUNTS} ORDER BY name")]


def find_account(connection: sqlite3.Connection, name: str) -> Account | None:
    """The account of a dataset, if there is one."""
    check_line(name, "a dataset's name")
    row = connection.execute(f"{_ACCOUNTS} WHERE name = ?", (name,)).fetchone()
    return None if row is None else _account(row)


def require_account(connection: sqlite3.Connection, path: Path, name: str) -> Account:
    """The account of a dataset.

    Args:
        connection: The transaction.
        path: The ledger's path, for the error message.
        name: The dataset's name.

    Raises:
        LedgerError: There is no such dataset.
    """
    account = find_account(connection, name)
    if account is None:
        names = [name for (name,) in connection.execute("SELECT name FROM datasets")]
        raise LedgerError(
            f"{path}: no dataset {name!r}{did_you_mean(name, names)}; "
            "add it with 'private-gsd ledger create'"
        )
    return account


def add_account(connection: sqlite3.Connection, account: Account) -> None:
    """Add the account of a new dataset; the caller is in an immediate transaction."""
    budget = account.budget
    terms = (budget.units, budget.delta, budget.conversion, account.neighbours, account.unit)
    append(connection, "datasets", account.dataset, *terms, now())


def charges_of(connection: sqlite3.Connection, dataset: str) -> list[Charge]:
    """All charges to a dataset, the first one first."""
    query = f"{_CHARGES} WHERE dataset = ? ORDER BY id"
    return [_charge(row) for row in connection.execute(query, (dataset,)).fetchall()]


def charge_numbered(connection: sqlite3.Connection, number: int) -> Charge:
    """A charge by its number."""
    return _charge(connection.execute(f"{_CHARGES} WHERE id = ?", (number,)).fetchone())


def add_charge(
    connection: sqlite3.Connection,
    path: Path,
    charge: tuple[str, str, str, Sequence[str], int],
    reserved: int = 0,
) -> Charge:
    """Add a charge if it fits into the budget; the caller is in an immediate transaction.

    Args:
        connection: The transaction.
        path: The ledger's path, for error messages.
        charge: Dataset, run, mechanism, groups and units.
        reserved: The unspent part of the run's reservation, which it may spend besides the
            remaining budget.

    Raises:
        BudgetError: The charge is not a valid amount, or exceeds the budget.
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
    account = require_account(connection, path, dataset)
    account.budget.check_mechanism(mechanism)
    require_one_noise(connection, path, dataset, seeded=INSECURE in mechanism)
    if units > account.remaining + reserved:
        raise BudgetError(refusal(path, account, units))
    number = next_id(connection, "charges")
    values = (number, dataset, run, now(), mechanism, json.dumps(list(groups)), units)
    append(connection, "charges", *values)
    return _charge(values)


def require_one_noise(
    connection: sqlite3.Connection, path: Path, dataset: str, *, seeded: bool
) -> None:
    """Refuse seeded noise for a dataset with charges for secure noise, and vice versa.

    A published record states whether a guarantee holds for all charges, now and later.
    """
    query = "SELECT 1 FROM charges WHERE dataset = ? AND (instr(mechanism, ?) > 0) <> ?"
    if connection.execute(query, (dataset, INSECURE, seeded)).fetchone() is not None:
        has, other = ("without", "from") if seeded else ("from", "without")
        raise BudgetError(
            f"{path}: dataset {dataset!r} has charges for noise {has} a seed, and takes "
            f"none for noise {other} a seed: what was promised of it would become false. Use "
            "another dataset for tests"
        )


def refusal(path: Path, account: Account, units: int) -> str:
    """The error message for a charge that exceeds the budget."""

    def said(units: int) -> str:
        return f"rho {units_to_rho(units):.6g} (epsilon {account.epsilon_of(units):.6g})"

    over = units_to_rho(units - account.remaining)
    reserved = ""
    if account.reserved:
        reserved = f"; {said(account.reserved)} is reserved for runs not finished"
    return (
        f"{path}: dataset {account.dataset!r}: {said(units)} was asked for, which is rho "
        f"{over:.6g} over the {said(account.remaining)} that remains of a total of "
        f"{said(account.budget.units)}, at delta {account.budget.delta:g}{reserved}. Nothing was "
        "charged or released for it. Measure less, or with more noise; the total cannot grow, "
        "since what was released stays released"
    )


def _account(row: tuple[Any, ...]) -> Account:
    name, units, delta, conversion, neighbours, unit, spent, reserved = row
    return Account(name, RhoBudget(units, delta, conversion), neighbours, spent, reserved, unit)


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
