"""Table 4: error and run time by the number of values that a mutation or a crossover changes."""

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
class Rates(Config):
    """Which rates, and for how long.

    Attributes:
        rates: Of mutations and of crossovers.
        population: Mutations, and as many crossovers.
        rows: N'.
        generations: G.
        epsilons: The budget.
    """

    rates: tuple[int, ...] = (1, 2, 5, 10, 25)
    population: int = 50
    rows: int = 1000
    generations: int = 100_000
    epsilons: tuple[float, ...] = (1.0,)


def plan(config: Rates, data: Data | None) -> list[Settings]:
    """A run for each pair of rates and seed."""
    return [
        {
            "mutation_rate": mutation,
            "crossover_rate": crossover,
            "mutations": config.population,
            "crossovers": config.population,
            "rows": config.rows,
            "generations": config.generations,
            "epsilon": epsilon,
            "seed": seed,
        }
        for epsilon in config.epsilons
        for mutation in config.rates
        for crossover in config.rates
        for seed in range(config.seeds)
    ]


def perform(run: Settings, data: Data | None) -> list[Row]:
    """One search."""
    assert data is not None
    names = ("mutation_rate", "crossover_rate", "mutations", "crossovers", "rows", "generations")
    return searched(data, run["epsilon"], run["seed"], **{name: run[name] for name in names})


def summary(rows: Sequence[Row]) -> list[Row]:
    """The paper's table, long: means over seeds."""
    by = ("data", "epsilon", "mutation_rate", "crossover_rate")
    return list(averages(rows, by, ("mean", "l2_of_loss", "search_seconds")).values())


def draw(rows: Sequence[Row], path: Path) -> None:
    """Error and time by both rates, a column for each data set and budget."""
    kinds = list(dict.fromkeys((row["data"], row["epsilon"]) for row in rows))
    with figure(path, 2, len(kinds), 3.8, 2.7) as panels:
        for column, (data, epsilon) in enumerate(kinds):
            found = {
                (row["mutation_rate"], row["crossover_rate"]): row
                for row in summary(rows)
                if (row["data"], row["epsilon"]) == (data, epsilon)
            }
            across = sorted({mutation for mutation, _ in found})
            down = sorted({crossover for _, crossover in found})
            for panel, field, words, show in (
                (panels[0, column], "mean", "mean error", "{:.5f}"),
                (panels[1, column], "search_seconds", "run time in seconds", "{:.1f}"),
            ):
                heat_map(
                    panel,
                    across,
                    down,
                    cells(found, field),
                    show.format,
                )
                panel.set_title(f"{data}, ε = {epsilon:g}\n{words}")
                panel.set_xlabel("mutation rate")
                panel.set_ylabel("crossover rate")


EXPERIMENT = Experiment(
    name="rates",
    shows="Table 4: error and run time by mutation rate and crossover rate, Algorithm 1",
    claim="Both rates 1 are best, in error and in time; larger crossover rates hurt most.",
    paper=Rates(),
    full=Rates(seeds=1, reduced=("one seed",)),
    quick=Rates(
        rates=(1, 5),
        rows=200,
        generations=5_000,
        seeds=1,
        reduced=("two rates, 200 rows, one seed, and at most 5,000 generations",),
    ),
    plan=plan,
    perform=perform,
    draw=draw,
    summary=summary,
)
