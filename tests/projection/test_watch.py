"""Watches: what they report, when they stop, and how work is divided."""

from __future__ import annotations

import time

import pytest

from private_gsd.errors import ProjectionError
from private_gsd.projection.watch import Slices, Stopped, Watch


def test_the_history_has_the_loss_of_every_generation() -> None:
    watch = Watch(unit=2.0)
    watch.edits = 7
    watch.record(1, 3.0)
    watch.edits = 9
    watch.record(2, -1e-12)  # rounding
    assert [(s.generation, s.loss, s.edits) for s in watch.history] == [(1, 6.0, 7), (2, 0.0, 9)]
    assert 0 <= watch.history[0].seconds <= watch.history[1].seconds <= watch.seconds


def test_progress_is_what_is_done_of_how_much() -> None:
    reports: list[tuple[str, float, float | None]] = []
    watch = Watch(progress=lambda *each: reports.append(each), what="fitting", total=5)
    watch.report(0)
    watch.report(0)  # too soon after the last one
    watch.record(1, 1.0)
    watch.record(2, 1.0)
    assert reports == [("fitting", 0, 5), ("fitting", 1, 5), ("fitting", 2, 5)]


def test_work_of_another_name_has_no_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("private_gsd.projection.watch.REPORT_SECONDS", 0.0)
    reports: list[tuple[str, float, float | None]] = []
    watch = Watch(progress=lambda *each: reports.append(each), total=5)
    watch.report(0, "denoising")
    watch.report(1)
    assert reports == [("denoising", 0, None), ("searching", 1, 5)]


@pytest.mark.parametrize("step", ["report", "record", "check"])
def test_a_time_limit_and_an_interruption_stop(step: str) -> None:
    steps = {
        "report": lambda watch: watch.report(0),
        "record": lambda watch: watch.record(1, 0.0),
        "check": lambda watch: watch.check(),
    }
    with pytest.raises(Stopped, match="time"):
        steps[step](Watch(seconds=0.0))
    interrupted = Watch(seconds=0.0)
    interrupted.interrupted = True
    with pytest.raises(Stopped, match="interrupted"):
        steps[step](interrupted)
    steps[step](Watch(seconds=1000.0))


def test_progress_that_returns_true_stops() -> None:
    with pytest.raises(Stopped, match="stopped"):
        Watch(progress=lambda *_: True).report(0)
    Watch(progress=lambda *_: False).report(0)
    with pytest.raises(ProjectionError, match="progress must be a function, not 3"):
        Watch(progress=3)  # type: ignore[arg-type]


def test_compilation_does_not_count() -> None:
    begin = time.perf_counter()
    watch = Watch()
    with watch.compiling():
        time.sleep(0.05)
    assert watch.compile_seconds >= 0.05
    assert watch.seconds <= time.perf_counter() - begin - 0.05


@pytest.mark.parametrize("total", [0, 1, 7, 1000])
def test_slices_are_all_of_the_items_in_order(total: int) -> None:
    items = list(range(total))
    assert [each for piece in Slices().of(total) for each in items[piece]] == items


def test_slices_grow_while_calls_are_short() -> None:
    sizes = [piece.stop - piece.start for piece in Slices().of(10_000)]
    assert sizes[0] == 1
    assert max(sizes) > 100


def test_an_interruption_after_the_last_check_is_why_it_ended() -> None:
    watch = Watch()
    assert watch.end_reason("converged") == "converged"
    watch.interrupted = True
    assert watch.end_reason("converged") == "interrupted"
