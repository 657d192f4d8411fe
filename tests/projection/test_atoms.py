"""Atoms: values in and out of them, against the features that they are summed to."""

from __future__ import annotations

import numpy as np

from private_gsd import Integer, Schema, workloads
from private_gsd.counting.exact import count
from private_gsd.projection.atoms import Atoms
from private_gsd.workloads.layout import marginal_tables
from tests.projection.baselines.known import SCHEMA, table

WORKLOAD = (
    workloads.categorical_marginals(SCHEMA, 2)
    + workloads.random_prefixes(SCHEMA, 5)
    + workloads.tree_marginals(SCHEMA, 2, 3)
    + workloads.range_marginals(SCHEMA, {"age": [(0, 1), (1, 4)], "income": [(100, 250)]})
)
TABLES = marginal_tables(WORKLOAD)
ATOMS = Atoms.of(SCHEMA, TABLES)


def test_tables_are_found_in_their_places() -> None:
    sizes = WORKLOAD.group_sizes
    for group in range(WORKLOAD.num_groups):
        mine = [each for each in TABLES if each.group == group]
        if mine:
            assert mine[0].query == WORKLOAD.offsets[group]
            assert sum(each.size for each in mine) == sizes[group]
    assert {each.group for each in TABLES} == set(range(WORKLOAD.num_groups)) - set(range(1, 6))


def test_a_drawn_value_has_the_cells_of_its_atom() -> None:
    """Rows of random atoms are counted as the sums say, for every query of every marginal."""
    rng = np.random.default_rng(1)
    atoms = np.column_stack([rng.integers(size, size=300) for size in ATOMS.sizes])
    matrix = ATOMS.draw(atoms, rng)
    counts = count(WORKLOAD, matrix)
    for asked in TABLES:
        expected = np.ones((300, 1))
        for feature in asked.features:
            sums = np.arange(feature.size) == ATOMS.cells(feature)[atoms[:, feature.position], None]
            expected = (expected[:, :, None] * sums[:, None, :]).reshape(300, -1)
        found = counts[asked.query : asked.query + asked.size]
        np.testing.assert_array_equal(expected.sum(axis=0), found)


def test_drawn_values_are_of_the_schema() -> None:
    rng = np.random.default_rng(2)
    atoms = np.column_stack([rng.integers(size, size=500) for size in ATOMS.sizes])
    matrix = ATOMS.draw(atoms, rng)
    for place, column in enumerate(SCHEMA):
        values = matrix[:, place]
        assert np.isnan(values).any() == column.nullable
        known = values[~np.isnan(values)]
        assert known.min() >= column.bounds[0]
        assert known.max() <= column.bounds[1]
        assert column.name == "rate" or (np.rint(known) == known).all()


def test_pieces_without_a_value_are_no_atoms() -> None:
    schema = Schema([Integer("n", lower=0, upper=2), Integer("free", lower=0, upper=9)])
    cut = workloads.tree_marginals(schema, 1, 2, sets=[["n"]])
    atoms = Atoms.of(schema, marginal_tables(cut))
    assert len(atoms.cuts[0]) == 3  # four pieces for three numbers
    assert atoms.sizes == [3, 1]
    values = atoms.draw(np.array([[0, 0], [1, 0], [2, 0]] * 30), np.random.default_rng(0))
    assert values[:3, 0].tolist() == [0, 1, 2]
    assert set(values[:, 1]) == set(range(10))


def test_the_known_table_hangs_together() -> None:
    matrix = table(2000)
    assert np.isnan(matrix[:, 0]).any()
    assert np.corrcoef(np.nan_to_num(matrix[:, 0], nan=3), matrix[:, 1])[0, 1] > 0.4
