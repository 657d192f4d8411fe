"""Drawing: the paper's arrangements as PNG and SVG, small enough for a repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import require

if TYPE_CHECKING:
    from pathlib import Path

    from experiments.experiment import Row

# One system has one colour and one mark in all figures; colours that most people can tell apart.
STYLES = {
    "GSD": ("#0072b2", "o"),
    "GSD, not denoised": ("#56b4e9", "."),
    "RAP++": ("#d55e00", "s"),
    "RP": ("#e69f00", "^"),
    "RAP": ("#e69f00", "^"),
    "GN": ("#009e73", "v"),
    "GEM": ("#009e73", "v"),
    "PGM+EM": ("#cc79a7", "D"),
}
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
PIXELS_AN_INCH = 100
SETTINGS = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "private-gsd",  # the same figure is the same file
    "figure.constrained_layout.use": True,
}


@contextmanager
def figure(path: Path, rows: int, columns: int, width: float, height: float) -> Iterator[Any]:
    """Panels to draw in, written as PNG and SVG when that is done.

    Args:
        path: Where, without a suffix.
        rows: How many panels above each other.
        columns: How many beside each other.
        width: Of a panel, in inches.
        height: Of a panel, in inches.
    """
    matplotlib = require("matplotlib", what="Drawing", extra="experiments")
    matplotlib.use("Agg")
    plots = require("matplotlib.pyplot", what="Drawing", extra="experiments")
    with matplotlib.rc_context(SETTINGS):
        whole, panels = plots.subplots(
            rows, columns, figsize=(width * columns, height * rows), squeeze=False
        )
        try:
            yield panels
            whole.savefig(path.with_suffix(".png"), dpi=PIXELS_AN_INCH, metadata={"Software": None})
            whole.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        finally:
            plots.close(whole)


def style(name: str, number: int = 0) -> dict[str, str]:
    """The colour and the mark of a line."""
    colour, mark = STYLES.get(name, (OTHERS[number % len(OTHERS)], "o"))
    return {"color": colour, "marker": mark}


def below(panel: Any, beside: int) -> None:
    """One legend under all panels, of a panel's lines, so many beside each other."""
    lines, labels = panel.get_legend_handles_labels()
    panel.figure.legend(lines, labels, loc="outside lower center", ncols=beside)


def few_ticks() -> Any:
    """So few numbers on an axis that they do not touch."""
    ticker = require("matplotlib.ticker", what="Drawing", extra="experiments")
    return ticker.MaxNLocator(5)


def log_axis(panel: Any, places: Sequence[float]) -> None:
    """A logarithmic horizontal axis with the places that were measured, and no others."""
    panel.set_xscale("log")
    panel.set_xticks(list(places), [f"{place:,g}" for place in places], size=7)
    panel.minorticks_off()


def error_curves(
    rows: Sequence[Row],
    path: Path,
    measures: Sequence[tuple[str, str]],
    *,
    by: str = "epsilon",
    axis: str = "privacy budget ε",
    across: str = "data",
) -> None:
    """A column of panels for each data set, a row for each measure, a line for each system.

    Args:
        rows: One for each data set, system and budget.
        path: Where, without a suffix.
        measures: Fields and what they are called.
        by: What is on the horizontal axis.
        axis: What that is called.
        across: What the columns of panels are.
    """
    kinds = list(dict.fromkeys(row[across] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    width = 3.0 if len(kinds) > 1 else 4.2
    with figure(path, len(measures), len(kinds), width, 2.2) as panels:
        for column, kind in enumerate(kinds):
            for line, (measure, words) in enumerate(measures):
                panel = panels[line, column]
                for number, system in enumerate(systems):
                    found = sorted(
                        (row[by], row[measure])
                        for row in rows
                        if (row[across], row["system"]) == (kind, system)
                    )
                    if found:
                        panel.plot(*zip(*found, strict=True), label=system, **style(system, number))
                places = sorted({row[by] for row in rows if row[across] == kind})
                panel.set_xticks(places, [f"{place:g}" for place in places])
                panel.set_ylim(bottom=0)
                panel.ticklabel_format(axis="y", scilimits=(-3, 4))
                if line == 0:
                    panel.set_title(str(kind))
                if line == len(measures) - 1:
                    panel.set_xlabel(axis)
                if column == 0:
                    panel.set_ylabel(words)
        below(panels[0, 0], len(systems))


def cells(found: Mapping[tuple[Any, Any], Row], name: str) -> Callable[[Any, Any], float | None]:
    """What a heat map shows, of rows by two settings."""

    def value(one: Any, other: Any) -> float | None:
        row = found.get((one, other))
        return None if row is None else float(row[name])

    return value


def heat_map(
    panel: Any,
    across: Sequence[Any],
    down: Sequence[Any],
    value: Callable[[Any, Any], float | None],
    show: Callable[[float], str],
) -> None:
    """Values by two settings, darker where they are larger, each with its number."""
    found = [[value(one, other) for one in across] for other in down]
    shown = np.array([[np.nan if each is None else each for each in line] for line in found])
    panel.imshow(shown, cmap="Blues", aspect="auto", vmin=0, vmax=float(np.nanmax(shown)) * 1.15)
    panel.set_xticks(range(len(across)), [str(each) for each in across])
    panel.set_yticks(range(len(down)), [str(each) for each in down])
    panel.grid(visible=False)
    middle = float(np.nanmax(shown)) * 0.7
    for (row, column), cell in np.ndenumerate(shown):
        if not np.isnan(cell):
            colour = "white" if cell > middle else "#222222"
            panel.text(column, row, show(cell), ha="center", va="center", color=colour, size=8)
