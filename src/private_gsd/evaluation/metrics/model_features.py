"""Model features: the numbers that models learn from, made from encoded rows.

Linear models take an indicator for each value of a discrete column, and for each numeric column the
standardised number and an indicator of null. Trees take the encoded rows as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.errors import require
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import Matrix
    from private_gsd.schema import Schema

# In a column with more values than this number, the rarer values share one indicator.
VALUES = 30
# The most categories of scikit-learn's trees; a column with more is taken as a number.
TREE_VALUES = 255


class Features:
    """The conversion of rows to features, learned from reference rows.

    Args:
        schema: The public schema.
        places: The positions of the columns to learn from.
        reference: Encoded rows, from which the frequent values and the scales of numbers are taken.
    """

    def __init__(self, schema: Schema, places: Sequence[int], reference: Matrix) -> None:
        self.places = list(places)
        self.discrete = [isinstance(schema.columns[place], Discrete) for place in places]
        self._maps: list[NDArray[np.int64]] = []
        self._scales: list[tuple[float, float]] = []
        self.categories: list[bool] = []
        self.width = 0
        for place, discrete in zip(self.places, self.discrete, strict=True):
            column, values = schema.columns[place], reference[:, place]
            few = False
            if isinstance(column, Discrete):
                few = len(column.values) <= TREE_VALUES
                size = len(column.values) + 1  # null is a value
                counts = np.bincount(_codes(values, size), minlength=size)
                frequent = np.sort(np.argsort(-counts, kind="stable")[:VALUES])
                mapped = np.full(size, len(frequent))
                mapped[frequent] = np.arange(len(frequent))
                self._maps.append(mapped + self.width)
                self.width += len(frequent) + 1
            else:
                present = values[~np.isnan(values)]
                spread = float(present.std()) if len(present) else 0.0
                self._scales.append((float(present.mean()) if len(present) else 0.0, spread or 1.0))
                self.width += 2
            self.categories.append(discrete and few)

    def linear(self, matrix: Matrix) -> Any:
        """A sparse matrix for linear models."""
        sparse = require("scipy.sparse", what="Evaluation", extra="evaluation")
        number = len(matrix)
        rows, columns, values = [], [], []
        every = np.arange(number)
        maps, scales = iter(self._maps), iter(self._scales)
        start = 0
        for place, discrete in zip(self.places, self.discrete, strict=True):
            if discrete:
                mapped = next(maps)
                rows.append(every)
                columns.append(mapped[_codes(matrix[:, place], len(mapped))])
                values.append(np.ones(number))
                start = int(mapped.max()) + 1
            else:
                mean, spread = next(scales)
                null = np.isnan(matrix[:, place])
                rows += [every, every[null]]
                columns += [np.full(number, start), np.full(int(null.sum()), start + 1)]
                values += [
                    np.where(null, 0.0, np.clip((matrix[:, place] - mean) / spread, -10, 10)),
                    np.ones(int(null.sum())),
                ]
                start += 2
        place_of = np.concatenate(rows), np.concatenate(columns)
        return sparse.csr_matrix((np.concatenate(values), place_of), shape=(number, self.width))

    def trees(self, matrix: Matrix) -> Matrix:
        """The columns themselves, NaN for null."""
        return np.ascontiguousarray(matrix[:, self.places])


def _codes(values: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    return np.where(np.isnan(values), size - 1, values).astype(np.int64)
