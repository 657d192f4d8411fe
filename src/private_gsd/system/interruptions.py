"""Interruptions: Ctrl-C, heard and remembered, so that nothing is paid for after it."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


class Remembered:
    """A handler of Ctrl-C that raises KeyboardInterrupt and remembers that it did."""

    def __init__(self) -> None:
        self._heard = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Called when Ctrl-C is pressed."""
        self._heard = True
        signal.default_int_handler(number, frame)

    def check(self) -> None:
        """Raise again, if Ctrl-C was pressed."""
        if self._heard:
            raise KeyboardInterrupt

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Remember what is pressed within, where Python would raise KeyboardInterrupt.

        Python drops an exception that comes while it destroys an object, and a run would go on.
        Whoever checks before something that cannot be undone does not do it then.
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
        finally:  # once more, if it was pressed just then
            signal.signal(signal.SIGINT, signal.default_int_handler)


def raising_handler() -> Callable[[int, FrameType | None], object] | None:
    """The handler of Ctrl-C, where it raises KeyboardInterrupt in this thread."""
    if threading.current_thread() is not threading.main_thread():
        return None
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        return signal.default_int_handler
    return handler if isinstance(handler, Remembered) else None
