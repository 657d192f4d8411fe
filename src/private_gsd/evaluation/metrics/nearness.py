"""Nearness: how far rows are from the closest rows of another table, and which are equal.

Rows are compared column by column: a number by the difference of its rank among reference rows, a
category by whether it is the same.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.nearest import nearest_rows
from private_gsd.schema import Discrete

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.evaluation.rows import Matrix
    from private_gsd.schema import Schema

    Values = NDArray[np.float64]


class Ruler:
    """The distance between rows: numbers by their rank among the real ones, from 0 to 1."""

    def __init__(self, schema: Schema, reference: Matrix) -> None:
        self._discrete = np.array([isinstance(column, Discrete) for column in schema])
        self._sorted = [
            None if discrete else np.sort(values[~np.isnan(values)])
            for discrete, values in zip(self._discrete, reference.T, strict=True)
        ]

    def nearest(self, rows: Matrix, others: Matrix) -> Values:
        """How far each row is from the closest of the others, from 0 to 1."""
        return self._look(rows, others, self._discrete)[0]

    def closest(self, rows: Matrix, others: Matrix, *, without: int) -> NDArray[np.int64]:
        """Which of the others is the closest to each row, when one column is not looked at."""
        kept = np.arange(len(self._discrete)) != without
        return self._look(rows, others, self._discrete[kept], kept)[1]

    def _look(
        self,
        rows: Matrix,
        others: Matrix,
        discrete: NDArray[np.bool_],
        kept: NDArray[np.bool_] | slice = slice(None),
    ) -> tuple[Values, NDArray[np.int64]]:
        distances, places = np.empty(len(rows)), np.empty(len(rows), dtype=np.int64)
        ones, twos = (
            np.ascontiguousarray(self._ranked(matrix)[:, kept]) for matrix in (rows, others)
        )
        nearest_rows(ones, twos, discrete, distances, places)
        return distances, places

    def _ranked(self, matrix: Matrix) -> Matrix:
        """Numbers as ranks, the middle one where several are equal."""
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
    """Which rows are equal to one of the others; nulls are equal."""
    known = set(keys_of(others))
    return np.array([each in known for each in keys_of(rows)], dtype=np.bool_)


def once(rows: Matrix) -> Matrix:
    """The rows that no other row is equal to."""
    keys = keys_of(rows)
    often = Counter(keys)
    return rows[np.array([often[key] == 1 for key in keys], dtype=np.bool_)]


def keys_of(rows: Matrix) -> list[bytes]:
    """For each row something that is equal for equal rows; nulls are equal."""
    # Adding zero makes one zero of two, and a copy makes one NaN of many.
    plain = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0))
    whole = plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1])))
    return [bytes(each) for each in whole.ravel().tolist()]
