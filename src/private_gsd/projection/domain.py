"""The domain: the values that a cell may hold, in atoms between the cut points of all queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from private_gsd.kernels.cells import Columns, draw_table
from private_gsd.kernels.streams import begin_stream
from private_gsd.schema import Discrete, Real
from private_gsd.workloads.offsets import starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from private_gsd.projection.constraints import Pool
    from private_gsd.schema import Column, Schema

_TABLES = 2**61  # streams of random numbers of tables


def columns_of(schema: Schema, cuts: Sequence[NDArray[np.float64]]) -> Columns:
    """The atoms of the columns with the given cut points, in order."""
    firsts, lasts, null_probabilities = [], [], []
    for column, edges in zip(schema, cuts, strict=True):
        first, last = _atoms(column, edges)
        null_probabilities.append(1 / (np.sum(first <= last) + 1) if column.nullable else 0.0)
        firsts.append(np.append(first, [0.0] * column.nullable))
        lasts.append(np.append(last, [0.0] * column.nullable))
    sizes = [len(each) for each in firsts]
    first_steps, last_steps = np.concatenate(firsts), np.concatenate(lasts)
    denominators = np.array([_denominator(column) for column in schema])
    ends = np.array([column.bounds for column in schema])
    grid = denominators > 0
    ends[grid] = np.rint(ends[grid] * denominators[grid, None])
    return Columns(
        starts=starts_of(sizes),
        firsts=first_steps,
        lasts=last_steps,
        base_scores=np.where(first_steps <= last_steps, 0.0, -np.inf),
        denominators=denominators,
        nulls=np.array(
            [size - 1 if c.nullable else -1 for c, size in zip(schema, sizes, strict=True)],
            dtype=np.int64,
        ),
        ends=ends,
        null_probabilities=np.array(null_probabilities),
        cuts=np.concatenate([np.empty(0), *cuts]),
        cut_starts=starts_of([len(each) for each in cuts]),
        discrete=np.array([isinstance(column, Discrete) for column in schema]),
    )


def random_table(
    columns: Columns, rows: int, seed: int, number: int = 0, pool: Pool | None = None
) -> NDArray[np.float64]:
    """A table of uniform random values; with a pool, of random rows that keep the pool's rules."""
    values = np.empty((rows, len(columns.discrete)))
    if pool is not None:
        pool.fill(columns, seed, number, values)
        return values
    stream = np.empty(1, dtype=np.uint64)
    begin_stream(seed, number, _TABLES, stream)
    draw_table(columns, stream, values)
    return values


def _denominator(column: Column) -> float:
    """The number of grid steps per 1: 1 for whole numbers, dates and codes, 10^d for d decimals."""
    if isinstance(column, Real):
        return 0.0 if column.decimals is None else 10.0**column.decimals
    return 1.0


def _atoms(
    column: Column, cuts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first and last step of each atom; the atom of null is left out."""
    low, high = column.bounds
    if isinstance(column, Discrete):
        codes = np.arange(len(column.values), dtype=np.float64)
        return codes, codes
    denominator = _denominator(column)
    edges = np.clip(cuts, low, None)
    if denominator == 0:
        firsts = np.concatenate([[low], edges])
        lasts = np.concatenate([np.nextafter(edges, -np.inf), [high]])
        return firsts, np.minimum(lasts, high)
    # The first step at or after each edge; rounding may be off by one in either direction.
    steps = np.ceil(edges * denominator)
    steps -= (steps - 1) / denominator >= edges
    steps += steps / denominator < edges
    firsts = np.concatenate([[np.rint(low * denominator)], steps])
    last = np.rint(high * denominator)
    lasts = np.minimum(np.append(steps - 1, last), last)
    return firsts, lasts
