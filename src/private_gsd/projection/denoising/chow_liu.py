"""Chow–Liu forests: trees over the columns that maximise their mutual information.

Of all pairs of columns those with the largest mutual information are joined, as long as there is no
cycle (Chow and Liu, 1968), and edges with little mutual information are left out. Rows drawn along
the forest have the joint distribution of each pair of neighbouring columns.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from private_gsd.kernels.gibbs import ChowLiuForest
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Atoms = NDArray[np.int32]
    Shares = NDArray[np.float64]

# Least mutual information of neighbours, in nats.
LEAST_INFORMATION = 0.02
# Pseudo-count of a cell in log-lifts.
PSEUDO_COUNT = 0.5
# Largest number of cells of an edge's table; columns with more are not joined.
MOST_CELLS = 2**20
# Steps of the iterative proportional fitting of neighbours.
FITTING_STEPS = 10
# Least sum of shares that is divided by.
TINY = 1e-300


class Edge(NamedTuple):
    """Two columns, and their mutual information in nats."""

    information: float
    left: int
    right: int


class SpanningTrees:
    """A forest that grows edge by edge."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def _root(self, column: int) -> int:
        while column in self._parents:
            column = self._parents[column]
        return column

    def joins(self, pair: tuple[int, ...]) -> bool:
        """Whether an edge would join two trees, and so not close a cycle."""
        return self._root(pair[0]) != self._root(pair[1])

    def add(self, pair: tuple[int, ...]) -> bool:
        """Add an edge, unless it would close a cycle; returns whether it was added."""
        if not self.joins(pair):
            return False
        self._parents[self._root(pair[0])] = self._root(pair[1])
        return True


def chow_liu_forest(
    atoms: Atoms, sizes: NDArray[np.int64], pairs: Iterable[tuple[int, int]]
) -> ChowLiuForest:
    """The Chow–Liu forest of a table.

    Args:
        atoms: The atom of each row and column.
        sizes: The number of atoms of each column.
        pairs: The pairs of columns that may be joined.
    """
    edges = []
    for left, right in sorted({(min(pair), max(pair)) for pair in pairs}):
        if sizes[left] * sizes[right] <= MOST_CELLS:
            information = _mutual_information(_counts(atoms, sizes, left, right))
            if information >= LEAST_INFORMATION:
                edges.append(Edge(information, left, right))
    chosen = spanning(edges)
    log_lifts = [_log_lifts(_counts(atoms, sizes, edge.left, edge.right)) for edge in chosen]
    return laid_out(len(sizes), list(zip(chosen, log_lifts, strict=True)))


def pair_means(
    chow_liu: ChowLiuForest, shares: Sequence[Shares], pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], Shares]:
    """The tables of pairs of columns, of rows that follow a Chow–Liu forest.

    Neighbours have the log-lifts of the forest, and the distributions of single columns that are
    given. Along a path, a column depends on the one before alone.

    Args:
        chow_liu: The forest.
        shares: For each column, the share of each of its atoms.
        pairs: The pairs of columns.
    """
    conditional = _conditional(chow_liu, shares)
    before: dict[int, dict[int, int]] = {}
    found = {}
    for first, second in pairs:
        if first not in before:
            before[first] = _reached(first, conditional)
        if second not in before[first]:
            found[first, second] = np.outer(shares[first], shares[second])
            continue
        path = [second]
        while path[-1] != first:
            path.append(before[first][path[-1]])
        steps = [conditional[one][two] for two, one in itertools.pairwise(path)][::-1]
        # In the order with the smallest products: columns between may have thousands of atoms.
        given = steps[0] if len(steps) == 1 else np.linalg.multi_dot(steps)
        found[first, second] = shares[first][:, None] * given
    return found


def empty_chow_liu_forest(columns: int) -> ChowLiuForest:
    """A forest without edges."""
    return laid_out(columns, [])


def spanning(edges: Sequence[Edge]) -> list[Edge]:
    """The edges of a spanning forest with the largest mutual information."""
    trees = SpanningTrees()
    return [edge for edge in sorted(edges, reverse=True) if trees.add((edge.left, edge.right))]


def laid_out(columns: int, edges: Sequence[tuple[Edge, NDArray[np.float64]]]) -> ChowLiuForest:
    """The arrays of a forest: each column's neighbours, and log-lifts with its atoms innermost."""
    by_column: list[list[tuple[int, NDArray[np.float64]]]] = [[] for _ in range(columns)]
    for edge, log_lifts in edges:
        by_column[edge.left].append((edge.right, log_lifts.T))
        by_column[edge.right].append((edge.left, log_lifts))
    neighbours = [each for mine in by_column for each in mine]
    return ChowLiuForest(
        starts=starts_of([len(mine) for mine in by_column]),
        neighbours=np.array([neighbour for neighbour, _ in neighbours], dtype=np.int64),
        places=starts_of([log_lifts.size for _, log_lifts in neighbours])[:-1],
        log_lifts=np.concatenate(
            [np.zeros(0), *(log_lifts.ravel() for _, log_lifts in neighbours)]
        ),
    )


def _conditional(chow_liu: ChowLiuForest, shares: Sequence[Shares]) -> dict[int, dict[int, Shares]]:
    """For each column and neighbour, the distribution of the neighbour for each of its atoms."""
    found: dict[int, dict[int, Shares]] = {column: {} for column in range(len(shares))}
    for column in found:
        for edge in range(chow_liu.starts[column], chow_liu.starts[column + 1]):
            other, place = int(chow_liu.neighbours[edge]), chow_liu.places[edge]
            if other < column:
                continue
            shape = len(shares[other]), len(shares[column])
            log_lifts = chow_liu.log_lifts[place : place + math.prod(shape)].reshape(shape)
            joint = _fitted(np.exp(log_lifts), shares[other], shares[column])
            found[other][column] = joint / np.maximum(joint.sum(axis=1), TINY)[:, None]
            found[column][other] = joint.T / np.maximum(joint.sum(axis=0), TINY)[:, None]
    return found


def _fitted(table: Shares, rows: Shares, columns: Shares) -> Shares:
    """A table with the given sums, by iterative proportional fitting."""
    table = table * np.outer(rows, columns)
    for _ in range(FITTING_STEPS):
        table *= (rows / np.maximum(table.sum(axis=1), TINY))[:, None]
        table *= columns / np.maximum(table.sum(axis=0), TINY)
    return table


def _reached(first: int, conditional: Mapping[int, Mapping[int, Shares]]) -> dict[int, int]:
    """The columns that paths from a column lead to, each with the column before it."""
    found: dict[int, int] = {}
    ends = [first]
    while ends:
        column = ends.pop()
        for other in conditional[column]:
            if other not in found and other != first:
                found[other] = column
                ends.append(other)
    return found


def _counts(atoms: Atoms, sizes: NDArray[np.int64], left: int, right: int) -> NDArray[np.float64]:
    """The number of rows with each pair of atoms of two columns."""
    cells = atoms[:, left] * sizes[right] + atoms[:, right]
    found = np.bincount(cells, minlength=sizes[left] * sizes[right]).astype(np.float64)
    return found.reshape(sizes[left], sizes[right])


def _independent(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The expected counts if the columns were independent."""
    return np.asarray(np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum())


def _mutual_information(counts: NDArray[np.float64]) -> float:
    """The mutual information of two columns, with Miller and Madow's correction of its bias."""
    some = counts > 0
    seen = (counts[some] * np.log(counts[some] / _independent(counts)[some])).sum()
    freedom = some.sum() - some.any(axis=1).sum() - some.any(axis=0).sum() + 1
    return float((seen - freedom / 2) / counts.sum())


def _log_lifts(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithms of the counts divided by the expected counts of independent columns."""
    return np.asarray(np.log((counts + PSEUDO_COUNT) / (_independent(counts) + PSEUDO_COUNT)))
