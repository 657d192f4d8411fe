"""Regions: sets of values of a column."""

from __future__ import annotations

import pytest

from private_gsd.sql import expressions
from private_gsd.sql.regions import Region

pytestmark = pytest.mark.worker("large")


def test_regions_are_halved_without_loss() -> None:
    whole = Region(((0.0, 5.0), (9.0, 9.0)), null=True, grid=1.0)
    left = [whole]
    singles = []
    while left:
        region = left.pop()
        if region.single:
            singles.append(region)
        else:
            left += region.halves()
    numbers = sorted(region.hull[0] for region in singles if not region.null)
    assert numbers == [0, 1, 2, 3, 4, 5, 9]
    assert sum(region.null for region in singles) == 1


def test_a_region_meets_a_test_as_rows_do() -> None:
    test = expressions.ColumnTest(0, (2, 0, 2), 0, (0.25, 0.3))
    region = Region(((0.0, 1.0),), null=True, grid=100.0).meet(test)
    assert region.pieces == ((0.0, 0.24), (0.3, 1.0))
    assert not region.null
