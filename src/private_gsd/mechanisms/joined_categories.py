"""Joined categories: the rare ones of a column of many, which noise hides in marginals of pairs.

A column with thousands of categories has millions of cells with another, nearly all of them empty.
Once the column was measured by itself, common categories get cells of their own in marginals, and
the others are joined, in the order of the schema, to cells of about the same mass. All of this is
computed from measurements, and so it costs no privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.workloads.features import joined_feature

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.workloads.features import Feature

# The largest number of cells of a column in marginals of pairs; columns of more have some joined.
MOST_CATEGORIES = 64
# The largest number of cells of joined categories among them.
MOST_JOINED = 16


def has_many(feature: Feature) -> bool:
    """Whether a column has so many categories that some may be joined."""
    return not feature.breaks and len(feature.segments) > MOST_CATEGORIES


def joined(feature: Feature, shares: NDArray[np.float64], least: float) -> Feature:
    """The feature, with rare categories joined where it has more than ``MOST_CATEGORIES``.

    Args:
        feature: The feature of a discrete column.
        shares: The share of each category, as it was measured; null is the last.
        least: The least share of the records of a category with a cell of its own.
    """
    number = len(feature.segments)
    if not has_many(feature):
        return feature
    own = shares[:number]
    common = np.argsort(-own, kind="stable")[: MOST_CATEGORIES - MOST_JOINED]
    common = common[own[common] >= least]
    alone = np.zeros(number, dtype=np.bool_)
    alone[common] = True
    rest = np.where(alone, 0.0, own)
    mass = max(least, float(rest.sum()) / MOST_JOINED)
    # A category is in the cell in which the mass before it ends.
    before = np.concatenate([[0.0], np.cumsum(rest)[:-1]])
    cells = np.minimum(np.floor(before / mass) if mass > 0 else before, MOST_JOINED - 1)
    cells[alone] = MOST_JOINED + np.arange(len(common))
    return joined_feature(feature, cells.astype(np.int64).tolist())
