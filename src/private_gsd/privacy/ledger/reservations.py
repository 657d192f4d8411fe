"""Reservations: the budget that a run has reserved, its attempts to draw noise, and its commits.

Each charge pays for one draw of noise that is ever used. If a run dies after a charge, and before
its result is committed, the run may draw again under the same charge, since the first draw is lost.
The ledger alone decides which process may draw. An attempt registers before it draws, and commits
the digest of its result before the result is used. Only the attempt that registered last may
commit, and only once. A committed result is never drawn again, even if the folder of the run was
copied, moved, or put back
from a backup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_gsd.errors import BudgetError, LedgerError, NotCommittedError
from private_gsd.privacy.accounts import check_line
from private_gsd.privacy.budget import units_to_rho
from private_gsd.privacy.ledger.chain import append, next_id
from private_gsd.privacy.ledger.entries import (
    add_charge,
    charge_numbered,
    now,
    refusal,
    require_account,
    require_one_noise,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from private_gsd.privacy.accounts import Charge
    from private_gsd.privacy.ledger.ledger import Ledger


@dataclass(frozen=True)
class Reservation:
    """The part of a dataset's budget that is reserved for one run.

    Attributes:
        ledger: The ledger.
        dataset: The dataset whose budget the run spends.
        run: The name of the run.
        attempt: The name of the current attempt; each process that resumes a run is a new attempt.
    """

    ledger: Ledger
    dataset: str
    run: str
    attempt: str

    def reserve(self, units: int, *, seeded: bool = False) -> None:
        """Reserve the whole budget of the run, so that no other run can spend it.

        Reserving the same amount again has no effect.

        Args:
            units: The amount, in units of 2^-52 of ρ.
            seeded: Whether the noise of the run comes from a seed.

        Raises:
            BudgetError: The amount exceeds the remaining budget; nothing is reserved.
            LedgerError: The run has reserved another amount, or of another dataset.
        """
        check_line(self.run, "a run")
        with self.ledger.transaction("IMMEDIATE") as connection:
            account = require_account(connection, self.ledger.path, self.dataset)
            require_one_noise(connection, self.ledger.path, self.dataset, seeded=seeded)
            known = self._known(connection)
            if known is None and units <= account.remaining:
                append(connection, "reservations", self.run, self.dataset, units, now())
        if known is None and units > account.remaining:
            raise BudgetError(refusal(self.ledger.path, account, units))
        if known is not None and known != (self.dataset, units):
            raise LedgerError(
                f"{self.ledger.path}: run {self.run!r} began with another dataset or budget; its "
                "release was changed, and cannot be resumed"
            )

    @property
    def exists(self) -> bool:
        """Whether the ledger has a reservation for the run, even a cancelled one."""
        with self.ledger.transaction() as connection:
            return self._known(connection) is not None

    def cancel(self) -> int:
        """Cancel the unspent part of the reservation, and return it; the run cannot be resumed."""
        with self.ledger.transaction("IMMEDIATE") as connection:
            self._require_known(connection)
            reserved = self._unspent(connection)
            if not self._is_cancelled(connection):
                append(connection, "cancellations", self.run, now())
        return reserved

    def charge(self, step: str, units: int, mechanism: str, groups: Sequence[str]) -> Charge:
        """Charge for a step, or find its earlier charge, and register this attempt to draw for it.

        Raises:
            LedgerError: The result of the step was committed already, or the step was charged with
                another amount, mechanism or groups.
        """
        with self.ledger.transaction("IMMEDIATE") as connection:
            self._require_known(connection)
            if self._is_cancelled(connection):
                raise LedgerError(
                    f"{self.ledger.path}: the reservation of run {self.run!r} was cancelled; "
                    "start a new run"
                )
            charge = self._charge(connection, step)
            if charge is None:
                charge = add_charge(
                    connection,
                    self.ledger.path,
                    (self.dataset, f"{self.run} {step}", mechanism, groups, units),
                    self._unspent(connection),
                )
                append(connection, "steps", charge.id, self.run, step)
            elif (charge.units, charge.mechanism, charge.groups) != (
                units,
                mechanism,
                tuple(groups),
            ):
                raise LedgerError(
                    f"{self.ledger.path}: run {self.run!r} has paid for something else at "
                    f"{step!r}; its release was changed, and cannot be resumed"
                )
            elif self._digest(connection, charge.id) is not None:
                raise LedgerError(
                    f"{self.ledger.path}: what run {self.run!r} paid for at {step!r} was drawn and "
                    "committed, and is not in the release; to draw it again would be to release "
                    "it twice for one charge. Resume the release that has it, or start a new run"
                )
            number = next_id(connection, "attempts")
            append(connection, "attempts", number, charge.id, self.attempt, now())
        return charge

    def commit(self, step: str, digest: str) -> None:
        """Commit the result of a step by its digest, before the result is used.

        Raises:
            NotCommittedError: Another attempt has registered for the step, or has committed it.
        """
        with self.ledger.transaction("IMMEDIATE") as connection:
            charge = self._charge(connection, step)
            last = None
            if charge is not None:
                query = "SELECT attempt FROM attempts WHERE charge = ? ORDER BY id DESC LIMIT 1"
                last = connection.execute(query, (charge.id,)).fetchone()
            if (
                charge is None
                or last != (self.attempt,)
                or self._digest(connection, charge.id) is not None
            ):
                raise NotCommittedError(
                    f"{self.ledger.path}: another process has resumed run {self.run!r} at "
                    f"{step!r}; what was drawn here is discarded, and nothing of it was released"
                )
            append(connection, "commits", charge.id, digest, now())

    def committed(self, step: str) -> str | None:
        """The digest of a step's result, if the result was committed."""
        with self.ledger.transaction() as connection:
            charge = self._charge(connection, step)
            return None if charge is None else self._digest(connection, charge.id)

    def paid(self, step: str) -> int | None:
        """The units that a step was charged; None if it was not."""
        with self.ledger.transaction() as connection:
            charge = self._charge(connection, step)
        return None if charge is None else charge.units

    def committed_at(self, digest: str) -> int:
        """The number of the charge for which a step of the run committed this digest, or 0."""
        query = (
            "SELECT max(charge) FROM commits JOIN steps USING (charge) WHERE run = ? AND digest = ?"
        )
        with self.ledger.transaction() as connection:
            (found,) = connection.execute(query, (self.run, digest)).fetchone()
        return int(found or 0)

    def charges(self) -> list[Charge]:
        """All charges of the run."""
        prefix = f"{self.run} "
        return [c for c in self.ledger.charges(self.dataset) if c.run.startswith(prefix)]

    def _require_known(self, connection: sqlite3.Connection) -> None:
        known = self._known(connection)
        if known is None or known[0] != self.dataset:
            raise LedgerError(
                f"{self.ledger.path}: dataset {self.dataset!r} has no run {self.run!r}; "
                "'private-gsd ledger show' names them"
            )

    def _known(self, connection: sqlite3.Connection) -> tuple[str, int] | None:
        query = "SELECT dataset, units FROM reservations WHERE run = ?"
        found: tuple[str, int] | None = connection.execute(query, (self.run,)).fetchone()
        return found

    def _is_cancelled(self, connection: sqlite3.Connection) -> bool:
        query = "SELECT 1 FROM cancellations WHERE run = ?"
        return connection.execute(query, (self.run,)).fetchone() is not None

    def _unspent(self, connection: sqlite3.Connection) -> int:
        """The unspent part of the run's reservation, in units."""
        known = self._known(connection)
        if known is None or self._is_cancelled(connection):
            return 0
        query = "SELECT coalesce(sum(units), 0) FROM charges JOIN steps ON charge = id "
        (spent,) = connection.execute(query + "WHERE steps.run = ?", (self.run,)).fetchone()
        return int(known[1] - spent)

    def _charge(self, connection: sqlite3.Connection, step: str) -> Charge | None:
        query = "SELECT charge FROM steps WHERE run = ? AND step = ?"
        found = connection.execute(query, (self.run, step)).fetchone()
        return None if found is None else charge_numbered(connection, found[0])

    def _digest(self, connection: sqlite3.Connection, charge: int) -> str | None:
        query = "SELECT digest FROM commits WHERE charge = ?"
        found = connection.execute(query, (charge,)).fetchone()
        return None if found is None else str(found[0])


def open_reservations(ledger: Ledger, dataset: str) -> list[tuple[str, float]]:
    """The runs with an unspent reservation of a dataset's budget, and its amount as ρ."""
    query = "SELECT run FROM reservations WHERE dataset = ? ORDER BY at"
    with ledger.transaction() as connection:
        runs = [run for (run,) in connection.execute(query, (dataset,))]
        found = [Reservation(ledger, dataset, run, "") for run in runs]
        unspent = [(each.run, units_to_rho(each._unspent(connection))) for each in found]
    return [(run, rho) for run, rho in unspent if rho > 0]
