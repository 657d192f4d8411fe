"""Drawing: random places with given probabilities, in slices of bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Most numbers in a slice, which then takes 32 MiB.
SLICE_NUMBERS = 2**22


def draw_places(
    probabilities: NDArray[np.float64], which: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a place for each row, with the probabilities of the row's distribution.

    Args:
        probabilities: The probability of each place (rows) in each distribution (columns).
        which: The distribution of each row.
        rng: The random number generator.
    """
    ends = np.cumsum(probabilities.T, axis=1)
    drawn = np.empty(len(which), dtype=np.int64)
    share = rng.random(len(which)) * ends[which, -1]
    step = max(1, SLICE_NUMBERS // ends.shape[1])
    for begin in range(0, len(which), step):
        part = slice(begin, begin + step)
        drawn[part] = (share[part, None] >= ends[which[part]]).sum(axis=1)
    np.minimum(drawn, ends.shape[1] - 1, out=drawn)
    return drawn
