"""Exact counts of a workload, in one pass over a table, on several threads.

Exact counts are as sensitive as the table itself. They have a type of their own, whose ``repr`` is
redacted, and which cannot be pickled, copied or converted to an array.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from private_gsd.counting import of_units
from private_gsd.counting.on_spark import count_on_spark
from private_gsd.counting.on_threads import BATCH_ROWS, as_it_is, count_pieces
from private_gsd.data.encoding import Encoder, OnInvalid, Problems
from private_gsd.data.sources import Source, open_source
from private_gsd.data.sources.spark import SparkFrame
from private_gsd.data.units.choosing import UnitKey
from private_gsd.errors import DataError, SourceError
from private_gsd.kernels.binning import count_outside
from private_gsd.system.memory import SHARE, available
from private_gsd.system.operating_system import cores
from private_gsd.system.progress import Progress, ignore, shown

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.data.units.bounded_rows import BoundedRows
    from private_gsd.schema import Schema
    from private_gsd.workloads import Workload

# The largest number of bytes of encoded rows that are kept in memory for another pass.
KEPT_BYTES = 2**30


class ExactCounts:
    """Exact counts of a sensitive table. They must not leave the process without noise.

    Where the schema names a unit of protection, they are counts of rows that were taken. Where each
    unit counts one, a row of a unit of k rows counts W/k, and all counts are in W-ths of a unit.

    Attributes:
        workload: The queries.
        n_records: The number of records of the table; of units where each of them counts one, of
            the rows that were taken where each of those counts one.
        counts: For every query, the number of rows that meet it, or the sum of their weights.
    """

    __slots__ = ("counts", "n_records", "workload")

    def __init__(self, workload: Workload, n_records: int, counts: NDArray[np.int64]) -> None:
        self.workload = workload
        self.n_records = n_records
        self.counts = counts

    @property
    def weight(self) -> int:
        """What a record counts, W: 1, but where parts of a unit count."""
        unit = self.workload.schema.unit
        return 1 if unit is None else unit.weight

    def __repr__(self) -> str:
        return f"<ExactCounts of {len(self.counts):,} queries: redacted>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("exact counts of a sensitive table cannot be pickled, copied or written")

    def __getstate__(self) -> NoReturn:
        raise TypeError("exact counts of a sensitive table cannot be pickled, copied or written")

    def __array__(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("exact counts of a sensitive table do not turn into arrays")


def exact_counts(
    workload: Workload,
    data: Any,
    *,
    on_invalid: OnInvalid = "error",
    threads: int | None = None,
    progress: Progress = ignore,
    keep: KeptRows | None = None,
    unit_key: UnitKey | None = None,
) -> ExactCounts:
    """Count the rows of a table for every query of a workload, in one pass.

    Where the schema names a unit of protection, at most K rows of each unit are counted.

    Args:
        workload: The queries.
        data: Any table that ``open_source`` takes.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
        threads: The number of threads; as many as there are cores by default.
        progress: Called with "counting", the number of rows counted so far, and the number of rows
            of the table, where that is known without reading the table.
        keep: Keeps the encoded rows for another pass; not on Spark.
        unit_key: The secret key that chooses the rows of units; by default a new one.
    """
    source = data if isinstance(data, Source) and data.schema == workload.schema else None
    if source is None:
        source = open_source(data, workload.schema)
    if workload.schema.unit is not None and isinstance(source.table, SparkFrame):
        key = unit_key or UnitKey.draw()
        return ExactCounts(workload, *of_units.count_on_spark(workload, source, key, on_invalid))
    if workload.schema.unit is not None:
        bounded = of_units.bounded_rows(
            source, unit_key, on_invalid=on_invalid, threads=threads, progress=progress
        )
        n_records, counts = of_units.count_bounded(workload, bounded, threads, progress)
        return ExactCounts(workload, n_records, counts)
    encoder = Encoder(workload.schema, on_invalid=on_invalid)
    if isinstance(source.table, SparkFrame):
        return _count_on_spark(workload, source, source.table, encoder, progress)
    problems = Problems()
    lock = threading.Lock()

    def encode(batch: pa.RecordBatch) -> NDArray[np.float64] | None:
        mine = Problems()
        matrix = source.encode(batch, encoder, mine)
        if mine:
            with lock:
                problems.merge(mine)
        if problems:
            return None
        if keep is not None:
            keep.add(matrix)
        return matrix

    batches = source.batches(BATCH_ROWS)
    with shown(progress) as report:
        rows, counts = count_pieces(workload, batches, encode, threads, source.rows, report)
    if problems:
        raise problems.error(source.name)
    return ExactCounts(workload, rows, counts)


class TableCounts:
    """Exact counts of one sensitive table, for one workload after the other.

    The encoded rows are kept in memory after the first pass, if they are at most ``KEPT_BYTES`` or
    the table can be read only once. Other tables are read again for every workload. The last counts
    are kept: steps of a mechanism ask for the same workload several times. Threads wait for each
    other.

    Args:
        source: The table, opened with its schema.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
        threads: The number of threads; as many as there are cores by default.
        progress: See ``exact_counts``.
        again: Whether there may be more than one workload.
        unit_key: The secret key that chooses the rows of units; by default a new one.
    """

    def __init__(
        self,
        source: Source,
        *,
        again: bool,
        on_invalid: OnInvalid = "error",
        threads: int | None = None,
        progress: Progress = ignore,
        unit_key: UnitKey | None = None,
    ) -> None:
        self._source = source
        has_unit = source.schema is not None and source.schema.unit is not None
        self._unit_key = unit_key or (UnitKey.draw() if has_unit else None)
        self._bounded: BoundedRows | None = None
        self._on_invalid = on_invalid
        self._threads = threads
        self._progress = progress
        self.again = again
        self._rows: KeptRows | None = None
        self._last: ExactCounts | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "<TableCounts: redacted>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a sensitive table cannot be pickled, copied or written")

    def __call__(self, workload: Workload) -> ExactCounts:
        """Count the rows of the table for every query of a workload."""
        with self._lock:
            last = self._last
            if last is not None and last.workload is workload:
                return last
            found = self._count(workload)
            if last is not None and last.n_records != found.n_records:
                raise SourceError(f"{self._source.name}: the table was changed while it was read")
            self._last = found
            return found

    def records(self) -> int | None:
        """The number of records, counted if necessary; None if the table can be read only once.

        Where the schema names a unit of protection, it is the number of units.
        """
        schema = self._source.schema
        if schema is None or schema.unit is None:
            return self._source.count()
        if isinstance(self._source.table, SparkFrame):
            return of_units.read_ids(self._source).units
        return self._bounded_rows().units

    def _bounded_rows(self) -> BoundedRows:
        """The rows of units, which are chosen now if they were not yet."""
        if self._bounded is None:
            self._bounded = of_units.bounded_rows(
                self._source,
                self._unit_key,
                on_invalid=self._on_invalid,
                threads=self._threads,
                progress=self._progress,
            )
        return self._bounded

    def _count(self, workload: Workload) -> ExactCounts:
        if workload.schema.unit is not None and not isinstance(self._source.table, SparkFrame):
            bounded = self._bounded_rows()
            n_records, counts = of_units.count_bounded(
                workload, bounded, self._threads, self._progress
            )
            return ExactCounts(workload, n_records, counts)
        rows = self._rows
        if rows is not None and rows.complete:
            # In pieces for all threads: a table of few rows is a single batch.
            threads = self._threads or cores()
            pieces = [piece for each in rows.matrices for piece in np.array_split(each, threads)]
            number, counts = count_pieces(workload, pieces, as_it_is, threads)
            self._progress("counting", number, number)
            return ExactCounts(workload, number, counts)
        keep = KeptRows.of(self._source) if self.again else None
        found = exact_counts(
            workload,
            self._source,
            on_invalid=self._on_invalid,
            threads=self._threads,
            progress=self._progress,
            keep=keep,
            unit_key=self._unit_key,
        )
        if keep is not None:  # Spark's rows stay where they are
            keep.complete = keep.rows == found.n_records
            self._rows = keep
        return found


class KeptRows:
    """The encoded rows of a table, as long as they take no more memory than they may.

    Args:
        limit: The largest number of bytes.
        name: The name of the table, if it can be read only once: all of its rows are needed.

    Attributes:
        name: See above.
        matrices: The rows, in pieces; none if they take more memory.
        rows: The number of rows in them.
        complete: Whether all rows are here; set when the pass has ended.
    """

    def __init__(self, limit: float, name: str = "") -> None:
        self.name = name
        self.matrices: list[NDArray[np.float64]] = []
        self.rows = 0
        self.complete = False
        self._left = limit
        self._lock = threading.Lock()

    @classmethod
    def of(cls, source: Source) -> KeptRows:
        """The rows of a source; of one that can be read only once as many as memory holds."""
        return cls(SHARE * available(), source.name) if source.once else cls(KEPT_BYTES)

    def add(self, matrix: NDArray[np.float64]) -> None:
        """Keep some rows."""
        with self._lock:
            self._left -= matrix.nbytes
            if self._left < 0 and self.name:
                raise SourceError(
                    f"{self.name}: can be read only once, and does not fit into memory; give a "
                    "file or a table, or measure everything at once with mechanism='one-shot'"
                )
            if self._left < 0:
                self.matrices.clear()
                self.rows = 0
            else:
                self.matrices.append(matrix)
                self.rows += len(matrix)


def _count_on_spark(
    workload: Workload, source: Source, table: SparkFrame, encoder: Encoder, progress: Progress
) -> ExactCounts:
    """The counts of a Spark frame; errors have the same messages as those of other tables."""
    summary, counts = count_on_spark(table, source.columns, encoder, workload)
    if summary.failures:
        raise DataError(f"{source.name}: {summary.failures[0]}")
    if summary.problems:
        raise summary.problems.error(source.name)
    if not summary.rows:
        raise SourceError(f"{source.name}: the table has no rows")
    progress("counting", summary.rows, summary.rows)
    return ExactCounts(workload, summary.rows, counts)


def count(
    workload: Workload, matrix: NDArray[np.float64], *, threads: int | None = None
) -> NDArray[np.int64]:
    """Count the rows of an encoded matrix for every query of a workload."""
    if matrix.ndim != 2 or matrix.shape[1] != len(workload.schema):
        raise ValueError(
            f"expected a matrix with {len(workload.schema)} columns, not shape {matrix.shape}"
        )
    matrix = np.asarray(matrix, dtype=np.float64)
    threads = threads or cores()
    # Every thread gets the same number of pieces of the same size, so that none waits.
    rounds = max(1, -(-len(matrix) // (threads * BATCH_ROWS)))
    pieces = np.array_split(matrix, threads * rounds)
    return count_pieces(workload, pieces, partial(_checked, workload.schema), threads)[1]


def _checked(schema: Schema, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Refuse a value outside the domain, since kernels would write outside their arrays."""
    for position, column in enumerate(schema):
        values = np.ascontiguousarray(matrix[:, position])
        if count_outside(values, *column.bounds, column.nullable):
            raise ValueError(f"column {column.name!r}: the matrix has values outside the schema")
    return matrix
