"""Units of protection on Spark: rows are encoded where they are, sent to their units, and counted.

There are two steps. A task of the first encodes the rows of a partition, and says by a hash of its
id where each row goes. A task of the second has all rows of its units, takes at most K of each, and
counts them as elsewhere: by the same key the same rows are taken as of a file. Encoded rows go from
executor to executor, and none to the driver.
"""

from __future__ import annotations

import pickle
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from private_gsd.counting.on_spark import (
    BATCH_ROWS,
    RESULT,
    SUMMARY,
    PartitionSummary,
    added,
    blocks_of,
    local,
    numbered,
    row_of,
)
from private_gsd.data.sources.source_table import slices
from private_gsd.data.units.bounded_rows import Bounding
from private_gsd.data.units.choosing import UnitKey
from private_gsd.data.units.ids import texts_of
from private_gsd.errors import DataError, require
from private_gsd.workloads.workload import RunningCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from private_gsd.data.encoding import Encoder
    from private_gsd.data.sources.spark import SparkFrame
    from private_gsd.schema.unit import Unit
    from private_gsd.workloads import Workload

    Batches = Iterator[pa.RecordBatch]

# The number of parts of all units. The session decides how many of them a task has
# (``spark.sql.shuffle.partitions``).
PARTS = 1024


def count_units_on_spark(
    table: SparkFrame,
    columns: Sequence[str],
    encoder: Encoder | None,
    unit: Unit,
    key: UnitKey,
    workload: Workload | None,
) -> tuple[PartitionSummary, NDArray[np.int64]]:
    """Take at most K rows of each unit of a Spark frame, and count them.

    Args:
        table: The frame.
        columns: The columns to read, with that of the ids.
        encoder: The encoder of the columns; None to look at ids alone.
        unit: The unit of protection.
        key: The secret key of the choice.
        workload: The queries; None to count units alone.
    """
    cloudpickle = require("pyspark.cloudpickle", what="Counting on Spark", extra="spark")
    width = 0 if encoder is None else len(encoder.schema)
    content = (encoder, workload, tuple(columns), unit, key.hexadecimal, width)
    job = zlib.compress(cloudpickle.dumps(content), 1)
    fields = ["part int", "id string", "summary binary", *(f"c{n} double" for n in range(width))]
    with table.readable():
        encoded = numbered(table, columns).mapInArrow(
            lambda batches: encode_partition(job, batches), ", ".join(fields)
        )
        together = encoded.repartition("part")
        partial = together.mapInArrow(lambda batches: count_part(job, batches), RESULT)
        return added(partial, 0 if workload is None else workload.size)


def encode_partition(job: bytes, batches: Batches) -> Batches:
    """The encoded rows of one partition with their ids, and its summary."""
    encoder, _, columns, unit, secret, width = pickle.loads(zlib.decompress(job))
    key, summary = UnitKey(secret), PartitionSummary()
    try:
        for batch in batches:
            named = pa.RecordBatch.from_arrays(batch.columns, names=list(columns))
            for piece in slices(named if encoder is None else local(named, encoder), BATCH_ROWS):
                ids = texts_of(piece, unit)
                matrix = np.empty((len(ids), 0))
                if encoder is not None:
                    matrix = encoder.encode_into(piece, summary.problems)
                summary.rows += len(ids)
                summary.without += ids.null_count
                if not summary.problems and len(ids):
                    yield _rows(ids, matrix, key, width)
    except DataError as error:
        summary.failures.append(str(error))
    yield _summary(summary, width)


def count_part(job: bytes, batches: Batches) -> Batches:
    """The counts of the rows that are taken of some units, in blocks, and a summary."""
    _, workload, _, unit, secret, width = pickle.loads(zlib.decompress(job))
    summary = PartitionSummary()
    bounding = Bounding(unit, UnitKey(secret), width)
    for batch in batches:
        summaries = batch.column(2)
        for each in summaries.drop_null():
            summary.merge(pickle.loads(each.as_buffer()))
        rows = batch.filter(summaries.is_null())
        matrix = np.empty((rows.num_rows, width), order="F")
        for place in range(width):
            matrix[:, place] = rows.column(place + 3).to_numpy()
        bounding.add(rows.column(1).cast(pa.large_string()), matrix)
    bounded = bounding.finish()
    summary.units, summary.taken = bounded.units, bounded.rows
    yield row_of(SUMMARY, pickle.dumps(summary))
    if workload is None or not bounded.rows:
        return
    counts = np.zeros(workload.size, dtype=np.int64)
    for weight in bounded.weights():
        running = RunningCounts(workload)
        for matrix in bounded.pieces(weight, BATCH_ROWS):
            running.add(matrix)
        counts += weight * running.finish()
    yield from blocks_of(counts)


def _rows(ids: Any, matrix: NDArray[np.float64], key: UnitKey, width: int) -> pa.RecordBatch:
    """Encoded rows, each with the part that its unit is sent to."""
    parts = np.arange(len(ids)) % PARTS  # a row without an id is alone, wherever it is
    known = ids.is_valid().to_numpy(zero_copy_only=False)
    parts[known] = (key.hash_ids(ids.drop_null()) % np.uint64(PARTS)).astype(np.int64)
    columns = [pa.array(np.ascontiguousarray(column)) for column in matrix.T]
    nothing = pa.nulls(len(ids), pa.binary())
    found = [pa.array(parts, pa.int32()), ids.cast(pa.string()), nothing, *columns]
    return pa.RecordBatch.from_arrays(found, names=_names(width))


def _summary(summary: PartitionSummary, width: int) -> pa.RecordBatch:
    """A summary beside the rows."""
    columns = [pa.nulls(1, pa.float64()) for _ in range(width)]
    content = pa.array([pickle.dumps(summary)], pa.binary())
    found = [pa.array([0], pa.int32()), pa.nulls(1, pa.string()), content, *columns]
    return pa.RecordBatch.from_arrays(found, names=_names(width))


def _names(width: int) -> list[str]:
    return ["part", "id", "summary", *(f"c{number}" for number in range(width))]
