"""Joint tables: many marginals are counted in few tables."""

from __future__ import annotations

import numpy as np

from private_gsd import (
    Boolean,
    Schema,
    workloads,
)
from private_gsd.counting.exact import count
from private_gsd.workloads.joint_tables import JointTables, cover
from tests.workloads.test_marginal_constructors import reals


def test_cover() -> None:
    sets = [(0, 1), (1, 2), (0, 2), (2, 3)]
    joints, which = cover(sets, [2, 2, 2, 100], 64)
    assert joints == [(0, 1, 2), (2, 3)]
    assert which == [0, 0, 0, 1]
    joints, which = cover([(0, 3), (3, 0)], [2, 2, 2, 100], 10)
    assert joints == [(0, 3)]
    assert which == [0, 0]


def test_fine_cuts_of_one_group_are_not_forced_on_others() -> None:
    """A tree of 14 levels beside trees of pairs: the pairs are counted in their own cells."""
    schema = Schema(reals(2))
    workload = workloads.tree_marginals(schema, 1, 14) + workloads.tree_marginals(
        schema, 2, 5, categorical=0
    )
    [family] = workload.families
    assert JointTables(schema, family.marginals).size <= 2 * 2**14 + 4096 * 2
    matrix = np.random.default_rng(0).random((500, 2))
    pairs = workloads.tree_marginals(schema, 2, 5, categorical=0)
    np.testing.assert_array_equal(count(workload, matrix)[-pairs.size :], count(pairs, matrix))


def test_many_sets_are_planned_in_bounded_tries() -> None:
    schema = Schema([Boolean(f"b{i}") for i in range(45)])
    workload = workloads.categorical_marginals(schema, 3)
    matrix = np.random.default_rng(0).integers(0, 2, (50, 45)).astype(float)
    assert count(workload, matrix).sum() == 50 * workload.num_groups


def test_many_overlapping_ranges_share_their_sums() -> None:
    schema = Schema(reals(2))
    intervals = [(i / 4000, 0.5 + i / 4000) for i in range(1, 121)]
    workload = workloads.range_marginals(schema, {"x0": intervals, "x1": intervals})
    matrix = np.random.default_rng(0).random((40, 2))
    counts = count(workload, matrix)
    for index in range(0, workload.size, 997):
        low, high = (float(word.split()[2]) for word in workload.query(index).split(" AND ")[:2])
        assert "x0" in workload.query(index)
        inside = (matrix[:, 0] >= low) & (matrix[:, 0] < high)
        assert counts[index] <= inside.sum()
