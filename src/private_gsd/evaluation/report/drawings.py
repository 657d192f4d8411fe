"""Drawings: small vector graphics, each with a text alternative.

Drawings are written without a plotting library: a bar is a few bytes of a path, the colours are
those of the page's style sheet, and text stays text.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.system.markup import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Values = NDArray[np.float64]

WIDTH = 340
LEVELS = 11
SHOWN = 12
# The width of a cell of a heat map, and of the names beside it.
CELL, EDGE = 13, 92
# The width of the bar of a spike, and of its label.
THIN, SPIKE_LABEL = 4, 44


class Series(NamedTuple):
    """Values that are drawn in one style: its name, the style, and a number for each label."""

    name: str
    style: str
    values: Values


def figure(drawing: Markup, caption: Markup) -> Markup:
    """A drawing with its caption."""
    return Markup(f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>")


def histogram(
    labels: Sequence[str], series: Sequence[Series], title: str, spikes: Sequence[float] = ()
) -> Markup:
    """Bars for the first series, a step line for each further series; null is a bar apart.

    The values set the scale: a bar of more nulls is cut off, with a gap that says so.

    Args:
        labels: The label of each bin, then of each spike, then null if there are nulls.
        series: The values of bins, spikes and null.
        title: The beginning of the text alternative.
        spikes: The place of each spike, in bins from the left. Spikes are thin bars.
    """
    height, base, left = 132, 108, 34
    null = labels[-1] == "null"
    bins = len(labels) - null - len(spikes)
    step = (WIDTH - left - 6 - (26 if null else 0)) / max(1, bins)
    top = max(float(each.values[: bins + len(spikes)].max(initial=0)) for each in series)
    top = top or max(1e-9, *(float(each.values.max()) for each in series))
    middles = [left + step * place for place in spikes]

    def y(value: float) -> str:
        return _n(base - 96 * min(1.0, float(value) / top))

    body, thin = [_axis(left, base, top)], []
    for number, each in enumerate(series):
        tops = [y(value) for value in each.values]
        if number == 0:
            path = [
                f"M{_n(left + step * i + 0.3)} {base}V{tops[i]}h{_n(max(0.6, step - 0.6))}V{base}z"
                for i in range(bins)
            ]
            style, half, end = each.style, THIN / 2, "z"
        else:
            path = [f"M{left} {base}"]
            path += [f"V{tops[i]}H{_n(left + step * (i + 1))}" for i in range(bins)]
            path += [f"V{base}"]
            style, half, end = f"line {each.style}", THIN / 2 + 1.2, ""
        path += [f"M{WIDTH - 24} {base}V{tops[-1]}h18V{base}{end}"] * null
        body.append(f'<path class="{style}" d="{"".join(path)}"/>')
        bars_of_spikes = "".join(
            f"M{_n(x - half)} {base}V{tops[bins + i]}h{_n(2 * half)}V{base}{end}"
            for i, x in enumerate(middles)
        )
        if spikes:
            thin.append(f'<path class="{style} spike" d="{bars_of_spikes}"/>')
    body += thin
    if null and max(each.values[-1] for each in series) > top:
        body.append(f'<path class="gap" d="M{WIDTH - 28} 30l26 -8"/>')
    heights = np.array([each.values[bins : bins + len(spikes)] for each in series]).max(axis=0)
    for i in _apart(middles, heights, SPIKE_LABEL):
        words = labels[bins + i].removeprefix("exactly ")
        body.append(_spike_label(middles[i], float(y(heights[i])) - 3, words, left))
    if bins:
        body.append(_text(left, base + 14, labels[0], "start"))
    if bins > 1:
        body.append(_text(left + step * bins, base + 14, labels[bins - 1], "end"))
    if null:
        body.append(_text(WIDTH - 15, base + 14, "null", "middle"))
    return _svg(WIDTH, height, _spoken(title, labels, series), body)


def bars(
    labels: Sequence[str],
    series: Sequence[Series],
    title: str,
    *,
    above: bool = False,
    form: str = ".1%",
) -> Markup:
    """Horizontal bars, one per series under each label; the rarest labels share one set of bars.

    Args:
        labels: The label of each set of bars.
        series: The values of the bars.
        title: The beginning of the text alternative.
        above: Whether labels are long, and stand above their bars rather than beside them.
        form: The format of numbers.
    """
    labels, series = _frequent(labels, series, SHOWN)
    thick, left, right, head = 11, 126, 46, 4
    if above:
        left, head = 0, 16
    row = thick * len(series) + head + 5
    top = max(1e-9, *(float(each.values.max()) for each in series))
    body = []
    for number, label in enumerate(labels):
        if above:
            body.append(_text(0, row * number + 12, _short(label, 56), "start"))
        else:
            middle = row * number + head + thick * len(series) / 2 + 3
            body.append(_text(left - 6, middle, _short(label, 19), "end"))
    for place, each in enumerate(series):
        path = []
        for number, value in enumerate(each.values):
            length = (WIDTH - left - right) * float(value) / top
            start = row * number + head + thick * place
            path.append(f"M{left} {_n(start)}h{_n(max(0.5, length))}v{thick - 1}H{left}z")
            body.append(
                _text(left + length + 4, start + thick - 2, f"{value:{form}}", "start", "s")
            )
        body.append(f'<path class="{each.style}" d="{"".join(path)}"/>')
    return _svg(WIDTH, row * len(labels) + 2, _spoken(title, labels, series, form), body)


def ranked(names: Sequence[str], values: Values, marks: Values, title: str) -> Markup:
    """Bars under their names, each with a mark (NaN for none)."""
    row, right = 34, 56
    top = max(1e-12, float(np.nanmax(np.concatenate([values, marks]))))
    scale = (WIDTH - right) / top
    bar, mark, body = [], [], []
    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        y = row * number
        body.append(_text(0, y + 12, _short(name, 50), "start"))
        bar.append(f"M0 {y + 17}h{_n(max(0.5, value * scale))}v10H0z")
        body.append(_text(value * scale + 4, y + 26, f"{value:.2%}", "start", "s"))
        if not np.isnan(marks[number]):
            mark.append(f"M{_n(marks[number] * scale)} {y + 14}v16")
    body.append(f'<path class="synthetic" d="{"".join(bar)}"/>')
    body.append(f'<path class="mark" d="{"".join(mark)}"/>')
    spoken = [
        f"{name}: {value:.2%}" + ("" if np.isnan(mark) else f", noise {mark:.2%}")
        for name, value, mark in zip(names, values, marks, strict=True)
    ]
    return _svg(WIDTH, row * len(names) + 2, f"{title}. {'; '.join(spoken)}.", body)


def heat_map(names: Sequence[str], matrix: Values, span: float, title: str) -> Markup:
    """A square of coloured cells, from minus to plus ``span``."""
    size = heat_width(len(names))
    cell, edge = CELL, EDGE
    middle = LEVELS // 2
    level = np.clip(np.rint(matrix / span * middle), -middle, middle).astype(int) + middle
    body = []
    for number, name in enumerate(names):
        place = edge + cell * number + 9
        body.append(_text(edge - 4, place, _short(name, 13), "end"))
        body.append(
            f'<text transform="translate({place} {edge - 4})rotate(-90)">'
            f"{escape(_short(name, 13))}</text>"
        )
    body.append(f'<path class="d{middle}" d="M{edge} {edge}H{size}V{size}H{edge}z"/>')
    for each in range(LEVELS):
        rows, columns = np.nonzero(level == each)
        if each == middle or not len(rows):
            continue
        path = "".join(
            f"M{edge + cell * c} {edge + cell * r}h{cell}v{cell}h-{cell}z"
            for r, c in zip(rows.tolist(), columns.tolist(), strict=True)
        )
        body.append(f'<path class="d{each}" d="{path}"/>')
    return _svg(size, size, f"{title}. {_strongest(names, matrix)}", body)


def heat_width(names: int) -> int:
    """The width of a heat map."""
    return EDGE + CELL * names


def intervals(
    names: Sequence[str], found: Sequence[tuple[float, float, float]], middle: float, title: str
) -> Markup:
    """Values between 0 and 1 with their intervals, and the value of a guess."""
    row, left, right = 40, 8, 10
    width = WIDTH - left - right

    def x(value: float) -> str:
        return _n(left + width * value)

    height = row * len(names) + 20
    body = []
    for number, (name, (value, low, high)) in enumerate(zip(names, found, strict=True)):
        y = row * number
        body.append(_text(left, y + 12, name, "start"))
        body.append(
            f'<path class="rule" d="M{x(0)} {y + 26}H{x(1)}"/>'
            f'<path class="line synthetic" d="M{x(low)} {y + 26}H{x(high)}M{x(low)} {y + 21}v10'
            f'M{x(high)} {y + 21}v10"/><circle class="synthetic" cx="{x(value)}" cy="{y + 26}" '
            f'r="4"/><path class="mark" d="M{x(middle)} {y + 17}v18"/>'
        )
    for value, side in ((0.0, "start"), (middle, "middle"), (1.0, "end")):
        body.append(_text(left + width * value, height - 4, f"{value:g}", side))
    spoken = "; ".join(
        f"{name}: {value:.3f}, from {low:.3f} to {high:.3f}"
        for name, (value, low, high) in zip(names, found, strict=True)
    )
    return _svg(WIDTH, height, f"{title}. {spoken}. A guess gives {middle:g}.", body)


def power_curves(
    alarms: Sequence[float], powers: Sequence[tuple[str, str, Sequence[float]]], title: str
) -> Markup:
    """The largest power of a test at each rate of false alarms; the diagonal is a guess.

    Args:
        alarms: Probabilities of a false alarm, from 0 to 1.
        powers: For each line its name, its style, and the largest power at each of ``alarms``.
        title: The beginning of the text alternative.
    """
    left, top, side = 52, 8, 210

    def at(alarm: float, power: float) -> str:
        return f"{_n(left + side * alarm)} {_n(top + side * (1 - power))}"

    body = [
        f'<path class="rule" d="M{at(0, 1)}V{top + side}H{left + side}"/>',
        f'<path class="mark" d="M{at(0, 0)}L{at(1, 1)}"/>',
    ]
    for _, style, line in powers:
        points = "L".join(at(*point) for point in zip(alarms, line, strict=True))
        body.append(f'<path class="line {style}" d="M{points}"/>')
    for share in (0.0, 0.5, 1.0):
        body.append(_text(left + side * share, top + side + 14, f"{share:.0%}", "middle"))
        body.append(_text(left - 5, top + side * (1 - share) + 4, f"{share:.0%}", "end"))
    body.append(_text(left + side / 2, top + side + 29, "false alarms", "middle", "s"))
    body.append(
        f'<text class="s" text-anchor="middle" transform="translate(10 {_n(top + side / 2)})'
        'rotate(-90)">rightly recognised, at most</text>'
    )
    tenth = min(range(len(alarms)), key=lambda place: abs(alarms[place] - 0.1))
    spoken = "; ".join(
        f"{name}: at most {math.ceil(1000 * line[tenth]) / 1000:.1%} at {alarms[tenth]:.0%} false "
        "alarms"
        for name, _, line in powers
    )
    return _svg(WIDTH, top + side + 34, f"{title}. {spoken}.", body)


def _apart(places: Sequence[float], heights: Values, least: float) -> list[int]:
    """The places with the greatest heights that are all so far from each other."""
    chosen: list[int] = []
    for i in np.argsort(-heights, kind="stable").tolist():
        if all(abs(places[i] - places[j]) >= least for j in chosen):
            chosen.append(i)
    return chosen


def _spike_label(x: float, y: float, words: str, left: float) -> str:
    """The value of a spike, above it; within the drawing."""
    if x < left + SPIKE_LABEL / 2:
        return _text(x - THIN / 2, y, words, "start", "s halo")
    if x > WIDTH - SPIKE_LABEL / 2:
        return _text(WIDTH - 2, y, words, "end", "s halo")
    return _text(x, y, words, "middle", "s halo")


def _svg(width: float, height: float, spoken: str, body: Sequence[str]) -> Markup:
    return Markup(
        f'<svg viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{escape(spoken)}">'
        f"{''.join(body)}</svg>"
    )


def _axis(left: float, base: float, top: float) -> str:
    line = f'<path class="rule" d="M{left} {base}H{WIDTH - 4}M{left} 12h-3M{left} {base}h-3"/>'
    return line + _text(left - 5, 15, f"{top:.0%}" if top >= 0.1 else f"{top:.1%}", "end")


def _text(x: float, y: float, words: str, side: str, style: str = "") -> str:
    anchor = "" if side == "start" else f' text-anchor="{side}"'
    kind = f' class="{style}"' if style else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{anchor}{kind}>{escape(words)}</text>'


def _n(number: float) -> str:
    """A coordinate, rounded to a tenth of a pixel."""
    return f"{number:.1f}".removesuffix(".0")


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def _frequent(
    labels: Sequence[str], series: Sequence[Series], most: int
) -> tuple[list[str], list[Series]]:
    """The labels with the largest values, in their order, and one label for all others."""
    if len(labels) <= most:
        return list(labels), list(series)
    most -= 1
    weight = np.sum([each.values for each in series], axis=0)
    shown = np.sort(np.argsort(-weight, kind="stable")[:most])
    few = []
    for each in series:
        rest = float(each.values.sum() - each.values[shown].sum())
        few.append(each._replace(values=np.append(each.values[shown], max(0.0, rest))))
    return [*(labels[place] for place in shown), f"{len(labels) - most:,} others"], few


def _spoken(title: str, labels: Sequence[str], series: Sequence[Series], form: str = ".1%") -> str:
    """The text alternative of a drawing, with the largest values of each series."""
    parts = []
    for each in series:
        order = np.argsort(-each.values, kind="stable")[:5]
        tallest = ", ".join(
            f"{_short(labels[place], 40)} {each.values[place]:{form}}" for place in order
        )
        parts.append(f"{each.name}, largest first: {tallest}")
    return f"{title}. {'. '.join(parts)}."


def _strongest(names: Sequence[str], matrix: Values) -> str:
    rows, columns = np.triu_indices(len(names), 1)
    if not len(rows):
        return "There is one column only."
    order = np.argsort(-np.abs(matrix[rows, columns]), kind="stable")[:5]
    words = [
        f"{names[rows[place]]} and {names[columns[place]]} "
        f"{matrix[rows[place], columns[place]]:.2f}"
        for place in order
    ]
    return f"Strongest: {'; '.join(words)}."
