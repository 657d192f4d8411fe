"""Rows: a table read once, in batches; exact counts of all rows, and a sample of them.

Memory is bounded by the sample and the queries, whatever the size of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.data.sources import open_source
from private_gsd.projection.constraints import broken_by_rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from private_gsd.data.encoding import OnInvalid
    from private_gsd.schema import Schema
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

BATCH_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class Rows:
    """What evaluation keeps of a table. It is as sensitive as the table.

    Attributes:
        sample: Encoded rows: all of them, or so many drawn at random.
        total: The number of rows of the table.
        nulls: For each column, how many of all rows are null.
        counts: For each query of the workload, how many of all rows meet it.
        broken: For each rule of the schema, how many of all rows break it.
    """

    sample: Matrix
    total: int
    nulls: NDArray[np.int64]
    counts: NDArray[np.int64]
    broken: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<Rows of a table of {self.total:,}: redacted>"

    def take(self, number: int, seed: int) -> Matrix:
        """So many rows of the sample, in their order; of equal tables the same ones."""
        return take(self.sample, number, seed)


def read_rows(
    data: Any,
    schema: Schema,
    workload: Workload | None = None,
    *,
    limit: int,
    seed: int = 0,
    on_invalid: OnInvalid = "error",
    progress: Callable[[int], object] | None = None,
) -> Rows:
    """Read a table once.

    Args:
        data: Anything that ``open_source`` takes.
        schema: The public schema.
        workload: What to count.
        limit: The largest sample.
        seed: Of the sample.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
        progress: Told the number of rows of each batch that went by.
    """
    rng = np.random.default_rng(seed)
    families = () if workload is None else workload.families
    states = [family.start() for family in families]
    broken = np.zeros(len(schema.constraints), dtype=np.int64)
    nulls = np.zeros(len(schema), dtype=np.int64)
    total = 0
    kept = np.empty((0, len(schema)))
    keys = np.empty(0)
    for matrix in open_source(data, schema).encoded(on_invalid=on_invalid, batch_rows=BATCH_ROWS):
        seen = len(matrix)
        total += seen
        nulls += np.isnan(matrix).sum(axis=0)
        for family, state in zip(families, states, strict=True):
            family.count(matrix, state)
        broken += broken_by_rule(schema, matrix)
        # The rows with the least random keys are a sample without replacement.
        fresh = rng.random(len(matrix))
        if len(keys) >= limit:
            below = fresh < keys.max()
            matrix, fresh = matrix[below], fresh[below]
        kept, keys = np.concatenate([kept, matrix]), np.concatenate([keys, fresh])
        if len(keys) > limit:
            least = np.sort(np.argpartition(keys, limit - 1)[:limit])
            kept, keys = kept[least], keys[least]
        if progress is not None:
            progress(seen)
    counts = [family.finish(state) for family, state in zip(families, states, strict=True)]
    none = np.empty(0, dtype=np.int64)
    return Rows(kept, total, nulls, np.concatenate([none, *counts]), broken)


def take(matrix: Matrix, number: int, seed: int) -> Matrix:
    """So many rows of a matrix, or all of fewer, in their order."""
    if number >= len(matrix):
        return matrix
    chosen = np.random.default_rng(seed).choice(len(matrix), number, replace=False)
    return matrix[np.sort(chosen)]
