"""What an experiment is: a plan of runs, how one is made, and how all of them are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from experiments.data import Data
from private_gsd.errors import GsdError

Settings = Mapping[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Config:
    """What every experiment is told; those of single experiments add to it.

    Attributes:
        seeds: How many runs are averaged.
        reduced: In which ways it is less than the paper's, in words.
    """

    seeds: int = 3
    reduced: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One figure or table of the paper.

    Attributes:
        name: As on the command line.
        shows: What of the paper it makes again.
        claim: What the paper says of it.
        full: What runs by default: all of it fits in an hour on two cores.
        quick: What runs with ``--quick``.
        paper: The paper's settings, where the default has less.
        plan: The settings of all runs, of a configuration and of what is known about the data.
        perform: Makes one run: settings and data in, rows of a table out.
        draw: Makes plots, without their suffix, of all rows.
        summary: Makes the table that the paper has of all rows.
        uses_data: Whether it looks at ``--data`` at all.
        prepare: What is done to the data first.
    """

    name: str
    shows: str
    claim: str
    full: Config
    quick: Config
    paper: Config | None = None
    plan: Callable[[Any, Data | None], list[Settings]]
    perform: Callable[[Settings, Data | None], list[Row]]
    draw: Callable[[Sequence[Row], Path], None]
    summary: Callable[[Sequence[Row]], list[Row]]
    uses_data: bool = True
    prepare: Callable[[Data], Data] = lambda data: data

    def config(self, scale: str, **changes: Any) -> Config:
        """The configuration of a scale, with what was named on the command line.

        Args:
            scale: "full", "quick" or "paper".
            changes: Fields and their values; None leaves them as they are.
        """
        chosen = {"full": self.full, "quick": self.quick, "paper": self.paper or self.full}[scale]
        known = {each.name for each in fields(chosen)}
        wanted = {name: value for name, value in changes.items() if value is not None}
        for name in wanted:
            if name not in known:
                raise GsdError(f"{self.name} has no --{name}")
        return replace(chosen, **wanted)


def averages(
    rows: Sequence[Row], by: Sequence[str], values: Sequence[str]
) -> dict[tuple[Any, ...], Row]:
    """Means over all rows that agree in some fields, in their order; ``runs`` says how many."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    return {
        key: {
            **dict(zip(by, key, strict=True)),
            **{name: sum(row[name] for row in found) / len(found) for name in values},
            "runs": len(found),
        }
        for key, found in groups.items()
    }
