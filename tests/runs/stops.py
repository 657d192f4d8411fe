"""Runs in memory that are stopped at any moment and resumed, and that watch every draw."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_gsd.measurements.measurements import Measurements
from private_gsd.privacy.budget import Conversion, RhoBudget
from private_gsd.privacy.measuring import NoisyRecordCount
from private_gsd.privacy.noise import InsecureSeededNoise
from private_gsd.runs.checkpoint import MemoryCheckpoint


class Stopped(BaseException):
    """What ends a run, as a kill would."""


@dataclass
class Moments:
    """Counts the moments at which a run could be killed, and kills it at one of them.

    Attributes:
        kill_at: The number of the moment; None for a run that is not killed.
    """

    kill_at: int | None = None
    passed: int = 0

    def __call__(self) -> None:
        """One more moment has come."""
        self.passed += 1
        if self.passed - 1 == self.kill_at:
            raise Stopped


@dataclass
class WatchedPayments:
    """Payments that outlive a run, and that see to it that one charge stands for one draw.

    Attributes:
        budget: What may be spent.
        charges: What was paid, by step: units, mechanism and groups.
        commits: The digest of what a step drew.
        drawing: The step that has paid and not committed.
        moments: Called before and after each charge.
    """

    budget: RhoBudget
    charges: dict[str, tuple[int, str, tuple[str, ...]]] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    drawing: str | None = None
    moments: Moments = field(default_factory=Moments)
    name = "payments of a test"

    @property
    def spent(self) -> int:
        """What was paid in all."""
        return sum(units for units, _, _ in self.charges.values())

    def accountant(self, step: str) -> Any:
        """Charges for one step."""
        return _Accountant(self, step)

    def paid(self, step: str) -> int | None:
        """What a step has paid."""
        return self.charges[step][0] if step in self.charges else None

    def commit(self, step: str, digest: str) -> None:
        """Take down what the step that draws has drawn, once."""
        assert step == self.drawing, f"{step} commits, and {self.drawing} draws"
        assert step not in self.commits, f"{step} commits twice"
        self.commits[step] = digest
        self.drawing = None

    def committed(self, step: str) -> str | None:
        """What a step has committed."""
        return self.commits.get(step)


@dataclass(frozen=True)
class _Accountant:
    payments: WatchedPayments
    step: str

    @property
    def conversion(self) -> Conversion:
        return self.payments.budget.conversion

    def charge(self, units: int, mechanism: str, groups: Sequence[str], neighbours: str) -> str:
        del neighbours
        mine, before = (units, mechanism, tuple(groups)), self.payments.charges.get(self.step)
        assert self.step not in self.payments.commits, f"{self.step} draws twice"
        assert before in (None, mine), f"{self.step} pays for something else"
        self.payments.moments()
        self.payments.charges[self.step] = mine
        assert self.payments.spent <= self.payments.budget.units
        self.payments.drawing = self.step
        self.payments.moments()
        return str(list(self.payments.charges).index(self.step))


class SavedCheckpoint(MemoryCheckpoint):
    """A checkpoint that outlives a run.

    Attributes:
        moments: Called before and after anything is saved.
    """

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        self.moments = moments
        self.digests: dict[str, str] = {}

    def digest(self, kind: str) -> str:
        """Of what is saved."""
        return self.digests[kind]

    def save_n_records(self, total: NoisyRecordCount, commit: Any) -> None:
        """Save the number of records."""
        self._save("n_records", total, super().save_n_records, commit)

    def save_selections(self, selections: list[list[int]], commit: Any) -> None:
        """Save which groups were selected."""
        self._save("selections", selections, super().save_selections, commit)

    def save_measurements(self, measurements: Measurements, commit: Any) -> None:
        """Save what was measured."""
        self._save("measurements", measurements, super().save_measurements, commit)

    def save_table(self, number: int, table: NDArray[np.float64]) -> None:
        """Save a table."""
        self.moments()
        super().save_table(number, table)
        self.moments()

    def _save(self, kind: str, value: Any, save: Callable[..., None], commit: Any) -> None:
        self.moments()
        content = value.counts.tobytes() if isinstance(value, Measurements) else repr(value)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()
        save(value, lambda _: commit(digest))
        self.digests[kind] = digest
        self.moments()


@dataclass
class WatchedNoise:
    """Seeded noise that is drawn only where a step has paid for it.

    Attributes:
        payments: Who pays.
        stream: The stream of the step.
        streams: The step that each stream is of.
    """

    payments: WatchedPayments
    stream: int
    streams: dict[int, str]
    private = False

    def __post_init__(self) -> None:
        self._noise = InsecureSeededNoise(self.stream)

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """Gaussian noise, if it is paid for."""
        self._check()
        return self._noise.gaussian(counts, scale)

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """A selection, if it is paid for."""
        self._check()
        return self._noise.top_k(scores, k, scale)

    def _check(self) -> None:
        step = self.payments.drawing
        assert step is not None, "noise is drawn that nobody has paid for"
        assert self.streams.setdefault(self.stream, step) == step, "two steps have one stream"
