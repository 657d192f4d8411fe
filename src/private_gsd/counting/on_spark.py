"""Counting on Spark: the partitions of a frame are encoded and counted where they are.

Each partition is encoded and counted by one task, which returns a vector of counts in compressed
blocks. The cluster adds up the blocks of all partitions, and the driver receives one vector. No row
leaves its executor. A task that fails and is repeated counts once, since Spark uses the result of
one attempt only.
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
from private_gsd.errors import DataError, require
from private_gsd.workloads.workload import RunningCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.data.encoding import Encoder
    from private_gsd.data.sources.spark import SparkFrame
    from private_gsd.workloads import Workload

    Batches = Iterator[pa.RecordBatch]

BATCH_ROWS = 65_536
# The number of counts in a block; the second step reads the blocks of a partition one by one.
BLOCK = 2**18
SUMMARY = -1
# The NumPy type codes of transmitted counts, smallest first; sums may be negative.
PACKED = "BbHhIiq"
RESULT = "block int, data binary"


@dataclass
class PartitionSummary:
    """The number of rows, the problems and the failures of a partition, besides its counts.

    Attributes:
        rows: The number of rows.
        problems: Values outside the schema.
        failures: Error messages, if the partition could not be read.
        units: The number of units of protection, where the schema names one.
        taken: The number of rows that were taken of units.
        without: The number of rows without an id.
    """

    rows: int = 0
    units: int = 0
    taken: int = 0
    without: int = 0
    problems: Problems = field(default_factory=Problems)
    failures: list[str] = field(default_factory=list)

    def merge(self, other: PartitionSummary) -> None:
        """Add the summary of another partition."""
        self.rows += other.rows
        self.units += other.units
        self.taken += other.taken
        self.without += other.without
        self.problems.merge(other.problems)
        self.failures = sorted({*self.failures, *other.failures})[:1]


def count_on_spark(
    table: SparkFrame, columns: Sequence[str], encoder: Encoder, workload: Workload
) -> tuple[PartitionSummary, NDArray[np.int64]]:
    """Count the rows of a Spark frame for every query of a workload, on its executors.

    Args:
        table: The frame.
        columns: The columns to read.
        encoder: The encoder of the columns.
        workload: The queries.
    """
    # Functions of a notebook or a script are in no module that an executor could import.
    cloudpickle = require("pyspark.cloudpickle", what="Counting on Spark", extra="spark")
    job = zlib.compress(cloudpickle.dumps((encoder, workload, tuple(columns))), 1)
    with table.readable():
        frame = numbered(table, columns)
        partial = frame.mapInArrow(lambda batches: count_partition(job, batches), RESULT)
        return added(partial, workload.size)


def numbered(table: SparkFrame, columns: Sequence[str]) -> Any:
    """Some columns of a frame, renamed to numbers: mapInArrow does not accept every name."""
    names = [f"c{number}" for number in range(len(columns))]
    return table.frame.select(*map(quoted, columns)).toDF(*names)


def added(partial: Any, size: int) -> tuple[PartitionSummary, NDArray[np.int64]]:
    """The summary and the counts of all partitions.

    Args:
        partial: A frame of the blocks and the summaries of each.
        size: The number of queries.
    """
    blocks = -(-size // BLOCK)
    # Blocks with the same number, and all summaries, are sent to the same task.
    met = partial.repartition(min(blocks + 1, 64), "block")
    total = met.mapInArrow(add_blocks, RESULT).toArrow()
    summary = PartitionSummary()
    counts = np.zeros(size, dtype=np.int64)
    for number, data in zip(total["block"].to_pylist(), total["data"], strict=True):
        if number == SUMMARY:
            summary.merge(pickle.loads(data.as_buffer()))
        else:
            part = _unpacked(data.as_buffer())
            counts[number * BLOCK : number * BLOCK + len(part)] += part
    return summary, counts


def count_partition(job: bytes, batches: Batches) -> Batches:
    """The counts of one partition in blocks, and its summary."""
    encoder, workload, columns = _job(job)
    summary = PartitionSummary()
    running = RunningCounts(workload)
    try:
        for batch in batches:
            named = pa.RecordBatch.from_arrays(batch.columns, names=list(columns))
            for piece in slices(local(named, encoder), BATCH_ROWS):
                matrix = encoder.encode_into(piece, summary.problems)
                summary.rows += piece.num_rows
                if not summary.problems:
                    running.add(matrix)
    except DataError as error:
        summary.failures.append(str(error))
    yield row_of(SUMMARY, pickle.dumps(summary))
    if summary.rows and not summary.problems and not summary.failures:
        yield from blocks_of(running.finish())


def blocks_of(counts: NDArray[np.int64]) -> Batches:
    """Counts in blocks, without those of zeros."""
    for number, start in enumerate(range(0, len(counts), BLOCK)):
        block = counts[start : start + BLOCK]
        if block.any():
            yield row_of(number, _packed(block))


def add_blocks(batches: Batches) -> Batches:
    """Add up the blocks with the same number, and the summaries."""
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
        yield row_of(SUMMARY, pickle.dumps(summary))
    for number, block in sums.items():
        yield row_of(number, _packed(block))


_jobs: dict[bytes, Any] = {}


def _job(job: bytes) -> tuple[Encoder, Workload, tuple[str, ...]]:
    """Encoder, workload and columns; a worker with several partitions unpacks them once."""
    if job not in _jobs:
        _jobs.clear()
        _jobs[job] = pickle.loads(zlib.decompress(job))
    found: tuple[Encoder, Workload, tuple[str, ...]] = _jobs[job]
    return found


def local(batch: pa.RecordBatch, encoder: Encoder) -> pa.RecordBatch:
    """Convert timestamps to the session's local time, if the schema has no time zone.

    Spark's timestamps have no time zone of their own; Arrow gives them the session's.
    """
    arrays = []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        zoned = pa.types.is_timestamp(array.type) and array.type.tz is not None
        zoned = zoned and name in encoder.schema
        if zoned and getattr(encoder.schema[name], "timezone", None) is None:
            kind = pa.timestamp(array.type.unit, tz=zone_of(array.type.tz))
            array = pc.local_timestamp(array.cast(kind))
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _packed(counts: NDArray[np.int64]) -> bytes:
    """Counts in the smallest integer type that fits, compressed."""
    least, largest = int(counts.min()), int(counts.max())
    kind = next(
        kind for kind in PACKED if np.iinfo(kind).min <= least and largest <= np.iinfo(kind).max
    )
    return kind.encode() + zlib.compress(counts.astype(kind).tobytes(), 1)


def _unpacked(data: Any) -> NDArray[np.int64]:
    content = bytes(data)
    kind = np.dtype(content[:1].decode())
    return np.frombuffer(zlib.decompress(content[1:]), dtype=kind).astype(np.int64)


def row_of(number: int, data: bytes) -> pa.RecordBatch:
    """A block or a summary, to be sent."""
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([data], pa.binary())], names=["block", "data"]
    )
