"""K-marginals: the score by which NIST's SDNist compares two tables.

For sets of k columns, the sum of the absolute differences between the two tables' shares lies
between 0 (equal) and 2 (no cell in common). The score is 500 times the mean of 2 minus that sum:
1000 for tables whose k-marginals are equal, 0 for tables that have no cell in common. Numbers are
cut into 20 bins with about the same number of real rows each.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_gsd.evaluation.metrics.column_bins import quantile_cells
from private_gsd.evaluation.table_sample import take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.evaluation.table_sample import TableSample
    from private_gsd.schema import Schema

    Codes = NDArray[np.int64]

SETS = 300
BINS = 20
DENSE = 2**17
SUBSAMPLES = (0.5, 0.3, 0.2, 0.1, 0.05, 0.01)


@dataclass(frozen=True)
class KMarginal:
    """The k-marginal score of two tables.

    Attributes:
        k: The number of columns of a marginal.
        sets: The number of sets of columns that were compared.
        of: The number of all sets of columns.
        score: The score, from 0 to 1000 (best).
        columns: For each column, the mean score of the sets that contain it, the lowest first.
        subsamples: The scores of random subsamples of the real rows, by their share of the rows.
    """

    k: int
    sets: int
    of: int
    score: float
    columns: tuple[tuple[str, float], ...]
    subsamples: tuple[tuple[float, float], ...]


def kmarginal(
    schema: Schema, real: TableSample, synthetic: TableSample, *, k: int = 2, seed: int = 0
) -> KMarginal:
    """Score two tables; k is at most the number of columns."""
    k = min(k, len(schema))
    cells = [
        quantile_cells(column, real.sample[:, place], BINS) for place, column in enumerate(schema)
    ]

    def coded(matrix: NDArray[np.float64]) -> list[Codes]:
        return [each.codes(matrix[:, place]) for place, each in enumerate(cells)]

    ones, twos = coded(real.sample), coded(synthetic.sample)
    chosen = _sets(len(schema), k, np.random.default_rng(seed))
    scores = np.array([_score(ones, twos, places) for places in chosen])
    columns = []
    for place, name in enumerate(schema.names):
        scored = [score for score, places in zip(scores, chosen, strict=True) if place in places]
        if scored:
            columns.append((name, float(np.mean(scored))))
    subsamples = []
    for share in SUBSAMPLES:
        part = take(real.sample, max(1, round(share * len(real.sample))), seed + 1)
        few = coded(part)
        found = [_score(ones, few, places) for places in chosen[:100]]
        subsamples.append((share, float(np.mean(found))))
    return KMarginal(
        k,
        len(chosen),
        math.comb(len(schema), k),
        float(scores.mean()),
        tuple(sorted(columns, key=lambda each: each[1])),
        tuple(subsamples),
    )


def _sets(columns: int, k: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of k columns, or ``SETS`` random ones."""
    if math.comb(columns, k) <= SETS:
        every = list(itertools.combinations(range(columns), k))
        return [every[place] for place in rng.permutation(len(every))]
    found: set[tuple[int, ...]] = set()
    while len(found) < SETS:
        found.add(tuple(sorted(rng.choice(columns, k, replace=False).tolist())))
    return sorted(found, key=lambda _: rng.random())


def _score(ones: Sequence[Codes], twos: Sequence[Codes], places: Sequence[int]) -> float:
    """The score of one set of columns."""
    sizes = [int(max(ones[place].max(), twos[place].max())) + 1 for place in places]
    keys = []
    for codes in (ones, twos):
        key = np.zeros(len(codes[0]), dtype=np.int64)
        for place, size in zip(places, sizes, strict=True):
            key = key * size + codes[place]
        keys.append(key)
    number = math.prod(sizes)
    if number > DENSE:
        # Only the cells that occur: three columns of 1,000 values have 10⁹ cells.
        _, cell = np.unique(np.concatenate(keys), return_inverse=True)
        keys = [cell[: len(keys[0])], cell[len(keys[0]) :]]
        number = int(cell.max()) + 1
    shares = [np.bincount(key, minlength=number) / len(key) for key in keys]
    return float((2 - np.abs(shares[0] - shares[1]).sum()) * 500)
