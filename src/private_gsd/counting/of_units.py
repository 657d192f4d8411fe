"""Counting of units of protection: at most K rows of each are taken, and those are counted."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_gsd.counting.on_threads import BATCH_ROWS, as_it_is, count_pieces
from private_gsd.counting.units_on_spark import count_units_on_spark
from private_gsd.data.encoding import Encoder, OnInvalid, Problems
from private_gsd.data.sources.spark import SparkFrame
from private_gsd.data.units.bounded_rows import BoundedRows, Bounding
from private_gsd.data.units.choosing import UnitKey
from private_gsd.data.units.ids import texts_of
from private_gsd.errors import DataError, SourceError
from private_gsd.system.operating_system import cores
from private_gsd.system.progress import Progress, ignore, shown
from private_gsd.workloads.workload import MOST_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from private_gsd.counting.on_spark import PartitionSummary
    from private_gsd.data.sources import Source
    from private_gsd.schema import Schema
    from private_gsd.schema.unit import Unit
    from private_gsd.workloads import Workload

    Matrix = NDArray[np.float64]


def bounded_rows(
    source: Source,
    key: UnitKey | None = None,
    *,
    on_invalid: OnInvalid = "error",
    threads: int | None = None,
    progress: Progress = ignore,
) -> BoundedRows:
    """Read a table once, and take at most K rows of each unit.

    All rows are checked, also those that are not taken, so that errors do not depend on the choice.

    Args:
        source: The table, opened with a schema that names a unit.
        key: The secret key of the choice; by default a new one.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
        threads: The number of threads; as many as there are cores by default.
        progress: Called with "choosing rows" and the number of rows read so far.
    """
    schema, unit = _with_unit(source)
    encoder = Encoder(schema, on_invalid=on_invalid)
    problems, lock = Problems(), threading.Lock()

    def encode(batch: pa.RecordBatch) -> tuple[Any, Matrix]:
        mine = Problems()
        matrix = source.encode(batch, encoder, mine)
        if mine:
            with lock:
                problems.merge(mine)
        return _ids(source, batch, unit), matrix

    bounding = Bounding(unit, key or UnitKey.draw(), len(schema))
    rows = without = 0
    with shown(progress) as report:
        for ids, matrix in _in_order(source, encode, threads or cores()):
            rows += len(matrix)
            without += ids.null_count
            if not problems:
                bounding.add(ids, matrix)
            report("choosing rows of units", rows, source.rows)
        if problems:
            raise problems.error(source.name)
        _check_ids(source, unit, without)
        found = bounding.finish()
    _check_number(source, found.units)
    return found


class UnitNumbers(NamedTuple):
    """How many units a table has, and how many rows are taken of them. As sensitive as the table.

    Attributes:
        units: The number of units.
        rows: The number of rows that are taken.
    """

    units: int
    rows: int


def read_ids(source: Source) -> UnitNumbers:
    """The number of units of a table and of rows that are taken; only the ids are read."""
    _, unit = _with_unit(source)
    if isinstance(source.table, SparkFrame):
        summary, _ = _on_spark(source, source.table, (unit.column,), None, UnitKey.draw(), None)
        return UnitNumbers(summary.units, summary.taken)
    bounding = Bounding(unit, UnitKey.draw(), 0)
    without = 0
    for batch in source.table.batches((unit.column,), BATCH_ROWS):
        ids = _ids(source, batch, unit)
        without += ids.null_count
        bounding.add(ids, np.empty((len(ids), 0)))
    _check_ids(source, unit, without)
    found = bounding.finish()
    return UnitNumbers(found.units, found.rows)


def count_bounded(
    workload: Workload,
    bounded: BoundedRows,
    threads: int | None = None,
    progress: Progress = ignore,
) -> tuple[int, NDArray[np.int64]]:
    """The number of records, and for every query the sum of the weights of the rows that meet it.

    Args:
        workload: The queries.
        bounded: The rows that were taken.
        threads: The number of threads; as many as there are cores by default.
        progress: Called with "counting", the number of rows counted so far, and of all.
    """
    unit = workload.schema.unit
    counts = np.zeros(workload.size, dtype=np.int64)
    done = 0
    with shown(progress) as report:
        for weight in bounded.weights():
            pieces = bounded.pieces(weight, BATCH_ROWS)
            rows, found = count_pieces(workload, pieces, as_it_is, threads)
            counts += weight * found
            done += rows
            report("counting", done, bounded.rows)
    return bounded.rows if unit is not None and unit.rows_count else bounded.units, counts


def count_on_spark(
    workload: Workload, source: Source, key: UnitKey, on_invalid: OnInvalid
) -> tuple[int, NDArray[np.int64]]:
    """The same as of ``count_bounded``, of a Spark frame whose rows stay on the cluster.

    Args:
        workload: The queries.
        source: The frame, opened with a schema that names a unit.
        key: The secret key of the choice.
        on_invalid: What to do with values outside the schema, see ``Encoder``.
    """
    schema, unit = _with_unit(source)
    encoder = Encoder(schema, on_invalid=on_invalid)
    summary, counts = _on_spark(source, source.table, source.columns, encoder, key, workload)
    return summary.taken if unit.rows_count else summary.units, counts


def _on_spark(
    source: Source,
    table: Any,
    columns: Sequence[str],
    encoder: Encoder | None,
    key: UnitKey,
    workload: Workload | None,
) -> tuple[PartitionSummary, NDArray[np.int64]]:
    """Numbers and counts of a Spark frame; errors have the messages of other tables."""
    _, unit = _with_unit(source)
    found, counts = count_units_on_spark(table, columns, encoder, unit, key, workload)
    if found.failures:
        raise DataError(f"{source.name}: {found.failures[0]}")
    if found.problems:
        raise found.problems.error(source.name)
    _check_ids(source, unit, found.without)
    if not found.rows:
        raise SourceError(f"{source.name}: the table has no rows")
    _check_number(source, found.units)
    return found, counts


def _check_number(source: Source, units: int) -> None:
    if units > MOST_UNITS:
        raise SourceError(f"{source.name}: at most {MOST_UNITS:,} units can be counted")


def _with_unit(source: Source) -> tuple[Schema, Unit]:
    """The schema of a source and its unit of protection."""
    if source.schema is None or source.schema.unit is None:
        raise SourceError(f"{source.name}: open it with a schema that names the unit of protection")
    return source.schema, source.schema.unit


def _ids(source: Source, batch: pa.RecordBatch, unit: Unit) -> Any:
    """The ids of a batch of this source; errors name the table."""
    try:
        return texts_of(batch, unit)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None


def _check_ids(source: Source, unit: Unit, without: int) -> None:
    """Refuse rows without an id, where the schema does."""
    if without and unit.null_ids == "refuse":
        raise DataError(
            f"{source.name}: column {unit.column!r}, which names the unit, is null in "
            f"{without:,} {'row' if without == 1 else 'rows'}; remove them, or let each of them be "
            "a unit of its own: null_ids = 'own' in the schema's [unit]"
        )


def _in_order(source: Source, encode: Any, threads: int) -> Iterator[tuple[Any, Matrix]]:
    """Encode the batches of a source on several threads; at most one waits for each thread."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[tuple[Any, Matrix]]] = deque()
        try:
            for batch in source.batches(BATCH_ROWS):
                waiting.append(pool.submit(encode, batch))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
