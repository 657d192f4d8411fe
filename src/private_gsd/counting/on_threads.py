"""Counting on threads: pieces of a table are encoded and counted side by side."""

from __future__ import annotations

import queue
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from private_gsd.system.operating_system import cores
from private_gsd.system.progress import Progress, ignore
from private_gsd.workloads.workload import RunningCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from private_gsd.workloads import Workload

BATCH_ROWS = 65_536


def count_pieces(
    workload: Workload,
    pieces: Iterable[Any],
    encode: Callable[[Any], NDArray[np.float64] | None],
    threads: int | None,
    total: int | None = None,
    progress: Progress = ignore,
) -> tuple[int, NDArray[np.int64]]:
    """Encode and count pieces of a table on several threads, each with its own counts.

    Args:
        workload: The queries.
        pieces: The pieces.
        encode: Encodes a piece; returns None if the piece is not to be counted.
        threads: The number of threads; as many as there are cores by default.
        total: The number of rows of all pieces, where it is known.
        progress: Called after every piece.
    """
    threads = threads or cores()
    counts: queue.SimpleQueue[RunningCounts] = queue.SimpleQueue()
    for _ in range(threads):
        counts.put(RunningCounts(workload))

    def work(piece: Any) -> int:
        matrix = encode(piece)
        if matrix is not None:
            mine = counts.get()
            try:
                mine.add(matrix)
            finally:
                counts.put(mine)
        return len(piece)

    rows = 0
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[int]] = deque()

        def take() -> None:
            nonlocal rows
            rows += waiting.popleft().result()
            progress("counting", rows, total)

        try:
            for piece in pieces:
                waiting.append(pool.submit(work, piece))
                # At most one piece more than there are threads is in memory.
                if len(waiting) > threads:
                    take()
            while waiting:
                take()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    all_counts = counts.get()
    for _ in range(threads - 1):
        all_counts.merge(counts.get())
    return rows, all_counts.finish()


def as_it_is(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """For pieces that are encoded already."""
    return matrix
