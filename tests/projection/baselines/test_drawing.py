"""Drawing: by the probabilities, in slices of bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd.projection.baselines import drawing
from private_gsd.projection.baselines.drawing import draw_places
from tests.projection.baselines.known import memory_of_at_most


def test_values_are_drawn_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(2000), 20).T
    which = rng.integers(20, size=40_000)
    with memory_of_at_most(150):  # all at once it would be 640 MB
        drawn = draw_places(probabilities, which, np.random.default_rng(1))
    assert drawn.min() >= 0
    assert drawn.max() < 2000
    # The slow twin, a row at a time, with the same shares.
    shares = np.random.default_rng(1).random(40_000)
    for row in range(0, 40_000, 997):
        ends = np.cumsum(probabilities[:, which[row]])
        assert drawn[row] == np.searchsorted(ends, shares[row] * ends[-1], side="right")
    monkeypatch.setattr(drawing, "SLICE_NUMBERS", 2000 * 7)
    again = draw_places(probabilities, which, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, again)
