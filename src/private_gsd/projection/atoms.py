"""Atoms of mixed columns: the finest cells; a cell of any measured feature is a union of atoms.

The atoms of a discrete column are its values. A numeric column is cut at the cut points of all
measured features, and its atoms are the segments that hold a value; a column without features is a
single atom. Null is an atom of its own, the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.projection.domain import columns_of
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.kernels.cells import Columns
    from private_gsd.schema import Schema
    from private_gsd.workloads.features import Feature
    from private_gsd.workloads.layout import MarginalTable


@dataclass(frozen=True)
class Atoms:
    """The atoms of the columns of a schema.

    Attributes:
        schema: The public schema.
        cuts: The cut points of each column.
    """

    schema: Schema
    cuts: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, schema: Schema, tables: Sequence[MarginalTable]) -> Atoms:
        """The atoms for the features of some tables."""
        cuts: list[set[float]] = [set() for _ in schema]
        for feature in {feature for table in tables for feature in table.features}:
            cuts[feature.position].update(feature.breaks)
        return cls(schema, tuple(np.array(sorted(each), dtype=np.float64) for each in cuts))

    @cached_property
    def columns(self) -> Columns:
        """The values of every segment; segments that hold no value are included."""
        return columns_of(self.schema, self.cuts)

    @cached_property
    def segments(self) -> tuple[NDArray[np.int64], ...]:
        """For each column, the numbers of the segments that hold a value."""
        columns = self.columns
        parts = [
            slice(columns.starts[place], columns.starts[place + 1])
            for place in range(len(self.schema))
        ]
        return tuple(np.flatnonzero(columns.firsts[part] <= columns.lasts[part]) for part in parts)

    @property
    def sizes(self) -> list[int]:
        """The number of atoms of each column."""
        return [len(each) for each in self.segments]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each column's atoms begin among all atoms; columns + 1 entries."""
        return starts_of(self.sizes)

    def cells(self, feature: Feature) -> NDArray[np.int64]:
        """The cell of each of a column's atoms; -1 for none."""
        return feature.cells_of_atoms(self.cuts[feature.position])[self.segments[feature.position]]

    def draw(self, atoms: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
        """Uniform random values of some rows of atoms."""
        columns = self.columns
        values = np.empty(atoms.shape)
        for place in range(len(self.schema)):
            piece = self.segments[place][atoms[:, place]]
            entries = columns.starts[place] + piece
            first, last = columns.firsts[entries], columns.lasts[entries]
            share = rng.random(len(atoms))
            denominator = columns.denominators[place]
            if denominator == 0:
                drawn = np.clip(first * (1 - share) + last * share, first, last)
            else:
                steps = np.minimum(first + np.floor(share * (last - first + 1)), last)
                drawn = steps / denominator
            values[:, place] = np.where(piece == columns.nulls[place], np.nan, drawn)
        return values
