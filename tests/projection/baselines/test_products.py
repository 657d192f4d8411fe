"""Marginals of product distributions, against the sum over every possible row."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from private_gsd import workloads
from private_gsd.errors import WorkloadError
from private_gsd.projection.atoms import Atoms
from private_gsd.projection.baselines import products
from private_gsd.projection.baselines.mixtures import draw_atoms
from private_gsd.projection.baselines.products import ProductQueries, product_answers
from private_gsd.workloads.layout import marginal_tables
from tests.projection.baselines.known import SCHEMA

pytestmark = pytest.mark.worker("baselines")

WORKLOADS = {
    "one": workloads.categorical_marginals(SCHEMA, 1) + workloads.tree_marginals(SCHEMA, 1, 2),
    "two": workloads.categorical_marginals(SCHEMA, 2) + workloads.tree_marginals(SCHEMA, 2, 2),
    "three": workloads.tree_marginals(SCHEMA, 3, 1, categorical=1)
    + workloads.categorical_marginals(SCHEMA, 1),
    "gaps": workloads.range_marginals(SCHEMA, {"age": [(1, 2), (2, 5)], "member": ...}),
}


def every_row(workload: workloads.Workload, atoms: Atoms, probabilities: np.ndarray) -> np.ndarray:
    """The slow twin: all rows of the domain, each with its probability in each product."""
    shares = np.zeros(workload.size)
    tables = marginal_tables(workload)
    for row in itertools.product(*(range(size) for size in atoms.sizes)):
        probability = np.prod(
            [probabilities[atoms.starts[p] + atom] for p, atom in enumerate(row)], axis=0
        ).mean()
        for table in tables:
            cells = [int(atoms.cells(f)[row[f.position]]) for f in table.features]
            if min(cells) >= 0:
                sizes = [f.size for f in table.features]
                shares[table.query + np.ravel_multi_index(cells, sizes)] += probability
    return shares


@pytest.mark.parametrize("taking", [0, 30, 10**9])
@pytest.mark.parametrize("name", WORKLOADS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mixtures=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_all_cells_are_means_of_products(
    name: str, taking: int, mixtures: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether each feature has a matrix product of its own or all have one."""
    monkeypatch.setattr(products, "TAKING", taking)
    workload = WORKLOADS[name]
    tables = marginal_tables(workload)
    atoms = Atoms.of(SCHEMA, tables)
    rng = np.random.default_rng(seed)
    probabilities = np.concatenate([rng.dirichlet(np.ones(s), mixtures).T for s in atoms.sizes])
    queries = ProductQueries(atoms, tables, mixtures)
    if taking != 30 and name == "two":
        assert (len(queries.layout.blocks) > 1) == (taking == 0)
    found = np.empty(workload.size)
    found[queries.queries] = product_answers(np, queries.layout, probabilities)
    np.testing.assert_allclose(found, every_row(workload, atoms, probabilities), atol=1e-6)


def test_rows_come_in_proportion_to_their_probabilities() -> None:
    workload = WORKLOADS["two"]
    atoms = Atoms.of(SCHEMA, marginal_tables(workload))
    rng = np.random.default_rng(3)
    probabilities = np.concatenate([rng.dirichlet(np.ones(s), 3).T for s in atoms.sizes])
    rows = draw_atoms(atoms, probabilities.astype(np.float32), 30_000, rng)
    for place, size in enumerate(atoms.sizes):
        shares = np.bincount(rows[:, place], minlength=size) / 30_000
        expected = probabilities[atoms.starts[place] : atoms.starts[place + 1]].mean(axis=1)
        np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / np.sqrt(30_000))
    # With the distributions the same number of times, columns go together as they do.
    both = (rows[:, 0] == 0) & (rows[:, 1] == 0)
    expected = (probabilities[atoms.starts[0]] * probabilities[atoms.starts[1]]).mean()
    assert both.mean() == pytest.approx(expected, abs=5 * 0.5 / np.sqrt(30_000))
    assert draw_atoms(atoms, probabilities.astype(np.float32), 2, rng).shape == (2, 5)


def test_too_many_products_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "LARGEST", 1000)
    tables = marginal_tables(WORKLOADS["two"])
    with pytest.raises(WorkloadError, match="too many for 500 product distributions"):
        ProductQueries(Atoms.of(SCHEMA, tables), tables, 500)
