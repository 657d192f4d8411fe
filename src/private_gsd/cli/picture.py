"""A picture of two tables side by side: small bars for every column, as one SVG file."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.schema import Schema

WIDTH, HEIGHT, ACROSS = 210, 120, 4
MARGIN, BARS = 16, 60
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 }
.small { font-size: 10px; fill: #555 }
.real { fill: #9aa5b1 }
.made { fill: #d9480f }
rect.page { fill: #fff }
@media (prefers-color-scheme: dark) {
  text { fill: #eee } .small { fill: #aaa } rect.page { fill: #1b1e23 } .real { fill: #6b7785 }
}
"""


def comparison(
    schema: Schema,
    real: Sequence[NDArray[np.float64]],
    made: Sequence[NDArray[np.float64]],
) -> str:
    """The shares of each column's bins in both tables.

    Args:
        schema: The columns.
        real: For each column, the counts of its bins in the real table.
        made: For each column, the counts of its bins in the synthetic table.
    """
    down = -(-len(schema) // ACROSS)
    width, height = ACROSS * WIDTH + 2 * MARGIN, down * HEIGHT + 2 * MARGIN + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}">',
        "<title>Real and synthetic table, column by column</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        f'<rect class="real" x="{MARGIN}" y="{MARGIN}" width="12" height="12"/>',
        f'<text x="{MARGIN + 18}" y="{MARGIN + 11}">real (simulated)</text>',
        f'<rect class="made" x="{MARGIN + 140}" y="{MARGIN}" width="12" height="12"/>',
        f'<text x="{MARGIN + 158}" y="{MARGIN + 11}">synthetic</text>',
    ]
    for number, column in enumerate(schema):
        left = MARGIN + number % ACROSS * WIDTH
        top = MARGIN + 24 + number // ACROSS * HEIGHT
        shares = [counts[number] / max(counts[number].sum(), 1) for counts in (real, made)]
        off = float(abs(shares[0] - shares[1]).sum() / 2)
        parts.append(f'<text x="{left}" y="{top + 14}">{escape(column.name)}</text>')
        parts.append(
            f'<text class="small" x="{left}" y="{top + 28}">{column.kind}, {off:.1%} apart</text>'
        )
        tallest = max(float(each.max()) for each in shares) or 1.0
        step = (WIDTH - 24) / len(shares[0])
        for which, (name, each) in enumerate(zip(("real", "made"), shares, strict=True)):
            for place, share in enumerate(each.tolist()):
                tall = BARS * share / tallest
                x = left + place * step + which * step * 0.42
                y = top + 34 + BARS - tall
                parts.append(
                    f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{step * 0.4:.1f}" '
                    f'height="{tall:.1f}"/>'
                )
    parts.append("</svg>")
    return "\n".join(parts)
