"""A small table in memory."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset

from private_gsd import (
    Categorical,
    Integer,
    Schema,
)

SCHEMA = Schema(
    [
        Integer("age", lower=0, upper=120),
        Categorical("sex", values=("f", "m"), nullable=True),
    ]
)


TABLE = pa.table({"age": [31, 64, 8], "sex": ["m", None, "f"]})
