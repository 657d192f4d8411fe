"""Figure 2: the error by generation, with and without crossover.

Five categorical columns of 1,000 values each, 2,000 rows. The paper says of them only that they are
sparse; here each column has 2 or 20 of its values, drawn at random. The targets are exact.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from experiments.drawing import below, few_ticks, figure
from experiments.experiment import Config, Experiment, Row, Settings
from private_gsd import Categorical, GeneticSearch, Measurements, Schema, evolve
from private_gsd.counting.exact import count
from private_gsd.workloads import categorical_marginals

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.data import Data

COLUMNS, VALUES, ROWS = 5, 1000, 2000
POINTS = 150
LOOKS = (("-", "#0072b2"), (":", "#d55e00"), ("--", "#009e73"))


@dataclass(frozen=True, kw_only=True)
class Convergence(Config):
    """How long, and with which populations.

    Attributes:
        generations: The most.
        populations: Pairs of mutations and crossovers.
        used: How many values each column has.
    """

    generations: int = 200_000
    populations: tuple[tuple[int, int], ...] = ((200, 0), (100, 100))
    used: tuple[int, ...] = (2, 20)


def plan(config: Convergence, data: Data | None) -> list[Settings]:
    """A run for each population and seed."""
    return [
        {
            "mutations": mutations,
            "crossovers": crossovers,
            "generations": config.generations,
            "used": used,
            "seed": seed,
        }
        for used in config.used
        for mutations, crossovers in config.populations
        for seed in range(config.seeds)
    ]


def sparse_columns(used: int, seed: int) -> Measurements:
    """The exact histograms of a sparse table, as if they were measured."""
    schema = Schema(
        Categorical(f"column {place + 1}", values=range(VALUES)) for place in range(COLUMNS)
    )
    rng = np.random.default_rng(seed)
    table = np.column_stack(
        [rng.choice(rng.choice(VALUES, used, replace=False), ROWS) for _ in range(COLUMNS)]
    ).astype(np.float64)
    workload = categorical_marginals(schema, 1)
    counts = count(workload, table).astype(np.float64)
    return Measurements(workload, counts, np.full(COLUMNS, 0.01), ROWS, ("",) * COLUMNS, False)


def perform(run: Settings, data: Data | None) -> list[Row]:
    """The error after some of the generations, thinned so that a curve is left."""
    config = GeneticSearch.paper(
        rows=ROWS,
        mutations=run["mutations"],
        crossovers=run["crossovers"],
        generations=run["generations"],
        elites=2,
    )
    found = evolve(sparse_columns(run["used"], run["seed"]), config, seed=run["seed"], threads=1)
    history = found.history
    ends = np.geomspace(1, found.generations, POINTS)
    places = np.searchsorted([step.generation for step in history], ends)
    chosen = [history[place] for place in dict.fromkeys(places.clip(0, len(history) - 1).tolist())]
    return [
        {
            "generation": step.generation,
            "l2_error": float(np.sqrt(step.loss)),
            "seconds": step.seconds,
        }
        for step in chosen
    ]


def name_of(row: Row) -> str:
    """A population in words."""
    return f"P_mut = {row['mutations']}, P_cross = {row['crossovers']}"


def summary(rows: Sequence[Row]) -> list[Row]:
    """For each curve: when parts of the first error are reached, and the last error."""
    table = []
    for used, name, seed in dict.fromkeys((r["used"], name_of(r), r["seed"]) for r in rows):
        curve = curve_of(rows, used, name, seed)
        last = curve[-1]
        table.append(
            {
                "values_used": used,
                "population": name,
                "seed": seed,
                "generations_to_half": reached(curve, 2),
                "generations_to_a_tenth": reached(curve, 10),
                "generations_to_a_hundredth": reached(curve, 100),
                "generations": last["generation"],
                "l2_error": last["l2_error"],
                "seconds": last["seconds"],
            }
        )
    return table


def curve_of(rows: Sequence[Row], used: int, name: str, seed: int) -> list[Row]:
    """The points of one run."""
    return [r for r in rows if (r["used"], name_of(r), r["seed"]) == (used, name, seed)]


def reached(curve: Sequence[Row], part: int) -> int | str:
    """When so small a part of the first error is reached, on the lines between the points."""
    wanted = curve[0]["l2_error"] / part
    for before, after in itertools.pairwise(curve):
        if after["l2_error"] <= wanted:
            fallen = (before["l2_error"] - wanted) / (before["l2_error"] - after["l2_error"])
            step = after["generation"] - before["generation"]
            place: float = before["generation"] + fallen * step
            return round(place)
    return "never"


def draw(rows: Sequence[Row], path: Path) -> None:
    """A line for each population and seed, a panel for each number of values."""
    kinds = list(dict.fromkeys(row["used"] for row in rows))
    names = list(dict.fromkeys(map(name_of, rows)))
    with figure(path, 1, len(kinds), 3.6, 2.9) as panels:
        for column, used in enumerate(kinds):
            panel = panels[0, column]
            for name, (dashes, colour) in zip(names, LOOKS, strict=False):
                for seed in sorted({row["seed"] for row in rows}):
                    curve = curve_of(rows, used, name, seed)
                    panel.plot(
                        [row["generation"] for row in curve],
                        [row["l2_error"] for row in curve],
                        linestyle=dashes,
                        color=colour,
                        label=name if seed == 0 else None,
                    )
            panel.set_title(f"{used} of 1,000 values in each column")
            panel.set_xlabel("generation")
            panel.set_ylim(bottom=0)
            panel.xaxis.set_major_locator(few_ticks())
            panel.xaxis.set_major_formatter("{x:,.0f}")
        panels[0, 0].set_ylabel("L2 error of all 1-way marginals")
        below(panels[0, 0], len(kinds))


EXPERIMENT = Experiment(
    name="convergence",
    shows="Figure 2: error by generation, with and without crossover",
    claim="With crossover the search converges exponentially faster than with mutations alone.",
    full=Convergence(),
    quick=Convergence(
        generations=10_000,
        used=(2,),
        seeds=1,
        reduced=("one seed, and at most 10,000 generations",),
    ),
    plan=plan,
    perform=perform,
    draw=draw,
    summary=summary,
    uses_data=False,
)
