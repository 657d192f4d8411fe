"""Tables of scores: means over seeds, systems side by side."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

# The scores of columns, and of whole tables.
COLUMNS = ("KS", "quantiles", "mean", "spikes missed", "spikes", "nulls")
WHOLE = ("group means", "correlations", "pairs", "prefixes", "halfspaces", "area")


def report(found: list[dict[str, Any]]) -> None:
    """Print the means over seeds of all scores.

    Args:
        found: The scores of all runs.
    """
    console = Console(width=160)
    systems = sorted({each["system"] for each in found})
    groups: dict[tuple[str, float], dict[str, list[dict[str, Any]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for each in found:
        groups[each["data"], each["epsilon"]][each["system"]].append(each)
    for (data, epsilon), by_system in sorted(groups.items()):
        table = Table("", *systems, title=f"{data}, ε = {epsilon:g}")
        runs = [by_system[system] for system in systems]
        names = next(iter(by_system.values()))[0]
        for score in COLUMNS:
            for column in names[score]:
                add(table, f"{score}: {column}", [[e[score][column] for e in r] for r in runs])
        for score in WHOLE:
            add(table, score, [[e[score] for e in r] for r in runs])
        for target in names["F1"]:
            add(table, f"F1: {target}", [[e["F1"][target] for e in r] for r in runs])
        given_away = {c for r in runs for e in r for c in e["gives away"]}
        for column in sorted(given_away):
            areas = [[e["gives away"].get(column, 0.5) for e in r] for r in runs]
            add(table, f"gives away: {column}", areas)
        console.print(table)


def add(table: Table, name: str, numbers: list[list[float]]) -> None:
    """Add a row of means; a system without runs has an empty cell."""
    table.add_row(name, *(f"{np.mean(each):.4f}" if each else "" for each in numbers))
