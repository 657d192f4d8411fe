"""Dates and datetimes: bounds by the clock of the column."""

from __future__ import annotations

import datetime as dt

from private_gsd import Datetime
from private_gsd.schema.keys import column_from_dict


def test_bounds_with_a_time_zone_are_taken_to_the_clock_of_the_column() -> None:
    column = column_from_dict(
        "x",
        {
            "kind": "datetime",
            "lower": "2020-01-01T00:00:00Z",
            "upper": "2021-01-01T00:00:00Z",
            "timezone": "Europe/Vienna",
        },
    )
    assert isinstance(column, Datetime)
    assert column.lower == dt.datetime(2020, 1, 1, 1)
