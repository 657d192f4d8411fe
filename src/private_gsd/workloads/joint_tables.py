"""Joint tables: many marginals are counted in a few tables.

Rows are counted once for each set of columns, in the finest table from which all tables of a group
can be computed by summation. Several small sets of columns are counted in one larger table.
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

# The largest size of a table that counts several sets of columns.
JOINT_CELLS = 4096
COVER_TRIES = 4_000_000
# Of more sets than this, each gets a table of its own: looking for larger ones takes longer.
COVER_SETS = 8192


@dataclass(frozen=True)
class View:
    """A column, cut at the breaks of one group's features into atoms; null is the last atom.

    Attributes:
        position: The position of the column.
        breaks: The cut points of a numeric column.
        cells: For each category the atom, where the group has one feature of a discrete column,
            and that joins categories; else each category is an atom.
    """

    position: int
    breaks: tuple[float, ...]
    cells: tuple[int, ...] = ()


def views_of(group: Marginal) -> tuple[View, ...]:
    """The view that a group has of each of its columns."""
    return tuple(
        _view_of(position, set(features))
        for position, features in zip(group.positions, zip(*group.tables, strict=True), strict=True)
    )


def _view_of(position: int, features: set[Feature]) -> View:
    if len(features) == 1:
        [only] = features
        return View(position, only.breaks, only.segments if only.joins_categories else ())
    return View(position, tuple(sorted({cut for f in features for cut in f.breaks})))


def atoms_of(column: Column, view: View) -> int:
    """The number of atoms of a column, null included."""
    if isinstance(column, Discrete):
        cut = max(view.cells) + 1 if view.cells else len(column.values)
    else:
        cut = len(view.breaks) + 1
    return cut + column.nullable


class JointTables:
    """The joint tables of some marginals: counting rows, and summing the tables to the marginals.

    A column that several groups cut differently is treated as several columns, so that the fine
    cuts of one group do not enlarge the tables of the others.
    """

    def __init__(self, schema: Schema, groups: Sequence[Marginal]) -> None:
        cuts = [group.views for group in groups]
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
            if view.cells:
                codes = np.empty(len(matrix), dtype=np.uint32)
                bin_codes(values, len(view.cells), codes)
                atoms[number] = np.array([*view.cells, null], dtype=self._dtype)[codes]
            elif isinstance(self._columns[number], Discrete):
                bin_codes(values, null, atoms[number])
            else:
                bin_numbers(values, self._breaks[number], null, atoms[number])
        count_tables(
            atoms, self._flat_columns, self._strides, self._starts, self._offsets[:-1], state
        )

    def counts_of(self, number: int, state: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of one group, table after table."""
        joint = self._joint_of[number]
        columns = self._joints[joint]
        table = state[self._offsets[joint] : self._offsets[joint + 1]].reshape(self._shapes[joint])
        wanted = self._sets[number]
        others = tuple(axis for axis, column in enumerate(columns) if column not in wanted)
        kept = [column for column in columns if column in wanted]
        finest = table.sum(axis=others).transpose([kept.index(column) for column in wanted])
        # Tables that begin with the same features share the sums over these features.
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
        """Sum the atoms of one axis to the cells of a feature."""
        if self._views[column].cells:
            return table
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
    """Larger column sets that contain all given sets, each with at most ``limit`` cells.

    The choice is greedy: start with a set that is not covered yet, and as long as the table stays
    small, add the column that covers the most further sets relative to its size. After
    ``COVER_TRIES`` tries (a few seconds), each remaining set gets a table of its own, which is
    correct but slower; so does each of more than ``COVER_SETS`` sets.

    Args:
        sets: The column sets.
        atoms: The number of atoms of each column.
        limit: The largest number of cells; a given set with more cells is not enlarged.

    Returns:
        The larger sets, and for each given set the number of the larger set that contains it.
    """
    left = {frozenset(each) for each in sets}
    sizes = sorted({len(each) for each in left})
    columns = sorted({column for each in left for column in each})
    tries = COVER_TRIES if len(left) <= COVER_SETS else 0
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
