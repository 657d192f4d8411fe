"""Theorem 4.2: the measured root-mean-square error beside the bound, as ε, N and N' vary.

The theorem has a constant that it does not name; here it is 1, and only the slopes can be compared.
It speaks of discrete domains: numeric columns are left out. The questions are all pairs of columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from experiments.comparison import EPSILONS
from experiments.data import Data
from experiments.drawing import below, figure, log_axis
from experiments.experiment import Config, Experiment, Row, Settings, averages
from private_gsd import Sweep
from private_gsd.schema import Discrete
from private_gsd.workloads.specs import workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BETA = 0.05
AXES = {
    "epsilon": "privacy budget ε",
    "n_records": "records of the data, N",
    "rows": "rows made, N'",
}


@dataclass(frozen=True, kw_only=True)
class Bound(Config):
    """Where it is measured: each axis varies alone, from the point that the others have.

    Attributes:
        epsilons: Budgets; the others are measured with the largest.
        parts: Of the rows of the data, in powers of one half.
        rows: Numbers of synthetic rows; the others are measured with the largest.
    """

    epsilons: tuple[float, ...] = EPSILONS
    parts: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    rows: tuple[int, ...] = (20, 50, 100, 200, 500, 1000, 2000, 5000)


def plan(config: Bound, data: Data | None) -> list[Settings]:
    """A run for each point of each axis, and each seed."""
    assert data is not None
    everybody = len(data.matrix)
    most, largest = max(config.epsilons), max(config.rows)
    points = {
        "epsilon": [(epsilon, everybody, largest) for epsilon in config.epsilons],
        "n_records": [(most, everybody // 2**part, largest) for part in config.parts],
        "rows": [(most, everybody, rows) for rows in config.rows],
    }
    return [
        {"axis": axis, "epsilon": epsilon, "n_records": n_records, "rows": rows, "seed": seed}
        for axis, found in points.items()
        for epsilon, n_records, rows in found
        for seed in range(config.seeds)
    ]


@lru_cache(maxsize=8)
def counted(data: Data, n_records: int, seed: int) -> Sweep:
    """The exact answers of some of the rows."""
    some = data.first(n_records, seed)
    return Sweep(some.schema, some.table, workload_of(some.schema, ["categorical:2"]))


def perform(run: Settings, data: Data | None) -> list[Row]:
    """The error of one release, and the bound."""
    assert data is not None
    sweep = counted(data, run["n_records"], run["seed"])
    (made,) = sweep.run(
        [run["epsilon"]],
        seeds=[run["seed"]],
        settings=[{"rows": run["rows"]}],
        insecure=True,
        evaluate=True,
        n_jobs=1,
    )
    assert made.errors is not None
    domain = sum(
        math.log(len(column.values) + column.nullable)
        for column in data.schema
        if isinstance(column, Discrete)
    )
    most = bound(
        domain, sweep.delta, run["epsilon"], run["n_records"], sweep.workload.size, run["rows"]
    )
    return [{"rms": made.errors.rms, "bound": most, "queries": sweep.workload.size}]


def bound(
    log_domain: float, delta: float, epsilon: float, n_records: int, queries: int, rows: int
) -> float:
    """Theorem 4.2 with a constant of 1.

    Args:
        log_domain: The logarithm of the size of the domain, log|X|.
        delta: δ.
        epsilon: ε.
        n_records: N.
        queries: m.
        rows: N'.
    """
    noise: float = ((log_domain + math.log(1 / BETA)) * math.log(1 / delta)) ** 0.25
    return noise / math.sqrt(epsilon * n_records) + math.sqrt(math.log(queries) / rows)


def summary(rows: Sequence[Row]) -> list[Row]:
    """Means over seeds."""
    by = ("data", "axis", "epsilon", "n_records", "rows")
    table = averages(rows, by, ("rms", "bound")).values()
    return [{**row, "bound_over_rms": row["bound"] / row["rms"]} for row in table]


def draw(rows: Sequence[Row], path: Path) -> None:
    """A row of panels for each data set: by ε, by N, by N'."""
    table = summary(rows)
    kinds = list(dict.fromkeys(row["data"] for row in table))
    with figure(path, len(kinds), len(AXES), 3.3, 2.4) as panels:
        for line, data in enumerate(kinds):
            for column, (axis, words) in enumerate(AXES.items()):
                panel = panels[line, column]
                found = sorted(
                    (row[axis], row["rms"], row["bound"])
                    for row in table
                    if (row["data"], row["axis"]) == (data, axis)
                )
                places, errors, most = zip(*found, strict=True)
                panel.plot(places, errors, marker="o", color="#0072b2", label="measured")
                panel.plot(
                    places, most, color="#555555", linestyle="--", label="Theorem 4.2, constant 1"
                )
                panel.set_yscale("log")
                log_axis(panel, places)
                panel.set_xlabel(words)
                if column == 0:
                    panel.set_ylabel(f"{data}\nroot-mean-square error")
        below(panels[0, 0], 2)


EXPERIMENT = Experiment(
    name="bound",
    shows="Theorem 4.2: measured root-mean-square error and the bound",
    claim="The error falls at least as fast as 1/√(εN) and 1/√N' have it.",
    full=Bound(),
    quick=Bound(
        epsilons=(0.23, 1.0),
        parts=(0, 2),
        rows=(50, 500),
        seeds=1,
        reduced=("two points on each axis, one seed",),
    ),
    plan=plan,
    perform=perform,
    draw=draw,
    summary=summary,
    prepare=Data.categories,
)
