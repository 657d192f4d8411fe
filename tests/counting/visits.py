"""Simulated visits: a few of each patient, as a table of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from private_gsd import Categorical, Integer, Schema, Unit

COLUMNS = [
    Categorical("ward", values=["a", "b", "c"]),
    Integer("age", lower=0, upper=9, nullable=True),
]


def schema(at_most: int = 3, weighting: Any = "units", null_ids: Any = "refuse") -> Schema:
    """The public schema."""
    return Schema(COLUMNS, unit=Unit("patient", at_most, weighting, null_ids))


def visits(patients: int = 60, seed: int = 0, most: int = 7) -> pa.Table:
    """Visits of patients, mixed; some of them are equal."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(patients), rng.integers(1, most + 1, patients))
    ids = rng.permutation(ids)
    ages = rng.integers(0, 10, len(ids))
    return pa.table(
        {
            "age": pa.array(ages, mask=ages == 7),
            "patient": ids + 1000,
            "ward": rng.choice(["a", "b", "c"], len(ids)),
        }
    )
