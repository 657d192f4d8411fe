"""Marginals of mixtures of products: every cell is a mean of products of probabilities.

A table is a matrix product. One factor holds the products of the cells of all features except one,
and the other factor holds the cells of that feature. Where a workload has most pairs or triples,
all tables are one product of two matrices. Where it has few, each feature has a matrix product of
its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.projection.atoms import Atoms
from private_gsd.workloads.layout import marginal_tables
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import MarginalTable

# Largest number of products in memory; their gradients take a few times as much.
LARGEST = 2**29
# Cost of gathering a combination of cells; the unit is one multiplication of cells.
TAKING = 30


class ProductPart(NamedTuple):
    """The tables of one number of features, restricted to one block of cells.

    Attributes:
        firsts: The combinations of the cells of all features but one.
        places: The place of each query in the table of combinations by cells of the block.
    """

    firsts: Any
    places: Any


class Layout(NamedTuple):
    """The places of the cells of all queries.

    Attributes:
        atoms: The atoms that cells are summed from, one after the other.
        cells: The cell of each of these atoms; None where each cell is one atom, in order.
        zeros: A zero for each cell.
        blocks: An array for each block of cells, of its length.
        parts: For each number of features, a part for each block.
    """

    atoms: Any
    cells: Any
    zeros: Any
    blocks: tuple[Any, ...]
    parts: tuple[tuple[ProductPart, ...], ...]


class ProductQueries:
    """The cells of some tables, as products over atoms.

    Args:
        atoms: The columns' atoms.
        tables: The tables.
        mixtures: The number of product distributions.
    """

    def __init__(self, atoms: Atoms, tables: Sequence[MarginalTable], mixtures: int) -> None:
        features = list(dict.fromkeys(f for table in tables for f in table.features))
        begins = starts_of([each.size for each in features])
        begin: dict[Feature, int] = dict(zip(features, begins.tolist(), strict=False))
        self.cells = int(begins[-1])
        # Lists of atoms and cells: a matrix of both would be too large for large columns.
        summed, cell_of = [], []
        for feature in features:
            own = atoms.cells(feature)
            summed.append(atoms.starts[feature.position] + np.flatnonzero(own >= 0))
            cell_of.append(begin[feature] + own[own >= 0])
        single_block = _Blocks(tables, begin, [self.cells], lambda table: len(table.features) - 1)
        sizes = [each.size for each in features]
        feature_blocks = _Blocks(tables, begin, sizes, lambda table: int(np.argmax(table.shape)))
        fitting = [
            each for each in (single_block, feature_blocks) if each.why_infeasible(mixtures) is None
        ]
        if not fitting:
            raise WorkloadError(str(single_block.why_infeasible(mixtures)))
        chosen = min(fitting, key=lambda blocks: blocks.effort)
        into = np.concatenate([np.empty(0, dtype=np.int64), *cell_of])
        plain = np.array_equal(into, np.arange(self.cells))
        self.layout = Layout(
            np.concatenate([np.empty(0, dtype=np.int64), *summed]).astype(np.int32),
            None if plain else into.astype(np.int32),
            np.zeros((self.cells, 1), dtype=np.float32),
            tuple(np.zeros(size, dtype=np.int8) for size in chosen.sizes),
            tuple(chosen.parts),
        )
        # The query of each answer, in the order of ``product_answers``.
        self.queries: NDArray[np.int64] = np.concatenate([np.empty(0, np.int64), *chosen.queries])


class _Blocks:
    """Tables in matrix products, one for each number of features and block of cells.

    Attributes:
        sizes: The number of cells of each block.
        parts: For each number of features, a part for each block.
        queries: The queries of each part.
        effort: The cost, in multiplications of cells.

    Args:
        tables: The tables.
        begin: Where each feature's cells begin.
        sizes: The number of cells of each block.
        last: The feature of a table that comes last in products; its cells are in one block.
    """

    def __init__(
        self,
        tables: Sequence[MarginalTable],
        begin: dict[Feature, int],
        sizes: Sequence[int],
        last: Callable[[MarginalTable], int],
    ) -> None:
        self.sizes = sizes
        self.parts: list[tuple[ProductPart, ...]] = []
        self.queries: list[NDArray[np.int64]] = []
        self.effort = 0
        self._numbers: dict[int, tuple[int, int]] = {}
        starts = starts_of(sizes)
        for number in sorted({len(table.features) for table in tables}):
            found: list[list[NDArray[np.int64]]] = [[] for _ in sizes]
            for table in tables:
                if len(table.features) == number:
                    cells = _cells(table, begin, last(table))
                    block = int(np.searchsorted(starts, cells[0, -2], side="right")) - 1
                    found[block].append(cells)
            parts = [
                self._part(np.concatenate([np.empty((0, number + 1), np.int64), *mine]), *where)
                for mine, *where in zip(found, starts[:-1].tolist(), sizes, strict=True)
            ]
            self.parts.append(tuple(parts))
            lengths = [len(part.firsts) for part in parts]
            self._numbers[number] = sum(lengths), int(np.dot(lengths, sizes))

    def why_infeasible(self, mixtures: int) -> str | None:
        """Why there would be too many products; None if there would not."""
        for number, (firsts, answers) in self._numbers.items():
            if firsts * mixtures + answers > LARGEST:
                return (
                    f"the marginals have {firsts:,} combinations of {number - 1} cells, too many "
                    f"for {mixtures:,} product distributions"
                )
        return None

    def _part(self, cells: NDArray[np.int64], start: int, size: int) -> ProductPart:
        firsts, inverse = np.unique(cells[:, :-2], axis=0, return_inverse=True)
        self.queries.append(cells[:, -1])
        self.effort += len(firsts) * (size + TAKING)
        places = inverse.ravel() * size + cells[:, -2] - start
        return ProductPart(firsts.astype(np.int32), places.astype(np.int32))


def too_many_products(workload: Workload, mixtures: int) -> str | None:
    """Why a workload has too many marginals for ``mixtures`` products; None if it has not."""
    tables = marginal_tables(workload)
    try:
        ProductQueries(Atoms.of(workload.schema, tables), tables, mixtures)
    except WorkloadError as error:
        return str(error)
    return None


def product_answers(jnp: Any, layout: Layout, probabilities: Any) -> Any:
    """The share of each query, in the order of ``ProductQueries.queries``.

    Args:
        jnp: JAX's NumPy, or NumPy.
        layout: The places of the queries.
        probabilities: The probability of each atom (rows) in each product distribution (columns).
    """
    cells = _summed(jnp, layout, probabilities)
    blocks = jnp.split(cells, np.cumsum([len(block) for block in layout.blocks])[:-1])
    found = []
    for parts in layout.parts:
        firsts = jnp.concatenate([part.firsts for part in parts])
        product = jnp.ones((firsts.shape[0], probabilities.shape[1]), dtype=probabilities.dtype)
        for column in range(firsts.shape[1]):
            product = product * cells[firsts[:, column]]
        ends = np.cumsum([len(part.firsts) for part in parts])
        for part, mine, block in zip(parts, jnp.split(product, ends[:-1]), blocks, strict=True):
            if len(part.places):
                found.append(((mine @ block.T) / probabilities.shape[1]).ravel()[part.places])
    return jnp.concatenate(found)


def _summed(jnp: Any, layout: Layout, probabilities: Any) -> Any:
    """The probabilities of all features' cells, from those of the atoms."""
    each = probabilities[layout.atoms]
    if layout.cells is None:
        return each
    zeros = layout.zeros + jnp.zeros((1, probabilities.shape[1]), dtype=probabilities.dtype)
    if hasattr(zeros, "at"):  # JAX
        return zeros.at[layout.cells].add(each)
    np.add.at(zeros, layout.cells, each)
    return zeros


def _cells(table: MarginalTable, begin: dict[Feature, int], last: int) -> NDArray[np.int64]:
    """For each query of a table its cells among those of all features, and its number."""
    cells = np.indices(table.shape).reshape(len(table.shape), -1).T
    cells += np.array([begin[feature] for feature in table.features], dtype=np.int64)
    places = [place for place in range(len(table.shape)) if place != last]
    queries = np.arange(table.query, table.query + table.size)
    return np.column_stack([cells[:, places], cells[:, last], queries])
