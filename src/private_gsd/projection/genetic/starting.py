"""The table that a search starts from: it has no structure but that of the answers.

The search changes a table until the measured answers fit, and what was not measured stays as it
was. The first table is therefore one of sampled rows, where the answers were denoised with pairs,
or one of independent columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.projection.constraints import broken_rows
from private_gsd.projection.domain import random_table
from private_gsd.projection.single_columns import independent_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.measurements.measurements import Measurements
    from private_gsd.projection.denoising.denoise import Denoising
    from private_gsd.projection.objective import Objective

    Matrix = NDArray[np.float64]

# Least fraction of rows that keep the schema's rules; if fewer do, all rows are found by the rules.
LEAST_KEPT = 0.03

_STARTS = 2**60 + 1  # the stream of random numbers of first tables


def starting_table(
    objective: Objective,
    measured: Measurements,
    denoising: Denoising | None,
    rows: int,
    seed: int,
) -> Matrix:
    """The first table of a search.

    Args:
        objective: The objective of the search.
        measured: The answers that the search fits.
        denoising: The denoising, if there was one.
        rows: The number of rows.
        seed: The seed of the search.
    """
    rng = np.random.default_rng([seed, _STARTS])

    def draw(number: int) -> Matrix:
        sampled = None if denoising is None else denoising.values(number, rng)
        if sampled is not None:
            return sampled
        uniform = random_table(objective.problem.columns, number, seed)
        return independent_table(measured, uniform, rng)

    if not objective.ruled:
        return draw(rows)
    kept = _kept(objective, draw, rows)
    return objective.random_table(rows, seed) if kept is None else kept


def _kept(objective: Objective, draw: Callable[[int], Matrix], rows: int) -> Matrix | None:
    """Rows that keep the schema's rules; None if few do."""
    found = draw(rows)
    share = 1 - float(broken_rows(objective.schema, found).mean())
    if share < LEAST_KEPT:
        return None
    if share < 1:
        found = draw(int(rows / share) + 1)
        found = found[~broken_rows(objective.schema, found)]
    return None if not len(found) else np.resize(found, (rows, found.shape[1]))
