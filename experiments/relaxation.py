"""Figure 1: how the relaxation of RAP++ fails, and GSD does not; and the appendix's example.

The examples are those of ``benchmarks.relaxation``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.relaxation import Panel, panels, run

from experiments.drawing import figure
from experiments.experiment import Config, Experiment, Row, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from experiments.data import Data


# Bins have 0, 0.05, … 1 in their middle: numbers a little below 0.5 are as good as 0.5 itself.
WIDTH = 0.05
EDGES = (np.arange(22) - 0.5) * WIDTH


@dataclass(frozen=True, kw_only=True)
class Relaxation(Config):
    """Which of the examples.

    Attributes:
        titles: Of the panels.
    """

    titles: tuple[str, ...] = tuple(panel.title for panel in panels())
    seeds: int = 1


def plan(config: Relaxation, data: Data | None) -> list[Settings]:
    """A run for each panel."""
    known: dict[str, Panel] = {panel.title: panel for panel in panels()}
    return [{"panel": title, "projector": known[title].spec} for title in config.titles]


def perform(settings: Settings, data: Data | None) -> list[Row]:
    """Shares of the rows by bin: of the data, and of what was made."""
    panel = next(each for each in panels() if each.title == settings["panel"])
    made, error = run(panel)
    return [
        {"from": low, "real": real, "made": share, "max": error}
        for low, real, share in zip(
            EDGES[:-1].tolist(), shares(panel.real), shares(made), strict=True
        )
    ]


def shares(values: np.ndarray) -> list[float]:
    """A histogram."""
    found: list[float] = (np.histogram(values, EDGES)[0] / len(values)).tolist()
    return found


def summary(rows: Sequence[Row]) -> list[Row]:
    """The largest error of each."""
    named = {row["panel"]: row for row in rows}
    return [{name: row[name] for name in ("panel", "projector", "max")} for row in named.values()]


def draw(rows: Sequence[Row], path: Path) -> None:
    """Histograms: outlines are the data, filled bars what was made."""
    titles = list(dict.fromkeys(row["panel"] for row in rows))
    lines = -(-len(titles) // 3)
    with figure(path, lines, min(3, len(titles)), 2.9, 1.9) as found:
        for place, panel in enumerate(found.flat):
            if place >= len(titles):
                panel.set_axis_off()
                continue
            mine = [row for row in rows if row["panel"] == titles[place]]
            left = [row["from"] for row in mine]
            made = [row["made"] for row in mine]
            real = [row["real"] for row in mine]
            panel.bar(left, made, WIDTH * 0.9, align="edge", color="#0072b2", label="synthetic")
            panel.bar(
                left,
                real,
                WIDTH * 0.9,
                align="edge",
                facecolor="none",
                edgecolor="#222222",
                label="data",
            )
            panel.set_title(f"{titles[place]}\nmax error {mine[0]['max']:.2f}", size=9)
            panel.set_xlim(-0.05, 1.05)
            panel.set_ylim(0, 1.05)
            if place % 3 == 0:
                panel.set_ylabel("share of the rows")
            if place >= len(titles) - 3:
                panel.set_xlabel("value")
        handles, labels = found.flat[0].get_legend_handles_labels()
        found.flat[0].figure.legend(handles, labels, loc="outside lower center", ncols=2)


EXPERIMENT = Experiment(
    name="relaxation",
    shows="Figure 1: RAP++ in a bad minimum of its relaxed loss",
    claim="GSD finds the exact answers; RAP++ leaves many rows near 0.",
    full=Relaxation(),
    quick=Relaxation(
        titles=tuple(panel.title for panel in panels()[:2]), reduced=("two of the six panels",)
    ),
    plan=plan,
    perform=perform,
    draw=draw,
    summary=summary,
    uses_data=False,
)
