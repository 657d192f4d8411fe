"""Joint tables: how the rows of many marginals are counted in few tables.

Rows are counted once for each set of columns, in the finest table that all the tables of a group
can be summed from; and several small sets are counted as one larger table, which is again summed
afterwards.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.binning import bin_codes, bin_numbers
from private_gsd.kernels.marginals import count_tables
from private_gsd.schema import Discrete
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.schema import Column, Schema
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.marginals import Marginal

# Sets of columns are counted together up to tables of this size.
JOINT_CELLS = 4096
COVER_TRIES = 4_000_000


@dataclass(frozen=True)
class View:
    """A column cut at the breaks of one group's features: each piece is an atom, null the last."""

    position: int
    breaks: tuple[float, ...]


def views_of(group: Marginal) -> tuple[View, ...]:
    """How a group cuts each of its columns."""
    return tuple(
        View(position, tuple(sorted({cut for f in set(features) for cut in f.breaks})))
        for position, features in zip(group.positions, zip(*group.tables, strict=True), strict=True)
    )


def atoms_of(column: Column, view: View) -> int:
    """How many atoms a column is cut into, its null among them."""
    cut = len(column.values) if isinstance(column, Discrete) else len(view.breaks) + 1
    return cut + column.nullable


class JointTables:
    """How marginals are counted: atoms of columns, joint tables, and what to sum afterwards.

    A column that several groups cut differently counts as several: a fine cut that one group needs
    is not forced on the others.
    """

    def __init__(self, schema: Schema, groups: Sequence[Marginal]) -> None:
        cuts = [views_of(group) for group in groups]
        self._views = list(dict.fromkeys(view for each in cuts for view in each))
        place = {view: number for number, view in enumerate(self._views)}
        self._columns = [schema.columns[view.position] for view in self._views]
        self._breaks = [np.array(view.breaks, dtype=np.float64) for view in self._views]
        self._atoms = [atoms_of(*pair) for pair in zip(self._columns, self._views, strict=True)]
        self._dtype = np.uint16 if max(self._atoms) <= 2**16 else np.uint32
        self._groups = groups
        self._sets = [tuple(place[view] for view in each) for each in cuts]
        self._joints, self._joint_of = cover(self._sets, self._atoms, JOINT_CELLS)
        shapes = [tuple(self._atoms[column] for column in joint) for joint in self._joints]
        sizes = [math.prod(shape) for shape in shapes]
        self._shapes = shapes
        self.size = sum(sizes)
        self._flat_columns = np.array([c for joint in self._joints for c in joint], dtype=np.int64)
        self._strides = np.array(
            [math.prod(shape[at + 1 :]) for shape in shapes for at in range(len(shape))],
            dtype=np.int64,
        )
        lengths = [len(joint) for joint in self._joints]
        self._starts = starts_of(lengths)
        self._offsets = starts_of(sizes)

    def count(self, matrix: NDArray[np.float64], state: NDArray[np.int64]) -> None:
        """Add rows to the joint tables."""
        atoms = np.empty((len(self._views), len(matrix)), dtype=self._dtype)
        for number, view in enumerate(self._views):
            values = np.ascontiguousarray(matrix[:, view.position])
            null = self._atoms[number] - 1
            if isinstance(self._columns[number], Discrete):
                bin_codes(values, null, atoms[number])
            else:
                bin_numbers(values, self._breaks[number], null, atoms[number])
        count_tables(
            atoms, self._flat_columns, self._strides, self._starts, self._offsets[:-1], state
        )

    def counts_of(self, number: int, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """One group's cells, table after table."""
        joint = self._joint_of[number]
        columns = self._joints[joint]
        table = state[self._offsets[joint] : self._offsets[joint + 1]].reshape(self._shapes[joint])
        wanted = self._sets[number]
        others = tuple(axis for axis, column in enumerate(columns) if column not in wanted)
        kept = [column for column in columns if column in wanted]
        finest = table.sum(axis=others).transpose([kept.index(column) for column in wanted])
        # Tables that begin with the same features share the sums over them.
        counts = []
        path: list[tuple[Feature, NDArray[np.int64]]] = []
        for features in self._groups[number].tables:
            shared = 0
            while shared < len(path) and path[shared][0] == features[shared]:
                shared += 1
            del path[shared:]
            for axis in range(shared, len(features)):
                before = path[-1][1] if path else finest
                after = self._summed(before, axis, wanted[axis], features[axis])
                path.append((features[axis], after))
            counts.append(path[-1][1].ravel())
        return np.concatenate(counts)

    def _summed(
        self, table: NDArray[np.int64], axis: int, column: int, feature: Feature
    ) -> NDArray[np.int64]:
        """Atoms of one axis summed to the cells of a feature."""
        cells = feature.cells_of_atoms(self._breaks[column])
        if len(cells) == feature.size and (cells == np.arange(feature.size)).all():
            return table
        parts = np.moveaxis(table, axis, 0)
        summed = np.zeros((feature.size, *parts.shape[1:]), dtype=np.int64)
        np.add.at(summed, cells[cells >= 0], parts[cells >= 0])
        return np.moveaxis(summed, 0, axis)


def cover(
    sets: Sequence[tuple[int, ...]], atoms: Sequence[int], limit: int
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Larger column sets that contain all given ones, none with more than ``limit`` cells.

    A greedy choice: begin with a set that is not covered yet, and as long as the table stays small
    add the column that covers most more sets for its size. After so many tries (a few seconds)
    the sets that are left stay alone: they are counted as well, only slower.

    Returns:
        The larger sets (a given set that is too large stays alone), and for each given set which
        of them contains it.
    """
    left = {frozenset(each) for each in sets}
    sizes = sorted({len(each) for each in left})
    columns = sorted({column for each in left for column in each})
    tries = COVER_TRIES
    joints: list[tuple[int, ...]] = []
    found: dict[frozenset[int], int] = {}
    for begin in sets:
        if frozenset(begin) not in left:
            continue
        joint = set(begin)
        cells = math.prod(atoms[column] for column in joint)
        covered = {frozenset(begin)}
        left -= covered
        while left and tries > 0:
            best: tuple[float, int, set[frozenset[int]]] | None = None
            for column in columns:
                if column in joint or cells * atoms[column] > limit:
                    continue
                more = set()
                for size in sizes:
                    tries -= math.comb(len(joint), size - 1)
                    for rest in itertools.combinations(joint, size - 1):
                        each = frozenset((*rest, column))
                        if each in left:
                            more.add(each)
                score = len(more) / math.log(atoms[column] + 1)
                if more and (best is None or score > best[0]):
                    best = score, column, more
            if best is None:
                break
            _, column, more = best
            joint.add(column)
            cells *= atoms[column]
            covered |= more
            left -= more
        found |= dict.fromkeys(covered, len(joints))
        joints.append(tuple(sorted(joint)))
    return joints, [found[frozenset(each)] for each in sets]
