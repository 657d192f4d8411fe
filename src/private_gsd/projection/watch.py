"""Watching a search: progress for whoever wants it, and reasons to stop early."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from private_gsd.errors import ProjectionError
from private_gsd.system.interruptions import raising_handler

Reason = Literal["converged", "generations", "time", "callback", "interrupted"]

# Kernels are called for about so long at a time: in between, an interruption is heard.
SLICE_SECONDS = 0.05
REPORT_SECONDS = 0.1


@dataclass(frozen=True)
class Progress:
    """Where a search stands.

    Attributes:
        generation: How many generations are done.
        loss: The loss. While islands are fitted, their mean, which is more than what they have
            together; those not begun count as random tables do. While answers are denoised, that
            of the tables whose mean is taken or of the kinds of rows, in weights of their own.
        edits: How many edits were scored.
        seconds: Since the search began; compiling aside.
    """

    generation: int
    loss: float
    edits: int
    seconds: float

    @property
    def edits_a_second(self) -> float:
        """How many edits are scored in a second."""
        return self.edits / self.seconds if self.seconds > 0 else 0.0


Callback = Callable[[Progress], object]


class Stopped(Exception):  # noqa: N818
    """Raised within a search to end it early; the table is whole."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class Watch:
    """Tells the callback how a search goes on, and the search when to stop.

    Args:
        unit: What a loss in the kernels' measure is multiplied with.
        seconds: How long the search may take.
        callback: Told of progress; if it returns true, the search stops.

    Attributes:
        interrupted: Whether Ctrl-C was heard.
        compile_seconds: How long compiling took.
        edits: How many edits were scored.
        history: Where the search stood after each generation.
    """

    def __init__(self, unit: float, seconds: float | None, callback: Callback | None) -> None:
        if callback is not None and not callable(callback):
            raise ProjectionError(f"callback must be a function, not {callback!r}")
        self.unit = unit
        self._limit = seconds
        self._callback = callback
        self._begin = time.perf_counter()
        self._reported = -REPORT_SECONDS
        self._raises = True
        self.interrupted = False
        self.compile_seconds = 0.0
        self.edits = 0
        self.history: list[Progress] = []

    @property
    def seconds(self) -> float:
        """Since the search began, compiling aside."""
        return time.perf_counter() - self._begin - self.compile_seconds

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """What is done within is not part of the search's time."""
        begin = time.perf_counter()
        yield
        self.compile_seconds += time.perf_counter() - begin

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Let Ctrl-C stop the search at the next look, and a second one at once.

        So it is where KeyboardInterrupt would be raised: in the main thread, unless somebody else
        already listens. An exception could come at any moment, also when a table is torn.

        What is heard after the last look stops no search: ``interrupted`` says so, and whoever
        listened must look at it when all is done. A signal that comes later raises as usual.
        """

        raising = raising_handler()
        if raising is None:
            yield
            return

        def hear(number: int, frame: FrameType | None) -> None:
            second, self.interrupted = self.interrupted, True
            if second and self._raises:
                self._raises = False  # once, so that nothing keeps the handler from coming back
                raising(number, frame)

        try:
            try:
                signal.signal(signal.SIGINT, hear)
                yield
            finally:
                self._raises = False
        finally:
            signal.signal(signal.SIGINT, raising)

    def look(self) -> None:
        """Stop if somebody wants it, or time is up."""
        if self.interrupted:
            raise Stopped("interrupted")
        if self._limit is not None and self.seconds >= self._limit:
            raise Stopped("time")

    def report(self, generation: int, loss: float, *, whole: bool) -> None:
        """Tell of progress, and look.

        Args:
            generation: How many generations are done.
            loss: The loss, in the kernels' measure.
            whole: Whether a generation has just ended; in between, reports are rarer.
        """
        seconds = self.seconds
        if whole or seconds - self._reported >= REPORT_SECONDS:
            self._reported = seconds
            progress = Progress(generation, max(loss, 0.0) * self.unit, self.edits, seconds)
            if whole:
                self.history.append(progress)
            if self._callback is not None and self._callback(progress):
                raise Stopped("callback")
        self.look()


class Slices:
    """Cuts work into calls of a length that is short to wait for; the first are the shortest."""

    def __init__(self) -> None:
        self._size = 1

    def of(self, total: int) -> Iterator[slice]:
        """Slices of some items; how long a caller has one tells how long the next should be."""
        begin = 0
        while begin < total:
            end = min(begin + self._size, total)
            start = time.perf_counter()
            yield slice(begin, end)
            rate = (end - begin) / max(time.perf_counter() - start, 1e-9)
            self._size = int(min(max(rate * SLICE_SECONDS, 1), 4 * self._size + 1))
            begin = end
