"""Runs in a ledger: what a run holds of a budget, who draws for its charges, and what was kept.

One charge stands for one draw of noise that anybody sees. A run that dies after it paid may draw
again under the same charge, for what it drew died with it; and the ledger alone decides who may.
Whoever is about to draw says so, and whoever has drawn has its result, by a digest, taken down as
kept before anything is made of it. The last to say so may keep, nobody may keep twice, and what was
kept is never drawn again: whatever happened to the run's folder, copied, moved, or put back from a
backup.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_gsd.errors import BudgetError, LedgerError, NotCommittedError
from private_gsd.privacy.budget import units_to_rho
from private_gsd.privacy.ledger.chain import append, next_id
from private_gsd.privacy.ledger.ledger import check_line, now

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from private_gsd.privacy.ledger.ledger import Charge, Ledger


@dataclass(frozen=True)
class LedgerRun:
    """One run's dealings with a ledger.

    Attributes:
        ledger: The ledger.
        dataset: Whose budget the run spends.
        run: The run's name.
        attempt: Who runs it now: each process that goes on with a run is another one.
    """

    ledger: Ledger
    dataset: str
    run: str
    attempt: str

    def begin(self, units: int, *, seeded: bool = False) -> None:
        """Hold what the run will spend in all, so that no other run can spend it; once.

        Args:
            units: How much.
            seeded: Whether its noise comes from a seed.

        Raises:
            BudgetError: More than remains was asked for; nothing is held.
        """
        check_line(self.run, "a run")
        with self.ledger.transaction("IMMEDIATE") as connection:
            account = self.ledger.find(connection, self.dataset)
            self.ledger.require_one_noise(connection, self.dataset, seeded=seeded)
            known = self._known(connection)
            if known is None and units <= account.remaining:
                append(connection, "runs", self.run, self.dataset, units, now())
        if known is None and units > account.remaining:
            raise BudgetError(self.ledger.refusal(account, units))
        if known is not None and known != (self.dataset, units):
            raise LedgerError(
                f"{self.ledger.path}: run {self.run!r} began with another dataset or budget; its "
                "release was changed, and cannot go on"
            )

    @property
    def begun(self) -> bool:
        """Whether the ledger knows the run."""
        with self.ledger.transaction() as connection:
            return self._known(connection) is not None

    def give_back(self) -> int:
        """Hold nothing any more; returns how much was held. The run cannot go on."""
        with self.ledger.transaction("IMMEDIATE") as connection:
            self._require_known(connection)
            held = self._held(connection)
            if not self._is_given_back(connection):
                append(connection, "given_back", self.run, now())
        return held

    def charge(self, step: str, units: int, mechanism: str, groups: Sequence[str]) -> Charge:
        """Pay for a step, or take up its charge again, and say that this attempt draws for it.

        Raises:
            LedgerError: What the step paid for was drawn and kept.
        """
        with self.ledger.transaction("IMMEDIATE") as connection:
            self._require_known(connection)
            if self._is_given_back(connection):
                raise LedgerError(
                    f"{self.ledger.path}: run {self.run!r} has given back what it held; begin anew"
                )
            charge = self._charge(connection, step)
            if charge is None:
                charge = self.ledger.insert(
                    connection,
                    (self.dataset, f"{self.run} {step}", mechanism, groups, units),
                    self._held(connection),
                )
                append(connection, "steps", charge.id, self.run, step)
            elif (charge.units, charge.mechanism, charge.groups) != (
                units,
                mechanism,
                tuple(groups),
            ):
                raise LedgerError(
                    f"{self.ledger.path}: run {self.run!r} has paid for something else at "
                    f"{step!r}; its release was changed, and cannot go on"
                )
            elif self._digest(connection, charge.id) is not None:
                raise LedgerError(
                    f"{self.ledger.path}: what run {self.run!r} paid for at {step!r} was drawn and "
                    "kept, and is not in the release; to draw it again would be to release it "
                    "twice for one charge. Go on with the release that has it, or begin anew"
                )
            number = next_id(connection, "attempts")
            append(connection, "attempts", number, charge.id, self.attempt, now())
        return charge

    def keep(self, step: str, digest: str) -> None:
        """Take down that what a step drew is kept, before anything is made of it.

        Raises:
            LedgerError: Another attempt draws for the step, or has kept what it drew.
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
                    f"{self.ledger.path}: another process goes on with run {self.run!r} at "
                    f"{step!r}; what was drawn here is thrown away, and nothing of it was released"
                )
            append(connection, "kept", charge.id, digest, now())

    def kept(self, step: str) -> str | None:
        """The digest of what a step drew, if that was kept."""
        with self.ledger.transaction() as connection:
            charge = self._charge(connection, step)
            return None if charge is None else self._digest(connection, charge.id)

    def paid(self, step: str) -> int | None:
        """What a step has paid, if it has."""
        with self.ledger.transaction() as connection:
            charge = self._charge(connection, step)
        return None if charge is None else charge.units

    def kept_at(self, digest: str) -> int:
        """The number of the charge for which one of the run's steps kept this; 0 if none did."""
        query = (
            "SELECT max(charge) FROM kept JOIN steps USING (charge) WHERE run = ? AND digest = ?"
        )
        with self.ledger.transaction() as connection:
            (found,) = connection.execute(query, (self.run, digest)).fetchone()
        return int(found or 0)

    def charges(self) -> list[Charge]:
        """All that the run has paid."""
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
        query = "SELECT dataset, units FROM runs WHERE run = ?"
        found: tuple[str, int] | None = connection.execute(query, (self.run,)).fetchone()
        return found

    def _is_given_back(self, connection: sqlite3.Connection) -> bool:
        query = "SELECT 1 FROM given_back WHERE run = ?"
        return connection.execute(query, (self.run,)).fetchone() is not None

    def _held(self, connection: sqlite3.Connection) -> int:
        """What the run may still spend of what it holds."""
        known = self._known(connection)
        if known is None or self._is_given_back(connection):
            return 0
        query = "SELECT coalesce(sum(units), 0) FROM charges JOIN steps ON charge = id "
        (spent,) = connection.execute(query + "WHERE steps.run = ?", (self.run,)).fetchone()
        return int(known[1] - spent)

    def _charge(self, connection: sqlite3.Connection, step: str) -> Charge | None:
        query = "SELECT charge FROM steps WHERE run = ? AND step = ?"
        found = connection.execute(query, (self.run, step)).fetchone()
        return None if found is None else self.ledger.numbered(connection, found[0])

    def _digest(self, connection: sqlite3.Connection, charge: int) -> str | None:
        query = "SELECT digest FROM kept WHERE charge = ?"
        found = connection.execute(query, (charge,)).fetchone()
        return None if found is None else str(found[0])


def held_by_runs(ledger: Ledger, dataset: str) -> list[tuple[str, float]]:
    """The runs that hold something of a dataset's budget, and how much, as ρ."""
    query = "SELECT run FROM runs WHERE dataset = ? ORDER BY at"
    with ledger.transaction() as connection:
        runs = [
            LedgerRun(ledger, dataset, run, "") for (run,) in connection.execute(query, (dataset,))
        ]
        held = [(run.run, units_to_rho(run._held(connection))) for run in runs]
    return [(run, rho) for run, rho in held if rho > 0]
