"""Marginals of mixtures of product distributions: every cell is a mean of products of chances.

All cells of tables with the same number of features are found in one matrix product: the products
of all but the last feature's cells, each once, times the last ones. The 7,919 queries of all pairs
of the benchmarks' 17 columns are one product of two small matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.baselines.features import Atoms
from private_gsd.errors import WorkloadError
from private_gsd.workloads.tables import tables_asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.tables import Asked

# Products that are kept at a time, in numbers: with their gradients a few times as much.
LARGEST = 2**29


class Part(NamedTuple):
    """The tables of one number of features.

    Attributes:
        firsts: The different combinations of all features' cells but the last.
        places: For each query, where it is in the table of combinations by cells.
    """

    firsts: Any
    places: Any


class Layout(NamedTuple):
    """Where the cells of all queries are.

    Attributes:
        atoms: The atoms that cells are summed from, one after the other.
        cells: The cell that each of them goes to; None where each cell is one atom, in order.
        zeros: As many as there are cells: what sums begin with, and an array for its length.
        parts: The tables, by their numbers of features.
    """

    atoms: Any
    cells: Any
    zeros: Any
    parts: tuple[Part, ...]


class ProductQueries:
    """The cells of some tables, as products over atoms.

    Args:
        atoms: The columns' atoms.
        tables: The tables.
        mixtures: How many product distributions there will be.
    """

    def __init__(self, atoms: Atoms, tables: Sequence[Asked], mixtures: int) -> None:
        features = list(dict.fromkeys(f for table in tables for f in table.features))
        begins = np.concatenate([[0], np.cumsum([each.size for each in features])]).astype(int)
        begin: dict[Feature, int] = dict(zip(features, begins.tolist(), strict=False))
        self.cells = int(begins[-1])
        # As numbers of atoms and cells, never as a matrix of both: a column of 30,000 values would
        # have one of 3.6 GB.
        summed, cell_of = [], []
        for feature in features:
            own = atoms.cells(feature)
            summed.append(atoms.starts[feature.position] + np.flatnonzero(own >= 0))
            cell_of.append(begin[feature] + own[own >= 0])
        parts = []
        queries = []
        for number in sorted({len(table.features) for table in tables}):
            mine = [table for table in tables if len(table.features) == number]
            cells = np.concatenate([_cells(table, begin) for table in mine])
            firsts, inverse = np.unique(cells[:, :-1], axis=0, return_inverse=True)
            if len(firsts) * (mixtures + self.cells) > LARGEST:
                raise WorkloadError(
                    f"the marginals have {len(firsts):,} combinations of {number - 1} cells, too "
                    f"many for {mixtures:,} product distributions"
                )
            places = inverse.ravel() * self.cells + cells[:, -1]
            parts.append(Part(firsts.astype(np.int32), places.astype(np.int32)))
            queries += [np.arange(table.query, table.query + table.size) for table in mine]
        into = np.concatenate([np.empty(0, dtype=np.int64), *cell_of])
        plain = np.array_equal(into, np.arange(self.cells))
        self.layout = Layout(
            np.concatenate([np.empty(0, dtype=np.int64), *summed]).astype(np.int32),
            None if plain else into.astype(np.int32),
            np.zeros((self.cells, 1), dtype=np.float32),
            tuple(parts),
        )
        # Which query each answer is, in the order that they are found.
        self.queries: NDArray[np.int64] = np.concatenate([np.empty(0, dtype=np.int64), *queries])


def too_many_products(workload: Workload, mixtures: int) -> str | None:
    """Why a workload has too many marginals for so many product distributions, if it has."""
    tables = tables_asked(workload)
    try:
        ProductQueries(Atoms.of(workload.schema, tables), tables, mixtures)
    except WorkloadError as error:
        return str(error)
    return None


def product_answers(jnp: Any, layout: Layout, chances: Any) -> Any:
    """The share of each query, in the order of ``ProductQueries.queries``.

    Args:
        jnp: JAX's NumPy, or NumPy.
        layout: Where the queries are.
        chances: Of each atom (rows) in each product distribution (columns).
    """
    cells = _summed(jnp, layout, chances)
    found = []
    for part in layout.parts:
        product = jnp.ones((part.firsts.shape[0], chances.shape[1]), dtype=chances.dtype)
        for column in range(part.firsts.shape[1]):
            product = product * cells[part.firsts[:, column]]
        found.append(((product @ cells.T) / chances.shape[1]).ravel()[part.places])
    return jnp.concatenate(found)


def _summed(jnp: Any, layout: Layout, chances: Any) -> Any:
    """The chances of all features' cells, from those of the atoms."""
    each = chances[layout.atoms]
    if layout.cells is None:
        return each
    zeros = layout.zeros + jnp.zeros((1, chances.shape[1]), dtype=chances.dtype)
    if hasattr(zeros, "at"):  # JAX
        return zeros.at[layout.cells].add(each)
    np.add.at(zeros, layout.cells, each)
    return zeros


def _cells(table: Asked, begin: dict[Feature, int]) -> NDArray[np.int64]:
    """For each query of a table, its cells among those of all features."""
    shape = [feature.size for feature in table.features]
    cells: NDArray[np.int64] = np.indices(shape).reshape(len(shape), -1).T
    return cells + np.array([begin[feature] for feature in table.features], dtype=np.int64)
