"""Tasks of Spark that wait for executors: Spark would wait for ever, and its jobs are watched."""

from __future__ import annotations

import math
import secrets
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from private_gsd.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The setting of a session, and its default.
TIMEOUT = "spark.privateGsd.taskTimeout"
SECONDS = 600.0
# The time between two looks at the tasks.
INTERVAL = 1.0


class TaskWatch:
    """Cancels jobs of Spark while no task has run for too long.

    A session without a ``SparkContext``, as of Spark Connect, is not watched.

    Args:
        session: The session.

    Attributes:
        seconds: The longest time in which tasks wait and none runs.
        cancelled: Whether the jobs were cancelled.
    """

    def __init__(self, session: Any) -> None:
        self.seconds = _seconds(session.conf.get(TIMEOUT, str(SECONDS)))
        self.cancelled = False
        self._context: Any = None
        with suppress(Exception):
            self._context = session.sparkContext
        self._tag = f"private-gsd-{secrets.token_hex(8)}"
        self._ended = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the jobs that this thread begins within the block.

        Raises:
            ConnectionError: The session was stopped.
        """
        if self._context is None:
            yield
            return
        try:
            self._context.addJobTag(self._tag)
        except AttributeError:  # of the Java that it had
            raise ConnectionError from None
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            with suppress(Exception):  # of a context that was stopped meanwhile
                self._context.removeJobTag(self._tag)

    def _watch(self) -> None:
        # A context that was stopped has no tasks, and the jobs have failed.
        with suppress(Exception):
            tracker = self._context.statusTracker()
            last = time.monotonic()
            while not self._ended.wait(min(INTERVAL, self.seconds / 4)):
                if not _waiting(tracker):
                    last = time.monotonic()
                elif time.monotonic() - last > self.seconds:
                    self.cancelled = True
                    self._context.cancelJobsWithTag(self._tag)
                    return


def _waiting(tracker: Any) -> bool:
    """Whether tasks wait, and none runs."""
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return bool(stages) and not any(stage and stage.numActiveTasks for stage in stages)


def _seconds(setting: str) -> float:
    with suppress(ValueError):
        seconds = float(setting)
        if 0 < seconds < math.inf:
            return seconds
    raise SourceError(f"{TIMEOUT} must be a number of seconds, such as 3600, and not {setting!r}")
