"""The kernel of nearest rows against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest

from private_gsd.kernels.nearest import nearest_rows

RNG = np.random.default_rng(0)


def slow_nearest(rows: np.ndarray, others: np.ndarray, discrete: np.ndarray) -> list[float]:
    def distance(one: np.ndarray, two: np.ndarray) -> float:
        total = 0.0
        for a, b, kind in zip(one, two, discrete, strict=True):
            if np.isnan(a) or np.isnan(b):
                total += not (np.isnan(a) and np.isnan(b))
            else:
                total += (a != b) if kind else abs(a - b)
        return total / len(one)

    return [min(distance(one, two) for two in others) for one in rows]


def test_nearest_distances() -> None:
    discrete = np.array([True, False, True, False])
    for _ in range(20):
        tables = []
        for number in RNG.integers(1, 12, 2):
            matrix = RNG.random((number, 4))
            matrix[:, discrete] = RNG.integers(0, 3, (number, 2))
            matrix[RNG.random(matrix.shape) < 0.2] = np.nan
            tables.append(matrix)
        found, places = np.empty(len(tables[0])), np.empty(len(tables[0]), dtype=np.int64)
        nearest_rows(tables[0], tables[1], discrete, found, places)
        assert found == pytest.approx(slow_nearest(tables[0], tables[1], discrete))
        for row, place in enumerate(places):
            alone = slow_nearest(tables[0][[row]], tables[1][[place]], discrete)
            assert alone == pytest.approx(found[[row]])
