"""Watch: reports the progress of a projection, records its history, and stops it early."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from private_gsd.errors import ProjectionError
from private_gsd.system.interruptions import raising_handler
from private_gsd.system.progress import Progress, ignore, shown

Reason = Literal["converged", "generations", "time", "stopped", "interrupted"]

# Length of one call of a kernel: interruptions are handled between calls.
SLICE_SECONDS = 0.05
# Least time between two reports within a generation.
REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class SearchState:
    """The state of a search after a generation.

    Attributes:
        generation: The number of generations so far.
        loss: The loss.
        edits: The number of edits scored so far.
        seconds: Time since the search began, without compilation.
    """

    generation: int
    loss: float
    edits: int
    seconds: float


class Stopped(Exception):  # noqa: N818
    """Raised within a search to end it early; the table is complete at that moment."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class Watch:
    """Reports the progress of a projection, and stops the projection early.

    Args:
        unit: The factor from a loss in the kernels' measure to the loss in the history.
        seconds: The time limit; None for no limit.
        progress: Called with the progress; if it returns true, the projection stops.
        what: The name of the work in reports.
        total: The number of steps of the work, where it is known.

    Attributes:
        interrupted: Whether Ctrl-C was pressed.
        compile_seconds: The time that compilation took.
        edits: The number of edits scored so far.
        history: The state of the search after each generation.
    """

    def __init__(
        self,
        unit: float = 1.0,
        seconds: float | None = None,
        progress: Progress = ignore,
        *,
        what: str = "searching",
        total: int | None = None,
    ) -> None:
        if not callable(progress):
            raise ProjectionError(f"progress must be a function, not {progress!r}")
        self._unit = unit
        self._limit = seconds
        self._progress = progress
        self._what = what
        self._total = total
        self._begin = time.perf_counter()
        self._reported = -REPORT_SECONDS
        self._raises = True
        self.interrupted = False
        self.compile_seconds = 0.0
        self.edits = 0
        self.history: list[SearchState] = []

    @property
    def seconds(self) -> float:
        """Time since the search began, without compilation."""
        return time.perf_counter() - self._begin - self.compile_seconds

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """The time within this block counts as compilation."""
        begin = time.perf_counter()
        yield
        self.compile_seconds += time.perf_counter() - begin

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Report what is announced within this block, too."""
        with shown(self._progress) as self._progress:
            yield

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle Ctrl-C: the first stops the search at its next check, the second at once.

        The handler is installed where KeyboardInterrupt would be raised: in the main thread, unless
        another handler is set. An exception could otherwise be raised at any moment, even while an
        edit is half made.

        An interruption after the last check does not stop the search; ``end_reason`` gives it at
        the end. Later signals raise KeyboardInterrupt as usual.
        """

        raising = raising_handler()
        if raising is None:
            yield
            return

        def handle(number: int, frame: FrameType | None) -> None:
            second, self.interrupted = self.interrupted, True
            if second and self._raises:
                self._raises = False  # once, so that the handler is always restored
                raising(number, frame)

        try:
            try:
                signal.signal(signal.SIGINT, handle)
                yield
            finally:
                self._raises = False
        finally:
            signal.signal(signal.SIGINT, raising)

    def end_reason(self, reason: Reason) -> Reason:
        """The reason why the projection ended: an interruption, also one after the last check."""
        return "interrupted" if self.interrupted else reason

    def check(self) -> None:
        """Raise ``Stopped`` after an interruption or when the time limit is reached."""
        if self.interrupted:
            raise Stopped("interrupted")
        if self._limit is not None and self.seconds >= self._limit:
            raise Stopped("time")

    def report(self, generation: int, what: str | None = None) -> None:
        """Report progress within a generation, unless the last report is recent, and check.

        Args:
            generation: The number of generations so far.
            what: The name of the work; that of the watch by default.
        """
        seconds = self.seconds
        if seconds - self._reported >= REPORT_SECONDS:
            self._call(generation, seconds, what or self._what)
        self.check()

    def record(self, generation: int, loss: float) -> None:
        """Add the state after a generation to the history, report progress, and check.

        Args:
            generation: The number of generations so far.
            loss: The loss, in the kernels' measure.
        """
        seconds = self.seconds
        state = SearchState(generation, max(loss, 0.0) * self._unit, self.edits, seconds)
        self.history.append(state)
        self._call(generation, seconds, self._what)
        self.check()

    def _call(self, generation: int, seconds: float, what: str) -> None:
        self._reported = seconds
        total = self._total if what == self._what else None
        if self._progress(what, generation, total):
            raise Stopped("stopped")


class Slices:
    """Divides work into calls of about ``SLICE_SECONDS`` each; the first calls are shorter."""

    def __init__(self) -> None:
        self._size = 1

    def of(self, total: int) -> Iterator[slice]:
        """Slices of ``total`` items; the time that one takes sets the length of the next."""
        begin = 0
        while begin < total:
            end = min(begin + self._size, total)
            start = time.perf_counter()
            yield slice(begin, end)
            rate = (end - begin) / max(time.perf_counter() - start, 1e-9)
            self._size = int(min(max(rate * SLICE_SECONDS, 1), 4 * self._size + 1))
            begin = end
