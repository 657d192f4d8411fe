"""A table with columns of every kind, for conditions on its rows."""

from __future__ import annotations

import numpy as np

from private_gsd.projection.domain import columns_of, random_table
from private_gsd.schema import Boolean, Categorical, Date, Datetime, Integer, Real, Schema

SCHEMA = Schema(
    [
        Categorical("job", values=["a", "b", "c", "it's"], nullable=True),
        Categorical("other job", values=["b", "c", "d"], nullable=True),
        Boolean("owner", nullable=True),
        Categorical("code", values=(3, 10, 7)),
        Integer("age", lower=0, upper=99, nullable=True),
        Integer("hours", lower=0, upper=80, nullable=True),
        Real("pay", lower=-10, upper=1000, decimals=1, nullable=True),
        Date("begun", lower="2020-01-01", upper="2024-12-31", nullable=True),  # type: ignore[arg-type]
        Date("ended", lower="2020-01-01", upper="2025-12-31", nullable=True),  # type: ignore[arg-type]
        Datetime("seen", lower="2020-01-01T00:00:00", upper="2024-12-31T00:00:00", nullable=True),  # type: ignore[arg-type]
    ]
)


def rows_of(
    schema: Schema, rows: int, seed: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Random encoded rows of a schema."""
    return random_table(columns_of(schema, [np.empty(0)] * len(schema)), rows, seed)
