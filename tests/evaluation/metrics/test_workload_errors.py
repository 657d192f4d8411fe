"""Errors of answers agree with exact counts, and come with their noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import private_gsd as gsd
from private_gsd.evaluation.metrics.workload_errors import noise_of, workload_errors
from private_gsd.evaluation.table_sample import sample_table
from private_gsd.workloads import categorical_marginals
from tests.evaluation.tables import SCHEMA, TRAIN, shuffled

WORKLOAD = categorical_marginals(SCHEMA, 2)
OTHER = shuffled(TRAIN)
REAL, SYNTHETIC = (sample_table(table, SCHEMA, WORKLOAD, limit=100) for table in (TRAIN, OTHER))


def measured(groups: list[tuple[list[str], float]]) -> gsd.Measurements:
    """Measurements of some pairs of columns, with given noise."""
    tables = []
    for names, scale in groups:
        sizes: list[int] = [len(SCHEMA[name].values) for name in names]  # type: ignore[attr-defined]
        size = math.prod(sizes)
        tables.append((names, [TRAIN.num_rows / size] * size, scale))
    return gsd.Measurements.from_marginals(SCHEMA, TRAIN.num_rows, tables, private=True)


def test_errors_are_those_of_exact_counts() -> None:
    found = workload_errors(WORKLOAD, REAL, SYNTHETIC)
    twin = gsd.query_errors(WORKLOAD, TRAIN, OTHER)
    assert found.mean == pytest.approx(twin.mean)
    assert found.rms == pytest.approx(twin.rms)
    assert found.largest == pytest.approx(twin.max)
    assert (found.noise, found.measured_rms) == (None, None)
    assert len(found.groups) == WORKLOAD.num_groups
    assert [group.rms for group in found.groups] == sorted(
        (group.rms for group in found.groups), reverse=True
    )
    worst, queries = found.worst[0]
    assert worst == found.groups[0]
    assert max(abs(query.real - query.synthetic) for query in queries) == pytest.approx(
        worst.largest
    )


def test_groups_have_the_noise_that_they_were_measured_with() -> None:
    names = [SCHEMA.names[0], SCHEMA.names[1]]
    group = next(
        place
        for place in range(WORKLOAD.num_groups)
        if WORKLOAD.describe(place) == " x ".join(names)
    )
    few = measured([(names, 30.0)])
    noise = noise_of(WORKLOAD, few)
    assert noise[group] == pytest.approx(30 / TRAIN.num_rows)
    assert np.isnan(np.delete(noise, group)).all()
    # Of a group that was measured twice, the smaller noise counts.
    assert noise_of(WORKLOAD, measured([(names, 30.0), (names, 6.0)]))[group] == pytest.approx(
        6 / TRAIN.num_rows
    )
    found = workload_errors(WORKLOAD, REAL, SYNTHETIC, few)
    assert found.noise == pytest.approx(30 / TRAIN.num_rows)
    assert sum(each.noise is not None for each in found.groups) == 1
    [one] = [each for each in found.groups if each.noise is not None]
    assert one.against_noise == pytest.approx(one.rms / noise[group])
    assert found.measured_rms == pytest.approx(one.rms)
