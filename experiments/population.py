"""Figure 9 and Table 3: error and run time by the number of mutations and crossovers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.ablation import searched
from experiments.drawing import cells, figure, heat_map
from experiments.experiment import Config, Experiment, Row, Settings, averages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.data import Data


@dataclass(frozen=True, kw_only=True)
class Population(Config):
    """Which populations, and for how long.

    Attributes:
        sizes: Numbers of mutations and of crossovers; there are at least as many of the latter.
        rows: N'.
        generations: G.
        epsilons: The budget.
    """

    sizes: tuple[int, ...] = (25, 50, 100, 200, 400)
    rows: int = 1000
    generations: int = 300_000
    epsilons: tuple[float, ...] = (1.0,)
    seeds: int = 1


def plan(config: Population, data: Data | None) -> list[Settings]:
    """A run for each pair of sizes and seed."""
    return [
        {
            "mutations": mutations,
            "crossovers": crossovers,
            "rows": config.rows,
            "generations": config.generations,
            "epsilon": epsilon,
            "seed": seed,
        }
        for epsilon in config.epsilons
        for mutations in config.sizes
        for crossovers in config.sizes
        if mutations <= crossovers
        for seed in range(config.seeds)
    ]


def perform(run: Settings, data: Data | None) -> list[Row]:
    """One search."""
    assert data is not None
    names = ("mutations", "crossovers", "rows", "generations")
    return searched(data, run["epsilon"], run["seed"], **{name: run[name] for name in names})


def summary(rows: Sequence[Row]) -> list[Row]:
    """The paper's table: least and largest mean error and time of each data set."""
    table = []
    for data, epsilon in dict.fromkeys((row["data"], row["epsilon"]) for row in rows):
        mine = [row for row in rows if (row["data"], row["epsilon"]) == (data, epsilon)]
        found = averages(mine, ("mutations", "crossovers"), ("mean", "search_seconds")).values()
        errors = [row["mean"] for row in found]
        times = [row["search_seconds"] for row in found]
        table.append(
            {
                "data": data,
                "epsilon": epsilon,
                "queries": mine[0]["queries"],
                "min_mean_error": min(errors),
                "max_mean_error": max(errors),
                "min_seconds": min(times),
                "max_seconds": max(times),
            }
        )
    return table


def draw(rows: Sequence[Row], path: Path) -> None:
    """Heat maps of time and of error, a column for each data set and budget."""
    kinds = list(dict.fromkeys((row["data"], row["epsilon"]) for row in rows))
    with figure(path, 2, len(kinds), 3.6, 2.7) as panels:
        for column, (data, epsilon) in enumerate(kinds):
            mine = [row for row in rows if (row["data"], row["epsilon"]) == (data, epsilon)]
            found = averages(mine, ("mutations", "crossovers"), ("mean", "search_seconds"))
            across = sorted({row["mutations"] for row in mine})
            down = sorted({row["crossovers"] for row in mine}, reverse=True)
            for panel, field, words, show in (
                (panels[0, column], "search_seconds", "run time in seconds", "{:.1f}"),
                (panels[1, column], "mean", "mean error", "{:.5f}"),
            ):
                heat_map(
                    panel,
                    across,
                    down,
                    cells(found, field),
                    show.format,
                )
                panel.set_title(f"{data}, ε = {epsilon:g}\n{words}")
                panel.set_xlabel("mutations, P_mut")
                panel.set_ylabel("crossovers, P_cross")


EXPERIMENT = Experiment(
    name="population",
    shows="Figure 9 and Table 3: run time and error by P_mut and P_cross, Algorithm 1",
    claim=(
        "The error hardly depends on the population, the run time does; "
        "P_mut = P_cross = 100 is good everywhere."
    ),
    full=Population(),
    quick=Population(
        sizes=(25, 100),
        rows=200,
        generations=5_000,
        reduced=("two sizes, 200 rows, and at most 5,000 generations",),
    ),
    plan=plan,
    perform=perform,
    draw=draw,
    summary=summary,
)
