"""Drawing: values by their chances, in slices, so that no table of rows by values is ever held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How many numbers a slice may hold: 32 MiB.
AT_ONCE = 2**22


def draw_places(
    chances: NDArray[np.float64], which: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each row one of a column's places, by the chances of the distribution that it is from.

    Args:
        chances: Of each place (rows) in each distribution (columns).
        which: The distribution of each row.
        rng: Where the randomness comes from.
    """
    ends = np.cumsum(chances.T, axis=1)
    drawn = np.empty(len(which), dtype=np.int64)
    share = rng.random(len(which)) * ends[which, -1]
    step = max(1, AT_ONCE // ends.shape[1])
    for begin in range(0, len(which), step):
        part = slice(begin, begin + step)
        drawn[part] = (share[part, None] >= ends[which[part]]).sum(axis=1)
    np.minimum(drawn, ends.shape[1] - 1, out=drawn)
    return drawn
