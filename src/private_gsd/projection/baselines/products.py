"""Marginals of mixtures of product distributions: every cell is a mean of products of chances.

A table is a matrix product: the products of all but one feature's cells, times that feature's.
Where most pairs or triples are asked, all of them are one product of two matrices, each combination
of cells once. Where few are, most of that would be for nothing, and each feature has a product of
its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.errors import WorkloadError
from private_gsd.projection.atoms import Atoms
from private_gsd.workloads.layout import tables_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from private_gsd.workloads import Workload
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import Asked

# Products that are kept at a time, in numbers: with their gradients a few times as much.
LARGEST = 2**29
# Taking a combination's cells together, in cells that it is multiplied with.
TAKING = 30


class Part(NamedTuple):
    """The tables of one number of features, times one block of cells.

    Attributes:
        firsts: Combinations of all features' cells but one.
        places: For each query, where it is in the table of combinations by the block's cells.
    """

    firsts: Any
    places: Any


class Layout(NamedTuple):
    """Where the cells of all queries are.

    Attributes:
        atoms: The atoms that cells are summed from, one after the other.
        cells: The cell that each of them goes to; None where each cell is one atom, in order.
        zeros: As many as there are cells: what sums begin with, and an array for its length.
        blocks: The cells in blocks; arrays for their lengths.
        parts: By the number of features, a part for each block.
    """

    atoms: Any
    cells: Any
    zeros: Any
    blocks: tuple[Any, ...]
    parts: tuple[tuple[Part, ...], ...]


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
        together = _Blocks(tables, begin, [self.cells], lambda table: len(table.features) - 1)
        sizes = [each.size for each in features]
        apart = _Blocks(tables, begin, sizes, lambda table: int(np.argmax(table.shape)))
        fitting = [each for each in (together, apart) if each.why_infeasible(mixtures) is None]
        if not fitting:
            raise WorkloadError(str(together.why_infeasible(mixtures)))
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
        # Which query each answer is, in the order that they are found.
        self.queries: NDArray[np.int64] = np.concatenate([np.empty(0, np.int64), *chosen.queries])


class _Blocks:
    """Tables in matrix products, one for each number of features and block of cells.

    Attributes:
        sizes: The cells of each block.
        parts: By the number of features, a part for each block.
        queries: Which they are, one after the other.
        effort: What it costs, in multiplications of cells.

    Args:
        tables: The tables.
        begin: Where each feature's cells begin.
        sizes: The cells of each block.
        last: Which feature of a table is multiplied with; all its cells are in one block.
    """

    def __init__(
        self,
        tables: Sequence[Asked],
        begin: dict[Feature, int],
        sizes: Sequence[int],
        last: Callable[[Asked], int],
    ) -> None:
        self.sizes = sizes
        self.parts: list[tuple[Part, ...]] = []
        self.queries: list[NDArray[np.int64]] = []
        self.effort = 0
        self._held: dict[int, tuple[int, int]] = {}
        starts = np.concatenate([[0], np.cumsum(sizes)])
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
            self._held[number] = sum(lengths), int(np.dot(lengths, sizes))

    def why_infeasible(self, mixtures: int) -> str | None:
        """Why there would be too many products."""
        for number, (firsts, answers) in self._held.items():
            if firsts * mixtures + answers > LARGEST:
                return (
                    f"the marginals have {firsts:,} combinations of {number - 1} cells, too many "
                    f"for {mixtures:,} product distributions"
                )
        return None

    def _part(self, cells: NDArray[np.int64], start: int, size: int) -> Part:
        firsts, inverse = np.unique(cells[:, :-2], axis=0, return_inverse=True)
        self.queries.append(cells[:, -1])
        self.effort += len(firsts) * (size + TAKING)
        places = inverse.ravel() * size + cells[:, -2] - start
        return Part(firsts.astype(np.int32), places.astype(np.int32))


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
    blocks = jnp.split(cells, np.cumsum([len(block) for block in layout.blocks])[:-1])
    found = []
    for parts in layout.parts:
        firsts = jnp.concatenate([part.firsts for part in parts])
        product = jnp.ones((firsts.shape[0], chances.shape[1]), dtype=chances.dtype)
        for column in range(firsts.shape[1]):
            product = product * cells[firsts[:, column]]
        ends = np.cumsum([len(part.firsts) for part in parts])
        for part, mine, block in zip(parts, jnp.split(product, ends[:-1]), blocks, strict=True):
            if len(part.places):
                found.append(((mine @ block.T) / chances.shape[1]).ravel()[part.places])
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


def _cells(table: Asked, begin: dict[Feature, int], last: int) -> NDArray[np.int64]:
    """For each query of a table its cells among those of all features, one last; and the query."""
    cells = np.indices(table.shape).reshape(len(table.shape), -1).T
    cells += np.array([begin[feature] for feature in table.features], dtype=np.int64)
    places = [place for place in range(len(table.shape)) if place != last]
    queries = np.arange(table.query, table.query + table.size)
    return np.column_stack([cells[:, places], cells[:, last], queries])
