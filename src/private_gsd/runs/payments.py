"""Payments: how the steps of a run are paid for. One charge stands for one draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from private_gsd.privacy.accountant import Accountant, LocalAccountant, require_same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.privacy.budget import Conversion
    from private_gsd.privacy.ledger.reservations import Reservation
    from private_gsd.system.interruptions import InterruptGuard


class Payments(Protocol):
    """Pays for steps by their names, and knows which of them have committed what they drew."""

    @property
    def name(self) -> str:
        """Who pays, in words."""

    def accountant(self, step: str) -> Accountant:
        """What is charged for a step, before anything is drawn."""

    def paid(self, step: str) -> int | None:
        """What a step has paid, in units; None where it has not paid."""

    def commit(self, step: str, digest: str) -> None:
        """Take down the digest of what a step drew, before anybody sees it."""

    def committed(self, step: str) -> str | None:
        """The digest of what a step drew; None where nothing was committed."""


@dataclass(frozen=True)
class LedgerPayments:
    """Payments from the reservation of one run in a ledger.

    Attributes:
        reservation: The run's dealings with the ledger.
        interruptions: Nothing is paid after Ctrl-C.
    """

    reservation: Reservation
    interruptions: InterruptGuard

    @property
    def name(self) -> str:
        """The ledger."""
        return str(self.reservation.ledger.path)

    def accountant(self, step: str) -> Accountant:
        """Charges the reservation once for a step, however often the step is drawn."""
        return StepAccountant(self.reservation, step, self.interruptions)

    def paid(self, step: str) -> int | None:
        """By the ledger."""
        return self.reservation.paid(step)

    def commit(self, step: str, digest: str) -> None:
        """In the ledger."""
        self.reservation.commit(step, digest)

    def committed(self, step: str) -> str | None:
        """By the ledger."""
        return self.reservation.committed(step)


class UnresumedPayments:
    """Payments of runs that never resume: nothing is known of what they paid and drew before."""

    def paid(self, step: str) -> int | None:  # noqa: ARG002
        """Nothing."""
        return None

    def commit(self, step: str, digest: str) -> None:
        """Nothing is taken down."""

    def committed(self, step: str) -> str | None:  # noqa: ARG002
        """Nothing."""
        return None


@dataclass(frozen=True)
class SweepPayments(UnresumedPayments):
    """Payments of one run of a sweep, whose runs share a reservation.

    Attributes:
        reservation: The sweep's dealings with the ledger.
        number: The number of the run.
        interruptions: Nothing is paid after Ctrl-C.
    """

    reservation: Reservation
    number: int
    interruptions: InterruptGuard

    @property
    def name(self) -> str:
        """The ledger."""
        return str(self.reservation.ledger.path)

    def accountant(self, step: str) -> Accountant:
        """Charges the sweep's reservation."""
        return StepAccountant(self.reservation, f"{self.number}: {step}", self.interruptions)


class UnledgeredPayments(UnresumedPayments):
    """Payments of an experiment with seeded noise, which nobody adds up.

    Args:
        accountant: Counts what the run spends.
    """

    name = "an experiment"

    def __init__(self, accountant: LocalAccountant) -> None:
        self._accountant = accountant

    def accountant(self, step: str) -> Accountant:  # noqa: ARG002
        """The same for all steps."""
        return self._accountant


@dataclass(frozen=True)
class StepAccountant:
    """Pays for one step of a run, once."""

    reservation: Reservation
    step: str
    interruptions: InterruptGuard

    @property
    def conversion(self) -> Conversion:
        """The conversion of the dataset's budget."""
        return self.reservation.ledger.account(self.reservation.dataset).budget.conversion

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        """The number of the charge, new or old; nothing is paid after Ctrl-C."""
        self.interruptions.check()
        require_same(self.reservation.ledger.account(self.reservation.dataset).relation, neighbours)
        return str(self.reservation.charge(self.step, units, mechanism, groups).id)
