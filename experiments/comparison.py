"""Comparing: the same workloads and budgets for several systems, as in the paper's figures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from experiments.drawing import error_curves
from experiments.experiment import Config, Experiment, Row, Settings, averages
from private_gsd import Adaptive, Sweep
from private_gsd.errors import GsdError
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.data import Data

EPSILONS = (0.07, 0.23, 0.52, 0.74, 1.0)
EPOCHS = (25, 50, 75, 100)
MEASURES = (("max", "max error"), ("mean", "mean error"))


@dataclass(frozen=True, kw_only=True)
class System:
    """One of those that are compared.

    Attributes:
        name: As the paper has it.
        projector: As the library has it, with settings.
        rows: How many rows it makes; 0 for as many as the data has.
        epochs: Numbers of epochs to try, of which the best counts; none where it is one-shot.
        queries_per_epoch: The number of query groups that an epoch selects.
        seeds: No more runs than this, where it is slow; 0 for as many as all.
    """

    name: str
    projector: str
    rows: int
    epochs: tuple[int, ...] = ()
    queries_per_epoch: int = 1
    seeds: int = 0


@dataclass(frozen=True, kw_only=True)
class Comparison(Config):
    """The workload, the systems and the budgets.

    Attributes:
        workload: The target workload.
        systems: The systems that are compared.
        epsilons: The budgets.
        queries: The number of random queries, instead of the number in ``workload``.
        epochs: Numbers of epochs for all systems, instead of their own.
        only: The systems to run; all by default.
    """

    workload: str
    systems: tuple[System, ...]
    epsilons: tuple[float, ...] = EPSILONS
    queries: int = 0
    epochs: tuple[int, ...] = ()
    only: tuple[str, ...] = ()


def plan(config: Comparison, data: Data | None) -> list[Settings]:
    """A run for each system, budget, number of epochs and seed."""
    known = [system.name for system in config.systems]
    for name in config.only:
        if name not in known:
            raise GsdError(f"there is no {name} here; there are {', '.join(known)}")
    kind, _, rest = config.workload.partition(":")
    workload = f"{kind}:{config.queries or rest}"
    return [
        {
            "workload": workload,
            "system": system.name,
            "projector": system.projector,
            "rows": system.rows,
            "epochs": epochs,
            "queries_per_epoch": system.queries_per_epoch,
            "epsilon": epsilon,
            "seed": seed,
        }
        for system in config.systems
        if not config.only or system.name in config.only
        for epsilon in config.epsilons
        for epochs in ((config.epochs or system.epochs) if system.epochs else (0,))
        for seed in range(min(config.seeds, system.seeds or config.seeds))
    ]


@lru_cache(maxsize=1)
def counted(data: Data, workload: str) -> Sweep:
    """The exact counts, for all runs of this process."""
    return Sweep(data.schema, data.table, workload_of(data.schema, [workload]))


def made_by(run: Settings, data: Data) -> Any:
    """One run of a sweep: seeded noise, one process."""
    settings: dict[str, Any] = {
        "projector": run["projector"],
        "rows": run["rows"] or len(data.matrix),
    }
    if run["epochs"]:
        settings["mechanism"] = Adaptive(
            epochs=run["epochs"], queries_per_epoch=run["queries_per_epoch"]
        )
    (made,) = counted(data, run["workload"]).run(
        [run["epsilon"]],
        seeds=[run["seed"]],
        settings=[settings],
        insecure=True,
        evaluate=True,
        n_jobs=1,
    )
    return made


def perform(run: Settings, data: Data | None) -> list[Row]:
    """Errors of all answers against the true ones, as shares of the rows."""
    assert data is not None
    made = made_by(run, data)
    errors = made.errors
    return [
        {"max": errors.max, "mean": errors.mean, "rms": errors.rms, "search_seconds": made.seconds}
    ]


def best(rows: Sequence[Row]) -> list[Row]:
    """For each data set, system and budget the number of epochs with the least error.

    Each measure has its own, as in the paper. It is found with the true answers, and so is not
    private: a release would have to choose the number beforehand.
    """
    measured = averages(
        rows,
        ("data", "system", "epsilon", "epochs"),
        ("max", "mean", "rms", "search_seconds", "seconds", "cpu_seconds"),
    )
    found: dict[tuple[Any, ...], list[Row]] = {}
    for key, row in measured.items():
        found.setdefault(key[:-1], []).append(row)
    table = []
    for key, tried in found.items():
        row = dict(zip(("data", "system", "epsilon"), key, strict=True))
        for measure, _ in MEASURES:
            least = min(tried, key=lambda each: each[measure])
            row[measure] = least[measure]
            if least["epochs"]:
                row[f"epochs_for_{measure}"] = least["epochs"]
        row["runs"] = sum(each["runs"] for each in tried)
        for name in ("seconds", "cpu_seconds"):
            total = sum(each[name] * each["runs"] for each in tried)
            row[f"{name}_a_run"] = total / row["runs"]
        table.append(row)
    return table


def draw(rows: Sequence[Row], path: Path) -> None:
    """Max above mean error, a column for each data set."""
    error_curves(best(rows), path, MEASURES)


def comparison(**parts: Any) -> Experiment:
    """An experiment of this kind."""
    return Experiment(plan=plan, perform=perform, draw=draw, summary=best, **parts)
