"""Measuring: run a function in a process of its own, on one core, and report time and memory."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Result:
    """One measurement."""

    name: str
    rows: int
    seconds: float
    peak_mb: float
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def micros_a_row(self) -> float:
        """Microseconds a row."""
        return 1e6 * self.seconds / self.rows


def measure(
    name: str,
    work: Callable[[Any], int | tuple[int, dict[str, Any]]],
    prepare: Callable[[], Any],
    *,
    cores: int = 1,
    repeats: int = 1,
) -> Result:
    """Time ``work`` on what ``prepare`` made, in a fresh process on that many cores.

    Args:
        name: What it is.
        work: What is timed; returns how many rows it did, and details if there are any.
        prepare: What comes before, untimed: making data, compiling.
        cores: How many cores the process may use.
        repeats: How often it runs; the best time counts.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, work, prepare, cores, repeats))
    process.start()
    theirs.close()  # or a process that dies would be waited for
    done, seconds, peak = ours.recv()
    process.join()
    rows, details = done if isinstance(done, tuple) else (done, {})
    return Result(name, rows, seconds, peak, details)


def _run(
    pipe: Any, work: Callable[[Any], Any], prepare: Callable[[], Any], cores: int, repeats: int
) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    state = prepare()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        done = work(state)
        best = min(best, time.perf_counter() - start)
    pipe.send((done, best, peak_mb()))


def peak_mb() -> float:
    """The most memory this process held; the kernel's ru_maxrss would count its parent's too."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmHWM in /proc/self/status")


def report(title: str, results: Sequence[Result]) -> None:
    """Print a table with ratios to the first result, and the same as JSON."""
    table = Table("", "rows", "seconds", "µs a row", "times ours", "peak MB", title=title)
    for result in results:
        table.add_row(
            result.name,
            f"{result.rows:,}",
            f"{result.seconds:.2f}",
            f"{result.micros_a_row:.3f}",
            f"{result.micros_a_row / results[0].micros_a_row:.2f}",
            f"{result.peak_mb:,.0f}",
        )
    Console(width=120).print(table)
    print_json(title, results)


def print_json(title: str, results: Sequence[Result]) -> None:
    """Print results as one line of JSON."""
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    print(json.dumps({"title": title, "machine": machine, "results": [asdict(r) for r in results]}))


class Phases:
    """A function of progress that notes when each phase was first and last reported.

    Attributes:
        first: The time of the first report of each phase.
        last: The time of the last report of each phase.
    """

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}

    def __call__(self, what: str, done: float, total: float | None, /) -> None:  # noqa: ARG002
        """Note the time."""
        now = time.perf_counter()
        self.first.setdefault(what, now)
        self.last[what] = now

    def seconds(self, what: str) -> float:
        """The time from the first to the last report of a phase."""
        return self.last[what] - self.first[what]
