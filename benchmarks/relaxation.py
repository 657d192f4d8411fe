"""Relaxation: the paper's two examples of RAP++ in a bad minimum, drawn as one small SVG.

    python -m benchmarks.relaxation [-o docs/relaxation.svg]

Figure 1 of the paper: all numbers are 0.5, and three prefixes end at 0.49, 0.5 and 0.51. Half
zeros, half ones, of its appendix: one prefix ends at 0.5. Budgets are infinite.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd import Categorical, Measurements, Real, Schema
from private_gsd.counting.exact import count
from private_gsd.projection import projector_of
from private_gsd.workloads import Conjunctions, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, BINS = 1000, 20
WIDTH, HEIGHT, GAP, TOP = 220, 90, 20, 48
LINE = Schema([Categorical("all", values=["yes"]), Real("x", lower=0, upper=1)])
RUSHED = "rap++:learning_rate=0.0005,iterations=50"
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #222 }
.page { fill: #fff } .real { fill: none; stroke: #222 } .made { fill: #4c78a8 }
.axis { stroke: #999 }
@media (prefers-color-scheme: dark) {
  text { fill: #eee } .page { fill: #1b1e23 } .real { stroke: #eee } .made { fill: #7aa6d8 }
}
"""


class Panel(NamedTuple):
    """One histogram: of the real numbers and of those that a projector makes."""

    title: str
    spec: str
    thresholds: list[float]
    real: NDArray[np.float64]
    start: NDArray[np.float64] | None


def panels() -> list[Panel]:
    """Three for each example."""
    one, two = [0.49, 0.5, 0.51], [0.5]
    middle, halves = np.full(ROWS, 0.5), np.repeat([0.0, 1.0], ROWS // 2)
    return [
        Panel("Figure 1: GSD", "gsd", one, middle, None),
        Panel("RAP++, 50 steps a temperature", RUSHED, one, middle, None),
        Panel("RAP++, 500 steps, faster", "rap++", one, middle, None),
        Panel("Halves: GSD, begun at 0.5", "gsd", two, halves, middle),
        Panel("RAP++, begun at 0.5", "rap++", two, halves, middle),
        Panel("RAP++, begun at random", "rap++", two, halves, None),
    ]


def rows_of(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A table of numbers on the line."""
    return np.column_stack([np.zeros(len(x)), x])


def run(panel: Panel) -> tuple[NDArray[np.float64], float]:
    """The numbers that a projector makes, and the largest error of their answers."""
    number = len(panel.thresholds)
    nothing = np.zeros(number, dtype=np.int64)
    # Ours ask for less than a number, the paper's for at most one.
    ends = np.nextafter(np.array(panel.thresholds), 2)[:, None]
    family = Conjunctions(LINE, nothing, nothing, nothing[:, None] + 1, ends)
    workload = Workload(LINE, (family,))
    counts = count(workload, rows_of(panel.real)).astype(np.float64)
    measurements = Measurements(
        workload, counts, np.full(number, 0.01), ROWS, ("",) * number, False
    )
    start = None if panel.start is None else rows_of(panel.start)
    found = projector_of(panel.spec).project(measurements, rows=ROWS, seed=0, start=start).matrix
    errors = np.abs(count(workload, found) / ROWS - measurements.shares)
    return found[:, 1], float(errors.max())


def drawn(panel: Panel, left: int, top: int) -> str:
    """One histogram as SVG."""
    made, error = run(panel)
    parts = [
        f'<text x="{left}" y="{top - 20}">{panel.title}</text>',
        f'<text x="{left}" y="{top - 6}">largest error {error:.2f}</text>',
    ]
    step = WIDTH / BINS
    for kind, values in (("made", made), ("real", panel.real)):
        # A number that is a bin's edge but for rounding is drawn in the bin above it.
        shares = np.histogram(values + 1e-4, bins=BINS, range=(0, 1.001))[0] / ROWS
        parts += [
            f'<rect class="{kind}" x="{left + place * step:.1f}" width="{step - 1:.1f}" '
            f'y="{top + HEIGHT * (1 - share):.1f}" height="{HEIGHT * share:.1f}"/>'
            for place, share in enumerate(shares.tolist())
            if share > 0
        ]
    bottom = top + HEIGHT
    parts += [
        f'<line class="axis" x1="{left}" x2="{left + WIDTH}" y1="{bottom}" y2="{bottom}"/>',
        f'<text x="{left}" y="{bottom + 13}">0</text>',
        f'<text x="{left + WIDTH - 6}" y="{bottom + 13}">1</text>',
    ]
    return "\n".join(parts)


def main() -> None:
    """Draw all panels."""
    parser = argparse.ArgumentParser(description="RAP++ in a bad minimum.")
    parser.add_argument("--output", "-o", default="docs/relaxation.svg")
    options = parser.parse_args()
    width, height = 3 * (WIDTH + GAP) + GAP, 2 * (HEIGHT + TOP + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}">',
        "<title>Real numbers (outlined) and synthetic ones (filled)</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
    ]
    for number, panel in enumerate(panels()):
        left = GAP + number % 3 * (WIDTH + GAP)
        top = TOP + number // 3 * (HEIGHT + TOP + GAP)
        parts.append(drawn(panel, left, top))
    Path(options.output).write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
