"""Checkpoints: what a run leaves behind as it goes on, on disk or in memory.

What was drawn is saved before anything is made of it, so that a run that dies resumes from there. A
step that was paid for and not saved is drawn again under the same charge: what it drew the first
time died with the process, and the ledger sees to it that nobody commits a second draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.privacy.measuring import NoisyRecordCount

    Matrix = NDArray[np.float64]
    # Called with the digest of what is to be saved, once it is on the disk and before it is seen.
    Commit = Callable[[str], object]


class Checkpoint(Protocol):
    """What a run has done so far. Everything that it is given is saved when the call returns."""

    def measurements(self) -> Measurements | None:
        """All that was measured; None if nothing was."""

    def selections(self) -> list[list[int]]:
        """The groups that were selected, step by step; the last ones may not be measured yet."""

    def table(self, number: int) -> Matrix | None:
        """One of the run's synthetic tables, encoded; at least the last two are there."""

    def n_records(self) -> NoisyRecordCount | None:
        """The number of records; None if it was not measured."""

    def digest(self, kind: str) -> str:
        """The digest of what is saved: "n_records", "selections" or "measurements"."""

    def save_n_records(self, total: NoisyRecordCount, commit: Commit) -> None:
        """Save the number of records."""

    def save_selections(self, selections: list[list[int]], commit: Commit) -> None:
        """Save which groups were selected."""

    def save_measurements(self, measurements: Measurements, commit: Commit) -> None:
        """Save what was measured."""

    def save_table(self, number: int, table: Matrix) -> None:
        """Save a synthetic table; those before the last one may go."""


class MemoryCheckpoint:
    """A checkpoint that ends with the process. Nothing resumes from it."""

    def __init__(self) -> None:
        self.measured: Measurements | None = None
        self._selections: list[list[int]] = []
        self._tables: dict[int, Matrix] = {}
        self._n_records: NoisyRecordCount | None = None

    def measurements(self) -> Measurements | None:
        """All that was measured."""
        return self.measured

    def selections(self) -> list[list[int]]:
        """The groups that were selected."""
        return self._selections

    def table(self, number: int) -> Matrix | None:
        """One of the last two tables."""
        return self._tables.get(number)

    def n_records(self) -> NoisyRecordCount | None:
        """The number of records."""
        return self._n_records

    def digest(self, kind: str) -> str:  # noqa: ARG002
        """Nothing is held against a ledger."""
        return ""

    def save_n_records(self, total: NoisyRecordCount, commit: Commit) -> None:
        """Remember the number of records."""
        commit("")
        self._n_records = total

    def save_selections(self, selections: list[list[int]], commit: Commit) -> None:
        """Remember which groups were selected."""
        commit("")
        self._selections = selections

    def save_measurements(self, measurements: Measurements, commit: Commit) -> None:
        """Remember what was measured."""
        commit("")
        self.measured = measurements

    def save_table(self, number: int, table: Matrix) -> None:
        """Remember a table and the one before it."""
        before = {number - 1: self._tables[number - 1]} if number - 1 in self._tables else {}
        self._tables = {**before, number: table}
