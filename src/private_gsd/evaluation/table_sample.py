"""Table samples: exact counts over all rows of a table, and a random sample of its rows.

The table is read once, in batches. Memory depends on the sample and the queries, not on the size of
the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from private_gsd.data.sources import open_source
from private_gsd.projection.constraints import broken_by_rule
from private_gsd.system.progress import ignore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.data.encoding import OnInvalid
    from private_gsd.schema import Schema
    from private_gsd.system.progress import Progress
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]

BATCH_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class TableSample:
    """The part of a table that an evaluation needs. It is as sensitive as the table.

    Attributes:
        sample: Encoded rows: all rows of the table, or a random sample of them.
        total: The number of rows of the table.
        nulls: For each column, the number of nulls in all rows.
        counts: For each query of the workload, the exact count over all rows.
        broken: For each rule of the schema, the number of rows that break it.
    """

    sample: Matrix
    total: int
    nulls: NDArray[np.int64]
    counts: NDArray[np.int64]
    broken: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"<TableSample of a table of {self.total:,} rows: redacted>"

    def take(self, number: int, seed: int) -> Matrix:
        """At most ``number`` rows of the sample, in their order; equal tables give equal rows."""
        return take(self.sample, number, seed)


def sample_table(
    data: Any,
    schema: Schema,
    workload: Workload | None = None,
    *,
    limit: int,
    seed: int = 0,
    on_invalid: OnInvalid = "error",
    what: str = "reading",
    progress: Progress = ignore,
) -> TableSample:
    """Read a table once.

    Args:
        data: Any table that ``open_source`` takes.
        schema: The public schema.
        workload: The queries to count.
        limit: The largest size of the sample.
        seed: The seed of the sample.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
        what: The name of this part of the work, for ``progress``.
        progress: Called with the number of rows read.
    """
    rng = np.random.default_rng(seed)
    families = () if workload is None else workload.families
    states = [family.start() for family in families]
    broken = np.zeros(len(schema.constraints), dtype=np.int64)
    nulls = np.zeros(len(schema), dtype=np.int64)
    total = 0
    sample = np.empty((0, len(schema)))
    keys = np.empty(0)
    source = open_source(data, schema)
    progress(what, 0, source.rows)
    for matrix in source.encoded(on_invalid=on_invalid, batch_rows=BATCH_ROWS):
        total += len(matrix)
        nulls += np.isnan(matrix).sum(axis=0)
        for family, state in zip(families, states, strict=True):
            family.count(matrix, state)
        broken += broken_by_rule(schema, matrix)
        # The rows with the smallest random keys are a sample without replacement.
        fresh = rng.random(len(matrix))
        if len(keys) >= limit:
            below = fresh < keys.max()
            matrix, fresh = matrix[below], fresh[below]
        sample, keys = np.concatenate([sample, matrix]), np.concatenate([keys, fresh])
        if len(keys) > limit:
            smallest = np.sort(np.argpartition(keys, limit - 1)[:limit])
            sample, keys = sample[smallest], keys[smallest]
        progress(what, total, source.rows)
    counts = [family.finish(state) for family, state in zip(families, states, strict=True)]
    none = np.empty(0, dtype=np.int64)
    return TableSample(sample, total, nulls, np.concatenate([none, *counts]), broken)


def take(matrix: Matrix, number: int, seed: int) -> Matrix:
    """At most ``number`` random rows of a matrix, in their order."""
    if number >= len(matrix):
        return matrix
    chosen = np.random.default_rng(seed).choice(len(matrix), number, replace=False)
    return matrix[np.sort(chosen)]
