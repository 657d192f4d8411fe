"""Spark: the same encoding and counting, on the partitions of a frame.

Each partition is encoded and counted by one task, which gives one vector of counts, in compressed
blocks. The cluster adds them up, block by block, and the driver receives one vector. No row leaves
its executor, and a task that dies and is done again counts once: Spark uses the result of one
attempt alone.
"""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from private_gsd.data.encoding import Problems
from private_gsd.data.sources.source_table import slices
from private_gsd.data.sources.spark import quoted, zone_of
from private_gsd.errors import DataError
from private_gsd.workloads.workload import RunningCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.data.encoding import Encoder
    from private_gsd.data.sources.spark import SparkFrame
    from private_gsd.workloads import Workload

    Batches = Iterator[pa.RecordBatch]

BATCH_ROWS = 65_536
# Counts in a block: what one task of the second step holds of each partition at a time.
BLOCK = 2**18
SUMMARY = -1
# The types that counts travel in, by NumPy's letters; sums may be negative.
PACKED = "BbHhIiq"
RESULT = "block int, data binary"


@dataclass
class PartitionSummary:
    """What a partition found besides its counts.

    Attributes:
        rows: How many rows it has.
        problems: Values outside the schema.
        failures: Why it could not be read at all.
    """

    rows: int = 0
    problems: Problems = field(default_factory=Problems)
    failures: list[str] = field(default_factory=list)

    def merge(self, other: PartitionSummary) -> None:
        """Add what another partition found."""
        self.rows += other.rows
        self.problems.merge(other.problems)
        self.failures = sorted({*self.failures, *other.failures})[:1]


def count_on_spark(
    table: SparkFrame, columns: Sequence[str], encoder: Encoder, workload: Workload
) -> tuple[PartitionSummary, NDArray[np.int64]]:
    """Count the rows of a Spark frame for every query of a workload, where they are.

    Args:
        table: The frame.
        columns: The columns to read.
        encoder: Encodes them.
        workload: The queries.
    """
    job = zlib.compress(pickle.dumps((encoder, workload, tuple(columns))), 1)
    blocks = -(-workload.size // BLOCK)
    with table.readable():
        # By number: mapInArrow itself does not take every name.
        names = [f"c{number}" for number in range(len(columns))]
        frame = table.frame.select(*map(quoted, columns)).toDF(*names)
        partial = frame.mapInArrow(lambda batches: count_partition(job, batches), RESULT)
        # The blocks of all partitions meet by their number, the summaries among them.
        met = partial.repartition(min(blocks + 1, 64), "block")
        total = met.mapInArrow(add_blocks, RESULT).toArrow()
    summary = PartitionSummary()
    counts = np.zeros(workload.size, dtype=np.int64)
    for number, data in zip(total["block"].to_pylist(), total["data"], strict=True):
        if number == SUMMARY:
            summary.merge(pickle.loads(data.as_buffer()))
        else:
            part = _unpacked(data.as_buffer())
            counts[number * BLOCK : number * BLOCK + len(part)] += part
    return summary, counts


def count_partition(job: bytes, batches: Batches) -> Batches:
    """One partition: its counts in blocks, and a summary."""
    encoder, workload, columns = _job(job)
    summary = PartitionSummary()
    running = RunningCounts(workload)
    try:
        for batch in batches:
            named = pa.RecordBatch.from_arrays(batch.columns, names=list(columns))
            for piece in slices(_local(named, encoder), BATCH_ROWS):
                matrix = encoder.encode_into(piece, summary.problems)
                summary.rows += piece.num_rows
                if not summary.problems:
                    running.add(matrix)
    except DataError as error:
        summary.failures.append(str(error))
    yield _row(SUMMARY, pickle.dumps(summary))
    if summary.rows and not summary.problems and not summary.failures:
        counts = running.finish()
        for number, start in enumerate(range(0, len(counts), BLOCK)):
            block = counts[start : start + BLOCK]
            if block.any():
                yield _row(number, _packed(block))


def add_blocks(batches: Batches) -> Batches:
    """Add up the blocks with the same number that met in one place."""
    summary = PartitionSummary()
    sums: dict[int, NDArray[np.int64]] = {}
    for batch in batches:
        for number, data in zip(batch["block"].to_pylist(), batch["data"], strict=True):
            if number == SUMMARY:
                summary.merge(pickle.loads(data.as_buffer()))
            elif number in sums:
                sums[number] += _unpacked(data.as_buffer())
            else:
                sums[number] = _unpacked(data.as_buffer())
    if summary.rows or summary.problems or summary.failures:
        yield _row(SUMMARY, pickle.dumps(summary))
    for number, block in sums.items():
        yield _row(number, _packed(block))


_jobs: dict[bytes, Any] = {}


def _job(job: bytes) -> tuple[Encoder, Workload, tuple[str, ...]]:
    """Encoder, workload and columns; a worker that does several partitions unpacks them once."""
    if job not in _jobs:
        _jobs.clear()
        _jobs[job] = pickle.loads(zlib.decompress(job))
    found: tuple[Encoder, Workload, tuple[str, ...]] = _jobs[job]
    return found


def _local(batch: pa.RecordBatch, encoder: Encoder) -> pa.RecordBatch:
    """Moments as the session's clock shows them, where the schema has no time zone.

    Spark's timestamps have none of their own: they come with the session's.
    """
    arrays = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
        if zoned and getattr(encoder.schema[name], "timezone", None) is None:
            kind = pa.timestamp(array.type.unit, tz=zone_of(array.type.tz))
            array = pc.local_timestamp(array.cast(kind))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _packed(counts: NDArray[np.int64]) -> bytes:
    """Counts in as few bytes as they need: the smallest type that holds them, compressed."""
    least, largest = int(counts.min()), int(counts.max())
    kind = next(
        kind for kind in PACKED if np.iinfo(kind).min <= least and largest <= np.iinfo(kind).max
    )
    return kind.encode() + zlib.compress(counts.astype(kind).tobytes(), 1)


def _unpacked(data: Any) -> NDArray[np.int64]:
    content = bytes(data)
    kind = np.dtype(content[:1].decode())
    return np.frombuffer(zlib.decompress(content[1:]), dtype=kind).astype(np.int64)


def _row(number: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([data], pa.binary())], names=["block", "data"]
    )
