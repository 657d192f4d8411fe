"""Running: all runs of an experiment, in parallel, each kept as it ends, so that none is redone."""

from __future__ import annotations

import time
import traceback
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.data import Data, Named, load
from experiments.results import run_key, save_run, saved_run
from private_gsd.errors import GsdError, require

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from experiments.experiment import Config, Experiment, Row, Settings


class Planned(NamedTuple):
    """A run before it is made."""

    experiment: str
    data: Named | None
    settings: dict[str, Any]
    key: str


class Failure(NamedTuple):
    """A run that went wrong: which, and why."""

    run: Planned
    why: str


class Outcome(NamedTuple):
    """What came of an experiment: rows of all finished runs, what failed, how many were new."""

    rows: list[Row]
    failures: list[Failure]
    fresh: int


def plan(experiment: Experiment, config: Config, named: Sequence[Named]) -> list[Planned]:
    """All runs of an experiment, on all data."""
    runs = []
    for each in named if experiment.uses_data else [None]:
        data = None if each is None else prepared(experiment, each)
        digest = "" if data is None else data.digest
        for settings in experiment.plan(config, data):
            key = run_key(experiment.name, digest, settings)
            runs.append(Planned(experiment.name, each, dict(settings), key))
    return runs


@lru_cache(maxsize=2)
def prepared(experiment: Experiment, named: Named) -> Data:
    """The data as an experiment wants it."""
    return experiment.prepare(load(named))


def run_all(
    experiment: Experiment, runs: Sequence[Planned], folder: Path, *, jobs: int, console: Console
) -> Outcome:
    """Make the runs that are not made yet, and gather all.

    Args:
        experiment: Whose runs.
        runs: All of them.
        folder: Where finished runs are kept.
        jobs: How many at a time.
        console: Where progress is shown.
    """
    joblib = require("joblib", what="An experiment", extra="experiments")
    waiting = [run for run in runs if saved_run(folder, run.key) is None]
    failures = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(
            experiment.name, total=len(runs), completed=len(runs) - len(waiting)
        )
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        for number, why in parallel(
            joblib.delayed(run_one)(number, run, folder) for number, run in enumerate(waiting)
        ):
            if why:
                failures.append(Failure(waiting[number], why))
            progress.advance(task)
    rows: list[Row] = []
    for run in runs:
        found = saved_run(folder, run.key)
        if found is not None:
            rows += [told(run.data, run.settings, found, row) for row in found["rows"]]
    return Outcome(rows, failures, len(waiting) - len(failures))


def told(named: Named | None, settings: Settings, found: dict[str, Any], row: Row) -> Row:
    """A row of results with what it belongs to; the run's own time unless it says another."""
    start = {} if named is None else {"data": named.name}
    times = {name: found[name] for name in ("seconds", "cpu_seconds")}
    return {**start, **settings, **times, **row}


def run_one(number: int, run: Planned, folder: Path) -> tuple[int, str]:
    """Make one run and keep it; returns its number, and what went wrong, if anything did."""
    from experiments.registry import EXPERIMENTS  # the registry knows those who run things

    experiment = EXPERIMENTS[run.experiment]
    begin = work = 0.0
    try:
        data = None if run.data is None else prepared(experiment, run.data)
        begin, work = time.perf_counter(), time.process_time()
        rows = experiment.perform(run.settings, data)
    except GsdError as error:
        return number, str(error)
    except Exception:
        return number, traceback.format_exc(limit=-3)
    document = {
        "experiment": run.experiment,
        "data": None if run.data is None else run.data.name,
        "settings": run.settings,
        "seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - work,
        "rows": rows,
    }
    save_run(folder, run.key, document)
    return number, ""
