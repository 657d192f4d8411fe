"""Query errors: the largest, the mean and the root mean square difference of two tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from private_gsd import datasets, exact_counts, query_errors, workloads
from private_gsd.counting.comparison import errors_of, share_errors

SCHEMA = datasets.census_schema()


def test_query_errors() -> None:
    table = datasets.census(1000)
    workload = workloads.categorical_marginals(SCHEMA, sets=[("sex",)])
    women, men = (
        table.filter(pa.compute.equal(table["sex"], sex)).slice(0, 100)
        for sex in ("female", "male")
    )
    errors = query_errors(workload, women, men)
    assert (errors.max, errors.mean, errors.rms) == (1, 1, 1)
    mixed = pa.concat_tables([women, men.slice(0, 25)])
    errors = query_errors(workload, mixed, women)
    assert (errors.max, errors.mean, errors.rms) == pytest.approx((0.2, 0.2, 0.2))
    exact = exact_counts(workload, women)
    assert query_errors(workload, exact, women).max == 0
    with pytest.raises(ValueError, match="another workload"):
        query_errors(workloads.categorical_marginals(SCHEMA, 1), exact, women)


def test_share_errors() -> None:
    errors = share_errors(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.1, 0.7]))
    assert errors.max == pytest.approx(0.4)
    assert errors.mean == pytest.approx(0.7 / 3)
    assert errors.rms == pytest.approx(np.sqrt(0.25 / 3))


def test_errors_of_exact_counts() -> None:
    table = datasets.census(100)
    workload = workloads.categorical_marginals(SCHEMA, 1)
    exact = exact_counts(workload, table)
    assert errors_of(exact, exact.counts / 100).max == 0
