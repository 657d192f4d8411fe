"""Offsets: the starts of parts that are stored one after the other in one array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def starts_of(sizes: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each part, given the sizes of all parts, and the end of the last part.

    >>> starts_of([2, 3]).tolist()
    [0, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
