"""A small census, measured with little noise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from private_gsd import (
    Measurements,
    datasets,
)
from private_gsd.counting.exact import exact_counts
from private_gsd.workloads import Workload

NAMES = ["sex", "age", "marital", "hours"]


SCHEMA = datasets.census_schema().select(NAMES)


DATA = datasets.census(6000, seed=5).select(NAMES)


COUNTS = {"sex = 'female' AND age >= 65": 777, "marital = 'single'": 2500}


def measured(workload: Workload, sigma: float = 1.0) -> Measurements:
    exact = exact_counts(workload, DATA)
    noise = np.random.default_rng(1).normal(0, sigma, len(exact.counts))
    groups = workload.num_groups
    scales = np.full(groups, sigma) * workload.max_contributions
    counts = exact.counts + noise * np.repeat(workload.max_contributions, workload.group_sizes)
    return Measurements(workload, counts, scales, exact.n_records, ("",) * groups, False)


def share(table: pa.Table, condition: str) -> float:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("rows", table)
        text = f"SELECT avg(CASE WHEN {condition} THEN 1.0 ELSE 0.0 END) FROM rows"
        return float(connection.execute(text).fetchall()[0][0])
