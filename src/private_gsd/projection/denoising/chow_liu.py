"""Forests: the columns that hang together most, so that rows can be drawn along them.

Of all pairs of columns those that share most (their mutual information) are joined, as long as
there is no circle (Chow and Liu's tree, without its weak branches). A row drawn along the forest
has in common with the tables it was read off what neighbours have, and what follows from it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.kernels.gibbs import ChowLiuForest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Atoms = NDArray[np.int32]

# Neighbours share at least so many nats.
LEAST_SHARED = 0.02
# What a cell has beside the rows that are in it.
PSEUDO = 0.5
# Columns with more cells than this together stay apart.
MOST_CELLS = 2**20


class Edge(NamedTuple):
    """Two columns, and how many nats they share."""

    shared: float
    left: int
    right: int


class Trees:
    """Which columns pairs join."""

    def __init__(self) -> None:
        self._tree: dict[int, int] = {}

    def _root(self, column: int) -> int:
        while column in self._tree:
            column = self._tree[column]
        return column

    def apart(self, pair: tuple[int, ...]) -> bool:
        """Whether a pair's columns are in different trees: it would not close a cycle."""
        return self._root(pair[0]) != self._root(pair[1])

    def join(self, pair: tuple[int, ...]) -> bool:
        """Join a pair's trees; whether they were two."""
        if not self.apart(pair):
            return False
        self._tree[self._root(pair[0])] = self._root(pair[1])
        return True


def no_forest(columns: int) -> ChowLiuForest:
    """Every column by itself."""
    return laid_out(columns, [])


def forest_of(atoms: Atoms, sizes: NDArray[np.int64], known: Sequence[int]) -> ChowLiuForest:
    """The columns that hang together most in a table.

    Args:
        atoms: For each row and column.
        sizes: How many atoms each column has.
        known: The columns that may be joined.
    """
    edges = []
    for left, right in itertools.combinations(known, 2):
        if sizes[left] * sizes[right] <= MOST_CELLS:
            shared = _shared(_together(atoms, sizes, left, right))
            if shared >= LEAST_SHARED:
                edges.append(Edge(shared, left, right))
    kept = spanning(edges)
    log_lifts = [
        (edge, _log_lifts(_together(atoms, sizes, edge.left, edge.right))) for edge in kept
    ]
    return laid_out(len(sizes), log_lifts)


def spanning(edges: Sequence[Edge]) -> list[Edge]:
    """Those that share most, without a circle."""
    trees = Trees()
    return [edge for edge in sorted(edges, reverse=True) if trees.join((edge.left, edge.right))]


def _together(atoms: Atoms, sizes: NDArray[np.int64], left: int, right: int) -> NDArray[np.float64]:
    """How many rows have each two atoms."""
    cells = atoms[:, left] * sizes[right] + atoms[:, right]
    found = np.bincount(cells, minlength=sizes[left] * sizes[right]).astype(np.float64)
    return found.reshape(sizes[left], sizes[right])


def _by_chance(found: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many there would be if the columns did not hang together."""
    return np.asarray(np.outer(found.sum(axis=1), found.sum(axis=0)) / found.sum())


def _shared(found: NDArray[np.float64]) -> float:
    """Mutual information, less what rows that do not hang together seem to have (Miller, Madow)."""
    some = found > 0
    seen = (found[some] * np.log(found[some] / _by_chance(found)[some])).sum()
    freedom = some.sum() - some.any(axis=1).sum() - some.any(axis=0).sum() + 1
    return float((seen - freedom / 2) / found.sum())


def _log_lifts(found: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.log((found + PSEUDO) / (_by_chance(found) + PSEUDO)))


def laid_out(columns: int, edges: Sequence[tuple[Edge, NDArray[np.float64]]]) -> ChowLiuForest:
    """As the kernel reads it: each column's neighbours, and lifts with its own atoms inmost."""
    beside: list[list[tuple[int, NDArray[np.float64]]]] = [[] for _ in range(columns)]
    for edge, log_lifts in edges:
        beside[edge.left].append((edge.right, log_lifts.T))
        beside[edge.right].append((edge.left, log_lifts))
    together = [each for mine in beside for each in mine]
    sizes = [log_lifts.size for _, log_lifts in together]
    return ChowLiuForest(
        starts=np.cumsum([0, *(len(mine) for mine in beside)]),
        neighbours=np.array([neighbour for neighbour, _ in together], dtype=np.int64),
        places=np.cumsum([0, *sizes])[:-1],
        log_lifts=np.concatenate([np.zeros(0), *(log_lifts.ravel() for _, log_lifts in together)]),
    )
