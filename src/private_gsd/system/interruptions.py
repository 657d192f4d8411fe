"""Interruptions: a guard that remembers Ctrl-C, so that nothing is paid for after it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


class InterruptGuard:
    """A handler of Ctrl-C that raises KeyboardInterrupt and remembers that it did."""

    def __init__(self) -> None:
        self._heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember that Ctrl-C was pressed, and raise KeyboardInterrupt."""
        self._heard = True
        signal.default_int_handler(number, frame)

    def check(self) -> None:
        """Raise KeyboardInterrupt again if Ctrl-C was pressed."""
        if self._heard:
            raise KeyboardInterrupt

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Install the guard within a block, if Ctrl-C raises KeyboardInterrupt in this thread.

        Python drops an exception that is raised while an object is destroyed, and a run would
        continue. Call ``check`` before a step that cannot be undone to stop the run.
        """
        if raising_handler() is not signal.default_int_handler:
            yield
            return
        try:
            try:
                signal.signal(signal.SIGINT, self)
                yield
            finally:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        finally:  # again, in case Ctrl-C was pressed in between
            signal.signal(signal.SIGINT, signal.default_int_handler)


def raising_handler() -> Callable[[int, FrameType | None], object] | None:
    """The handler of Ctrl-C, if it raises KeyboardInterrupt in this thread; else None."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        return signal.default_int_handler
    return handler if isinstance(handler, InterruptGuard) else None
