"""Tasks that wait for executors, on a session that stands in for Spark's."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from private_gsd.data.sources.spark_tasks import TIMEOUT, TaskWatch
from private_gsd.errors import SourceError

LONG = 20.0


class Session:
    """A session whose stages have the given numbers of running tasks, look after look.

    The last number stays.
    """

    def __init__(self, *active: int | None, seconds: Any = 0.1) -> None:
        self.active = list(active)
        self.looks = 0
        self.tags: list[str] = []
        self.cancelled = threading.Event()
        self.looked = threading.Event()
        self.conf = SimpleNamespace(get=lambda name, other: {TIMEOUT: str(seconds)}[name])
        self.sparkContext = self

    def addJobTag(self, tag: str) -> None:  # noqa: N802
        self.tags.append(tag)

    def removeJobTag(self, tag: str) -> None:  # noqa: N802
        self.tags.remove(tag)

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802
        assert self.tags == [tag]
        self.cancelled.set()

    def statusTracker(self) -> Any:  # noqa: N802
        return self

    def getActiveStageIds(self) -> list[int]:  # noqa: N802
        self.looks += 1
        if self.looks > 40:
            self.looked.set()
        if len(self.active) > 1:
            self.active.pop(0)
        return [] if self.active[0] is None else [7, 8]

    def getStageInfo(self, number: int) -> Any:  # noqa: N802
        # What became of a stage may be forgotten.
        return None if number == 8 else SimpleNamespace(numActiveTasks=self.active[0])


def test_jobs_whose_tasks_wait_are_cancelled() -> None:
    session = Session(0)
    watch = TaskWatch(session)
    with watch.watching():
        assert session.cancelled.wait(LONG)
    assert watch.cancelled
    assert not session.tags


@pytest.mark.parametrize("active", [(1,), (None,), (0, 0, 0, 1)])
def test_jobs_whose_tasks_run_are_not_cancelled(active: tuple[int | None, ...]) -> None:
    """Nor those that have no stage at present."""
    session = Session(*active)
    watch = TaskWatch(session)
    with watch.watching():
        assert session.looked.wait(LONG)
    assert not watch.cancelled
    assert not session.cancelled.is_set()
    assert not session.tags


def test_a_watch_ends_with_its_block() -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), TaskWatch(Session(1, seconds=600)).watching():
        assert threading.active_count() == before + 1
        raise ZeroDivisionError
    assert threading.active_count() == before


def test_a_session_without_a_context_is_not_watched() -> None:
    session = SimpleNamespace(conf=Session(0).conf)
    watch = TaskWatch(session)
    with watch.watching():
        pass
    assert not watch.cancelled


def test_a_session_that_was_stopped() -> None:
    """It has lost its Java, which takes tags."""
    session = SimpleNamespace(conf=Session(0).conf, sparkContext=SimpleNamespace())
    with pytest.raises(ConnectionError), TaskWatch(session).watching():
        pass


@pytest.mark.parametrize("setting", ["soon", "0", "-1", "inf", "nan", "10min"])
def test_a_timeout_that_is_no_number_of_seconds(setting: str) -> None:
    with pytest.raises(SourceError) as caught:
        TaskWatch(Session(0, seconds=setting))
    assert str(caught.value) == (
        "spark.privateGsd.taskTimeout must be a number of seconds, such as 3600, and not "
        f"{setting!r}"
    )
