"""Nearness: how far rows are from the nearest rows of another table, and which rows are equal.

Rows are compared column by column: numbers by the difference of their ranks among reference rows,
categories by whether they are equal.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.nearest import nearest_rows
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import Matrix
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]


class Ruler:
    """The distance between rows, from 0 to 1; numbers count by their ranks in reference rows."""

    def __init__(self, schema: Schema, reference: Matrix) -> None:
        self._discrete = np.array([isinstance(column, Discrete) for column in schema])
        self._sorted = [
            None if discrete else np.sort(values[~np.isnan(values)])
            for discrete, values in zip(self._discrete, reference.T, strict=True)
        ]

    def nearest(self, rows: Matrix, others: Matrix) -> Values:
        """For each row, the distance to the nearest of the other rows, from 0 to 1."""
        return self._search(rows, others, self._discrete)[0]

    def closest(self, rows: Matrix, others: Matrix, *, without: int) -> NDArray[np.int64]:
        """For each row, the index of the nearest of the other rows; one column is left out."""
        used = np.arange(len(self._discrete)) != without
        return self._search(rows, others, self._discrete[used], used)[1]

    def _search(
        self,
        rows: Matrix,
        others: Matrix,
        discrete: NDArray[np.bool_],
        used: NDArray[np.bool_] | slice = slice(None),
    ) -> tuple[Values, NDArray[np.int64]]:
        distances, places = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
        ones, twos = (
            np.ascontiguousarray(self._ranked(matrix)[:, used]) for matrix in (rows, others)
        )
        nearest_rows(ones, twos, discrete, distances, places)
        return distances, places

    def _ranked(self, matrix: Matrix) -> Matrix:
        """Numbers as ranks; equal numbers have the middle rank."""
        ranked = np.array(matrix, dtype=np.float64, order="C")
        for place, known in enumerate(self._sorted):
            if known is None or not len(known):
                continue
            values = matrix[:, place]
            below = np.searchsorted(known, values, side="left")
            upto = np.searchsorted(known, values, side="right")
            ranked[:, place] = np.where(np.isnan(values), np.nan, (below + upto) / (2 * len(known)))
        return ranked


def occurs(rows: Matrix, others: Matrix) -> NDArray[np.bool_]:
    """Whether each row is equal to one of the other rows; nulls are equal."""
    known = set(keys_of(others))
    return np.array([each in known for each in keys_of(rows)], dtype=np.bool_)


def once(rows: Matrix) -> Matrix:
    """The rows that occur once."""
    keys = keys_of(rows)
    often = Counter(keys)
    return rows[np.array([often[key] == 1 for key in keys], dtype=np.bool_)]


def keys_of(rows: Matrix) -> list[bytes]:
    """A key for each row; equal rows have equal keys, and nulls are equal."""
    # Adding zero turns -0.0 into 0.0; all NaNs become the same NaN.
    plain = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0))
    whole = plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1])))
    return [bytes(each) for each in whole.ravel().tolist()]
