"""A drawing of the distribution functions of numeric columns, real and synthetic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.numbers.datasets import name_of, table_of
from benchmarks.numbers.scores import numeric, read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.numbers.making import Run

COLUMNS = 3  # of the drawing
SPREAD = 30  # a column whose largest number is so many times its median is drawn on a log scale
COLOURS = ("tab:orange", "tab:blue", "tab:green", "tab:red", "tab:purple")


def draw(data: str, runs: Sequence[Run], folder: Path, target: Path) -> None:
    """Draw the share of rows up to each number, for each numeric column.

    Args:
        data: The real table.
        runs: The synthetic tables.
        folder: The folder of the synthetic tables.
        target: The SVG file.
    """
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "numbers", "svg.fonttype": "none", "font.size": 8}
    schema, table = table_of(data)
    tables = {"real": read(table, schema).sample}
    tables |= {run.system: read(run.path(folder), schema).sample for run in runs}
    columns = numeric(schema)
    lines = -(-len(columns) // COLUMNS)
    figure, axes = plt.subplots(lines, COLUMNS, figsize=(9, 2.2 * lines), squeeze=False)
    for axis in axes.flat[len(columns) :]:
        axis.axis("off")
    for axis, (name, place) in zip(axes.flat, columns.items(), strict=False):
        real = tables["real"][:, place]
        axis.set_title(name)
        if np.nanmax(real) > SPREAD * max(abs(np.nanmedian(real)), 1):
            axis.set_xscale("symlog", linthresh=max(abs(np.nanmedian(real)), 10) / 10)
        for (system, rows), colour in zip(tables.items(), ("black", *COLOURS), strict=False):
            values = np.sort(rows[~np.isnan(rows[:, place]), place])
            # A step at each of 500 quantiles, which shows spikes and empty stretches.
            shares = np.linspace(0, 1, 500)
            points = values[np.minimum((shares * len(values)).astype(int), len(values) - 1)]
            width = 2.5 if system == "real" else 1
            alpha = 0.35 if system == "real" else 1
            axis.step(points, shares, color=colour, linewidth=width, alpha=alpha, label=system)
        axis.set_xlim(np.nanmin(real), np.nanmax(real))
    axes.flat[0].legend(frameon=False)
    figure.suptitle(f"{name_of(data)}, ε = {runs[0].epsilon:g}: share of rows up to a number")
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
