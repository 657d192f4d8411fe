"""Binning: the atoms of encoded values."""

from __future__ import annotations

from private_gsd.kernels.compiling import kernel


@kernel
def bin_codes(values, null, out):  # type: ignore[no-untyped-def]
    """The atoms of a discrete column: the codes, and ``null`` for NaN."""
    for row in range(values.size):
        value = values[row]
        out[row] = null if value != value else value


@kernel
def bin_numbers(values, breaks, null, out):  # type: ignore[no-untyped-def]
    """The atoms of a numeric column: the number of sorted ``breaks`` at or below each value.

    Segments are half-open, [a, b), except the last, which ends with the domain. The atom is guessed
    as if the breaks were evenly spaced, as those of a tree are, and the guess is then corrected by
    comparisons, so that the result is exact for all breaks. The guess stays within the breaks for
    all numbers, infinity and the smallest spans among them.
    """
    last = breaks.size - 1
    if last < 0:
        for row in range(values.size):
            out[row] = null if values[row] != values[row] else 0
        return
    low = breaks[0]
    span = breaks[last] - low
    scale = last / span if span > 0 else 0.0
    if not scale < 1e300:
        scale = 0.0
    for row in range(values.size):
        value = values[row]
        if value != value:
            out[row] = null
            continue
        guess = (value - low) * scale
        atom = int(guess) if 0 <= guess <= last else (last if guess > last else 0)
        # A guess that is off by more than one is replaced by a bisection.
        below, above = 0, last + 1
        if atom <= last and breaks[atom] <= value:
            below = atom + 1
            if below <= last and breaks[below] > value:
                above = below
        elif atom > 0 and breaks[atom - 1] > value:
            above = atom - 1
            if above > 0 and breaks[above - 1] <= value:
                below = above
        else:
            below = above = atom
        while below < above:
            middle = (below + above) // 2
            if breaks[middle] <= value:
                below = middle + 1
            else:
                above = middle
        out[row] = below


@kernel
def count_outside(values, low, high, nullable):  # type: ignore[no-untyped-def]
    """The number of values outside the bounds; NaN is inside where ``nullable`` is true."""
    outside = 0
    for row in range(values.size):
        value = values[row]
        inside = (value >= low) & (value <= high)
        outside += not (inside | (nullable & (value != value)))
    return outside
