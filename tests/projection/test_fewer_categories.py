"""Fewer categories: marginals of joined cells, and values drawn as the single column says."""

from __future__ import annotations

import numpy as np

from private_gsd import Categorical, Measurements, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.projection.fewer_categories import FewerCategories
from private_gsd.projection.new_rows import NewRows
from private_gsd.workloads import Marginals, Workload
from private_gsd.workloads.features import discrete_feature, joined_feature
from private_gsd.workloads.marginals import Marginal

SCHEMA = Schema(
    [
        Categorical("many", values=[f"v{n}" for n in range(6)], nullable=True),
        Categorical("few", values=list("ab")),
    ]
)
MANY, FEW = discrete_feature(SCHEMA, 0), discrete_feature(SCHEMA, 1)
JOINED = joined_feature(MANY, [7, 1, 7, 7, 1, 2])
WORKLOAD = Workload(
    SCHEMA,
    (Marginals(SCHEMA, [Marginal(((MANY,),)), Marginal(((FEW,),)), Marginal(((JOINED, FEW),))]),),
)
rng = np.random.default_rng(0)
MATRIX = np.column_stack([rng.integers(0, 6, 400), rng.integers(0, 2, 400)]).astype(float)
MATRIX[::9, 0] = np.nan


def measured(workload: Workload = WORKLOAD) -> Measurements:
    groups = workload.num_groups
    counts = count(workload, MATRIX).astype(float)
    return Measurements(workload, counts, np.full(groups, 2.0), 400, ("",) * groups, False)


def test_cells_are_categories() -> None:
    fewer = FewerCategories.of(measured())
    assert fewer is not None
    schema = fewer.measured.workload.schema
    assert [len(column.values) for column in schema.columns] == [3, 2]  # type: ignore[attr-defined]
    assert schema.columns[0].nullable
    # The twin: the table with cells in place of categories, counted.
    matrix = MATRIX.copy()
    known = ~np.isnan(matrix[:, 0])
    matrix[known, 0] = np.array(JOINED.segments)[matrix[known, 0].astype(int)]
    np.testing.assert_array_equal(fewer.measured.counts, count(fewer.measured.workload, matrix))
    # Seven counts are summed to four: the single column has more noise, the others have the same.
    np.testing.assert_allclose(fewer.measured.scales, [2 * np.sqrt(7 / 4), 2, 2])


def test_values_are_drawn_as_the_single_column_says() -> None:
    fewer = FewerCategories.of(measured())
    assert fewer is not None
    cells = np.array([0, 0, 0, 0, 1, 1, np.nan, 2])
    table = np.column_stack([np.tile(cells, 100), np.zeros(800)])
    made = fewer.expanded(table, seed=1)
    known = ~np.isnan(table[:, 0])
    np.testing.assert_array_equal(np.isnan(made[:, 0]), ~known)
    codes = made[known, 0].astype(int)
    np.testing.assert_array_equal(np.array(JOINED.segments)[codes], table[known, 0])
    shares = count(WORKLOAD.select([0]), MATRIX)[:6] / 400
    found = np.bincount(codes, minlength=6)
    for members in ([0, 2, 3], [1, 4], [5]):
        expected = shares[members] / shares[members].sum() * found[members].sum()
        assert np.abs(found[members] - expected).max() <= 1  # to whole rows
    np.testing.assert_array_equal(made, fewer.expanded(table, seed=1))
    assert (made[known] != fewer.expanded(table, seed=2)[known]).any()


def test_joining_is_the_inverse_of_drawing() -> None:
    fewer = FewerCategories.of(measured())
    assert fewer is not None
    joined = fewer.joined(MATRIX)
    np.testing.assert_array_equal(fewer.joined(fewer.expanded(joined, seed=1)), joined)
    np.testing.assert_array_equal(joined[:, 1], MATRIX[:, 1])


def test_new_rows_have_the_categories_of_the_schema() -> None:
    """As often as the single column says: five sigma of a share of 10,000 rows are 0.025."""
    made = NewRows(measured(), MATRIX, seed=1).table(10_000)
    assert np.isnan(made[:, 0]).any()
    everything = WORKLOAD.select([0, 2])
    shares, real = count(everything, made) / 10_000, count(everything, MATRIX) / 400
    assert np.abs(shares - real).max() < 0.025


def test_where_nothing_is_joined() -> None:
    assert FewerCategories.of(measured(workloads.categorical_marginals(SCHEMA, 2))) is None
    families = WORKLOAD.families[0].marginals
    # A pair that has all categories; a column that was not measured by itself.
    for groups in ([*families, Marginal(((MANY, FEW),))], families[1:]):
        assert FewerCategories.of(measured(Workload(SCHEMA, (Marginals(SCHEMA, groups),)))) is None
    asked = WORKLOAD + workloads.predicates(SCHEMA, ["many = 'v1'"])
    assert FewerCategories.of(measured(asked)) is None
    ruled = Schema(SCHEMA.columns, constraints=["many <> 'v1' OR few = 'a'"])
    groups = WORKLOAD.families[0].marginals
    assert FewerCategories.of(measured(Workload(ruled, (Marginals(ruled, groups),)))) is None


def test_weights_of_nothing_are_even() -> None:
    counts = count(WORKLOAD, MATRIX).astype(float)
    counts[[0, 2, 3]] = -5.0
    found = FewerCategories.of(
        Measurements(WORKLOAD, counts, np.full(3, 2.0), 400, ("",) * 3, False)
    )
    assert found is not None
    made = found.expanded(np.zeros((30, 2)), seed=0)
    assert np.bincount(made[:, 0].astype(int), minlength=6).tolist() == [10, 0, 10, 10, 0, 0]
    assert found.expanded(np.zeros((0, 2)), seed=0).shape == (0, 2)
