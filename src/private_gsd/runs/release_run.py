"""A run that fills a release folder and pays from a ledger; begun now, or resumed."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.data.encoding import Encoder
from private_gsd.errors import GsdError, LedgerError
from private_gsd.privacy.accountant import require_same
from private_gsd.privacy.accounts import Account
from private_gsd.privacy.ledger.ledger import Ledger
from private_gsd.privacy.ledger.reservations import Reservation
from private_gsd.privacy.record import release_record
from private_gsd.runs.payments import LedgerPayments
from private_gsd.schema.neighbours import relation_of
from private_gsd.system.file_systems import is_within
from private_gsd.system.interruptions import InterruptGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_gsd.counting.exact import ExactCounts
    from private_gsd.runs.release import Release
    from private_gsd.runs.run_folder import RunFolder
    from private_gsd.runs.runner import Runner
    from private_gsd.workloads import Workload


@dataclass(frozen=True)
class ReleaseRun:
    """One run on a release folder, which is locked, and on a ledger.

    Attributes:
        release: The release, begun.
        runner: The run.
    """

    release: RunFolder
    runner: Runner

    def run(
        self, exact: Callable[[Workload | None], ExactCounts], moved: Path | None = None
    ) -> None:
        """Do all that is not done yet, and finish the release.

        Args:
            exact: Gives exact counts where they are needed, see ``Runner.run``.
            moved: Where the ledger is, if it is no longer where it was.
        """
        release, settings = self.release, self.runner.settings
        release.check_inputs()
        self.runner.check()  # what a projector needs may be gone since the run began
        self.runner.precompile()
        facts = release.run
        path = self._ledger_path(facts, moved)
        # Whose ledger it is: the run's own, unless another was named before the first was opened.
        own = facts.get("own_ledger") is True and (moved is None or facts["opened"])
        makes = own or facts.get("creates_ledger") is True
        first = Account(settings.dataset, settings.rho, settings.budget.neighbours, unit=self._unit)
        if moved is not None or not makes:
            require_ledger(path, settings.dataset)
        created = first if moved is None and makes else False
        interruptions = InterruptGuard()
        with interruptions.listening(), Ledger(path, create=created) as ledger:
            reservation = Reservation(ledger, settings.dataset, facts["run"], secrets.token_hex(8))
            self._check_account(ledger)
            planned = self.runner.planned_units
            release.note(opened=True)
            reservation.reserve(planned, seeded=settings.insecure_noise_seed is not None)
            if moved is not None:
                release.note(ledger=str(path), own_ledger=own)
            release.tidy(reservation.committed_at)
            payments = LedgerPayments(reservation, interruptions)
            measured, table, unspent = self.runner.run(exact, payments, release)
            mine = reservation.charges()
            if sum(charge.units for charge in mine) + unspent != planned or not (
                set(measured.charges) <= {str(charge.id) for charge in mine}
            ):
                raise LedgerError(f"{path}: does not know what paid for these measurements")
            if unspent:  # others may have it; the run has come to its end
                reservation.cancel()
            record = release_record(
                ledger.privacy_record(settings.dataset),
                self.runner.knowledge.claims(),
                alone=own and len(mine) == len(ledger.charges(settings.dataset)),
            )
        if settings.rows is None:
            release.change_rows(len(table))
        release.finish(Encoder(release.schema).decode(table), record)
        if self._unit is not None:
            release.note(unit_key=None)  # nothing needs it any more

    @property
    def _unit(self) -> str | None:
        """The column with the ids of the unit of protection; None where it is a record."""
        return self.runner.target.schema.unit_column

    def _ledger_path(self, facts: dict[str, Any], moved: Path | None) -> Path:
        """Where the ledger is; refuses a place where it would be published, or is gone."""
        path = moved or Path(facts["ledger"])
        if is_within(path, self.release.folder):
            raise LedgerError(
                f"{path}: is in the release, and would be published with it; put the ledger "
                "elsewhere"
            )
        if facts["opened"] and not path.exists():
            raise LedgerError(
                f"{path}: the ledger that the run has paid from is gone; put it back, or say where "
                "it is with --ledger"
            )
        return path

    def _check_account(self, ledger: Ledger) -> None:
        """Refuse a dataset whose guarantee is stated on other terms than the run's."""
        settings = self.runner.settings
        account, budget = ledger.account(settings.dataset), settings.rho
        require_same(account.relation, relation_of(settings.budget.neighbours, self._unit))
        stated = (account.budget.delta, account.budget.conversion)
        if stated != (budget.delta, budget.conversion):
            raise LedgerError(
                f"{ledger.path}: dataset {settings.dataset!r} has delta {stated[0]!r} and the "
                f"{stated[1]} conversion, not {budget.delta!r} and {budget.conversion}; if nothing "
                "was released through this ledger, remove it"
            )

    @property
    def has_begun(self) -> bool:
        """Whether the run may have reserved or spent anything."""
        facts = self.release.run
        if not facts["opened"]:
            return False
        try:
            with Ledger(facts["ledger"], create=False, read_only=True) as ledger:
                dataset = self.runner.settings.dataset
                return Reservation(ledger, dataset, facts["run"], "").exists
        except GsdError:
            return True


def ledger_beside(release: Release) -> Path:
    """The ledger of a run that was given none: beside its folder, not to be published."""
    return release.folder.with_name(release.folder.name + ".ledger.db")


def require_ledger(path: Path, dataset: str) -> None:
    """Refuse a ledger that is not there: only who says so makes one."""
    if not path.exists():
        raise LedgerError(
            f"{path}: no such ledger; if the name is right, make it first, with a total for all "
            f"releases of the dataset: private-gsd ledger create {shlex.quote(str(path))} "
            f"--dataset {shlex.quote(dataset)} --epsilon TOTAL --delta DELTA; or say "
            "--create-ledger (create_ledger=True) for one whose total is the budget of this release"
        )
