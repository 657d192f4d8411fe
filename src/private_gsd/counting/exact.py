"""Answering: exact counts for a workload, in one pass over a table, on several threads.

Exact answers are the most sensitive thing in the program after the table itself. They have a type
of their own, which shows nothing, and which no file or pickle takes.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from private_gsd.counting.on_spark import count_on_spark
from private_gsd.data.encoding import Encoder, OnInvalid, Problems
from private_gsd.data.sources import Source, open_source
from private_gsd.data.sources.spark import SparkFrame
from private_gsd.errors import DataError, SourceError
from private_gsd.kernels.binning import count_outside
from private_gsd.system.progress import Progress, ignore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.schema import Schema
    from private_gsd.workloads import Workload

BATCH_ROWS = 65_536


class ExactCounts:
    """Exact counts of a sensitive table. They must not leave the process without noise.

    Attributes:
        workload: What was asked.
        n_records: The number of records of the table.
        counts: For every query, how many rows meet it.
    """

    __slots__ = ("counts", "n_records", "workload")

    def __init__(self, workload: Workload, n_records: int, counts: NDArray[np.int64]) -> None:
        self.workload = workload
        self.n_records = n_records
        self.counts = counts

    def __repr__(self) -> str:
        return f"<ExactCounts to {len(self.counts):,} queries: redacted>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("exact answers of a sensitive table cannot be pickled, copied or written")

    def __getstate__(self) -> NoReturn:
        raise TypeError("exact answers of a sensitive table cannot be pickled, copied or written")

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("exact answers of a sensitive table do not turn into arrays")


def exact_counts(
    workload: Workload,
    data: Any,
    *,
    on_invalid: OnInvalid = "error",
    threads: int | None = None,
    progress: Progress = ignore,
) -> ExactCounts:
    """Answer every query of a workload exactly, in one pass over a table.

    Args:
        workload: The queries.
        data: Any table that ``open_source`` takes.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
        threads: How many threads count; as many as there are cores by default.
        progress: Called as rows are counted.
    """
    source = data if isinstance(data, Source) and data.schema == workload.schema else None
    if source is None:
        source = open_source(data, workload.schema)
    encoder = Encoder(workload.schema, on_invalid=on_invalid)
    if isinstance(source.table, SparkFrame):
        return _answer_on_spark(workload, source, source.table, encoder, progress)
    problems = Problems()
    lock = threading.Lock()

    def encode(batch: pa.RecordBatch) -> NDArray[np.float64] | None:
        mine = Problems()
        matrix = source.encode(batch, encoder, mine)
        if mine:
            with lock:
                problems.merge(mine)
        return None if problems else matrix

    def report(rows: int) -> None:
        progress("counting", rows, source.rows)

    rows, counts = _count(workload, source.batches(BATCH_ROWS), encode, threads, report)
    if problems:
        raise problems.error(source.name)
    return ExactCounts(workload, rows, counts)


def _answer_on_spark(
    workload: Workload,
    source: Source,
    table: SparkFrame,
    encoder: Encoder,
    progress: Progress,
) -> ExactCounts:
    """The same, where the rows are; what is wrong with them is told in the same words."""
    head, counts = count_on_spark(table, source.columns, encoder, workload)
    if head.failures:
        raise DataError(f"{source.name}: {head.failures[0]}")
    if head.problems:
        raise head.problems.error(source.name)
    if not head.rows:
        raise SourceError(f"{source.name}: the table has no rows")
    progress("counting", head.rows, head.rows)
    return ExactCounts(workload, head.rows, counts)


def count(
    workload: Workload, matrix: NDArray[np.float64], *, threads: int | None = None
) -> NDArray[np.int64]:
    """Count the rows of an encoded matrix for every query of a workload."""
    if matrix.ndim != 2 or matrix.shape[1] != len(workload.schema):
        raise ValueError(
            f"expected a matrix with {len(workload.schema)} columns, not shape {matrix.shape}"
        )
    matrix = np.asarray(matrix, dtype=np.float64)
    threads = threads or len(os.sched_getaffinity(0))
    # As many pieces for each thread, all of one size: else one thread waits for the other.
    rounds = max(1, -(-len(matrix) // (threads * BATCH_ROWS)))
    pieces = np.array_split(matrix, threads * rounds)
    encode = partial(_checked, workload.schema)
    return _count(workload, pieces, encode, threads, lambda rows: None)[1]


def _checked(schema: Schema, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse a value outside the domain: the kernels would write outside of their tables."""
    for position, column in enumerate(schema):
        values = np.ascontiguousarray(matrix[:, position])
        if count_outside(values, *column.bounds, column.nullable):
            raise ValueError(f"column {column.name!r}: the matrix has values outside the schema")
    return matrix


def _count(
    workload: Workload,
    pieces: Iterable[Any],
    encode: Callable[[Any], NDArray[np.float64] | None],
    threads: int | None,
    report: Callable[[int], object],
) -> tuple[int, NDArray[np.int64]]:
    """Encode and count pieces of a table on threads, each with a state of its own."""
    threads = threads or len(os.sched_getaffinity(0))
    states: queue.SimpleQueue[list[NDArray[np.int64]]] = queue.SimpleQueue()
    for _ in range(threads):
        states.put([family.start() for family in workload.families])

    def work(piece: Any) -> int:
        matrix = encode(piece)
        if matrix is not None:
            mine = states.get()
            try:
                for family, state in zip(workload.families, mine, strict=True):
                    family.count(matrix, state)
            finally:
                states.put(mine)
        return len(piece)

    rows = 0
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[int]] = deque()

        def take() -> None:
            nonlocal rows
            rows += waiting.popleft().result()
            report(rows)

        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                # No more pieces are held than there are threads to work on, and one to come.
                if len(waiting) > threads:
                    take()
            while waiting:
                take()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    total = states.get()
    for _ in range(threads - 1):
        for state, other in zip(total, states.get(), strict=True):
            state += other
    answers = [family.finish(state) for family, state in zip(workload.families, total, strict=True)]
    return rows, np.concatenate(answers)


@dataclass(frozen=True)
class QueryErrors:
    """How far two tables' answers to a workload are apart, as shares of their rows.

    Attributes:
        max: The largest difference.
        mean: The mean difference.
        rms: The root of the mean squared difference.
    """

    max: float
    mean: float
    rms: float


def query_errors(workload: Workload, one: Any, other: Any, **options: Any) -> QueryErrors:
    """Compare two tables on a workload. Both are read exactly: the result is as sensitive as they.

    Args:
        workload: The queries.
        one: A table, or its ``ExactCounts`` to this workload.
        other: Another.
        options: As for ``answer``.
    """
    shares = []
    for table in (one, other):
        exact = (
            table if isinstance(table, ExactCounts) else exact_counts(workload, table, **options)
        )
        if exact.workload is not workload:
            raise ValueError("these exact answers belong to another workload")
        shares.append(exact.counts / exact.n_records)
    return share_errors(*shares)


def errors_of(exact: ExactCounts, shares: NDArray[np.float64]) -> QueryErrors:
    """How far shares are from exact answers; as sensitive as these."""
    return share_errors(exact.counts / exact.n_records, shares)


def share_errors(one: NDArray[np.float64], other: NDArray[np.float64]) -> QueryErrors:
    """The errors between two vectors of answers, as shares."""
    difference = np.abs(one - other)
    return QueryErrors(
        max=float(difference.max()),
        mean=float(difference.mean()),
        rms=float(np.sqrt(np.mean(difference**2))),
    )
