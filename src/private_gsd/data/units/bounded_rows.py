"""Bounded rows: a table of which at most K rows of each unit are taken, in bounded memory.

Rows are added batch by batch and grouped by their units. Few rows stay in memory. Many are parted
by a hash of their ids into temporary files, and each part, which has all rows of its units, is then
small. The files have no name (on Linux and macOS they are unlinked as soon as they are open;
Windows removes them when they are closed), so that nothing is left of them when the process ends,
however it ends. They are as sensitive as the table, and lie where Python's ``tempfile`` puts them
(``TMPDIR``).
"""

from __future__ import annotations

import tempfile
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
import pyarrow as pa

from private_gsd.data.units.choosing import choose_rows_of_units
from private_gsd.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from private_gsd.data.units.choosing import UnitKey
    from private_gsd.schema.unit import Unit

    Matrix = NDArray[np.float64]

# The largest number of bytes of rows that wait in memory until all of their units are complete, and
# of rows that were taken. More are written to temporary files.
WAITING_BYTES = 2**27
TAKEN_BYTES = 2**29
# The number of parts of a table; a part that is too large is parted again, so often at most: then
# it has the rows of very few units, which must be in memory together.
PARTS = 64
PART_BITS = 6
DEEPEST = 4
# The bytes of an id beside its text.
ID_BYTES = 32


class BoundedRows:
    """The rows that were taken, in pieces of the same weight. As sensitive as the table.

    Attributes:
        units: The number of units.
        rows: The number of rows that were taken.
        all_rows: The number of rows of the table.
    """

    def __init__(self, taken_bytes: int | None = None) -> None:
        self.units = 0
        self.rows = 0
        self.all_rows = 0
        # For each weight matrices, or their places in the temporary file.
        self._pieces: defaultdict[int, list[Matrix | int]] = defaultdict(list)
        self._left = TAKEN_BYTES if taken_bytes is None else taken_bytes
        self._file: IO[bytes] | None = None

    def __repr__(self) -> str:
        return "<BoundedRows: redacted>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("rows of a sensitive table cannot be pickled, copied or written")

    def add(self, matrix: Matrix, weights: NDArray[np.int64], units: int) -> None:
        """Add rows of complete units that were taken."""
        self.units += units
        self.rows += len(matrix)
        order = np.argsort(weights, kind="stable")
        ends = np.flatnonzero(np.diff(weights[order])) + 1
        for mine in np.split(order, ends):
            if len(mine):
                piece = self._placed(np.asfortranarray(matrix[mine]))
                self._pieces[int(weights[mine[0]])].append(piece)

    def _placed(self, matrix: Matrix) -> Matrix | int:
        """A matrix, or its place in the temporary file if there are many."""
        self._left -= matrix.nbytes
        if self._left >= 0:
            return matrix
        if self._file is None:
            self._file = _temporary()
            weakref.finalize(self, self._file.close)
        with _writing():
            place = self._file.seek(0, 2)
            np.save(self._file, matrix, allow_pickle=False)
        return place

    def weights(self) -> list[int]:
        """The weights of rows, ascending."""
        return sorted(self._pieces)

    def pieces(self, weight: int, rows: int) -> Iterator[Matrix]:
        """The rows of a weight, in matrices of at most so many rows."""
        for piece in self._pieces[weight]:
            matrix = self._read(piece) if isinstance(piece, int) else piece
            for start in range(0, len(matrix), rows):
                yield matrix[start : start + rows]

    def _read(self, place: int) -> Matrix:
        """A matrix of the temporary file."""
        if self._file is None:
            raise SourceError("the temporary file of the rows is gone")
        self._file.seek(place)
        found: Matrix = np.load(self._file, allow_pickle=False)
        return found


class Bounding:
    """Takes rows batch by batch, and chooses at most K of each unit.

    Args:
        unit: The unit of protection.
        key: The secret key of the choice.
        width: The number of columns of the encoded rows.
        waiting_bytes: How many bytes of rows may wait in memory; by default ``WAITING_BYTES``.
        into: Where the chosen rows go.
        level: How often the rows were parted before.
    """

    def __init__(
        self,
        unit: Unit,
        key: UnitKey,
        width: int,
        *,
        waiting_bytes: int | None = None,
        into: BoundedRows | None = None,
        level: int = 0,
    ) -> None:
        self._unit, self._key, self._width = unit, key, width
        self._most = WAITING_BYTES if waiting_bytes is None else waiting_bytes
        self._into = BoundedRows() if into is None else into
        self._level = level
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._parts: dict[int, tuple[IO[bytes], pa.RecordBatchStreamWriter]] = {}
        fields = [("id", pa.large_string())]
        self._schema = pa.schema([*fields, *((f"c{n}", pa.float64()) for n in range(width))])

    def add(self, ids: pa.LargeStringArray, matrix: Matrix) -> None:
        """Add the rows of a batch. A row whose id is null is a unit of its own.

        Args:
            ids: The ids of the rows.
            matrix: The encoded rows.
        """
        self._into.all_rows += len(matrix)
        if ids.null_count:
            alone = ids.is_null().to_numpy(zero_copy_only=False)
            number = int(alone.sum())
            weights = np.full(number, self._unit.weight, dtype=np.int64)
            self._into.add(matrix[alone], weights, number)
            ids, matrix = ids.drop_null(), matrix[~alone]
        if len(ids):
            columns = [pa.array(np.ascontiguousarray(column)) for column in matrix.T]
            self._add(pa.RecordBatch.from_arrays([ids, *columns], schema=self._schema))

    def _add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        self._bytes += batch.nbytes + ID_BYTES * batch.num_rows
        if self._bytes > self._most and self._level < DEEPEST:
            self._part()

    def _part(self) -> None:
        """Write the waiting rows to the temporary files of their parts."""
        rows = self._together()
        hashes = self._key.hash_ids(rows.column(0))
        parts = (hashes >> np.uint64(PART_BITS * self._level)) & np.uint64(PARTS - 1)
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts.astype(np.int64), minlength=PARTS))
        rows = rows.take(pa.array(order))
        for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > start:
                with _writing():
                    self._writer(number).write_batch(rows.slice(start, end - start))

    def _writer(self, number: int) -> pa.RecordBatchStreamWriter:
        """Writes to the temporary file of a part."""
        if number not in self._parts:
            file = _temporary()
            weakref.finalize(self, file.close)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            writer = pa.ipc.new_stream(file, self._schema, options=options)
            self._parts[number] = file, writer
        return self._parts[number][1]

    def _together(self) -> pa.RecordBatch:
        """All waiting rows, which wait no longer."""
        table = pa.Table.from_batches(self._waiting, self._schema).combine_chunks()
        self._waiting, self._bytes = [], 0
        [batch] = table.to_batches() or [pa.RecordBatch.from_pylist([], self._schema)]
        return batch

    def finish(self) -> BoundedRows:
        """Choose, after the last row."""
        if not self._parts:
            if self._waiting:
                self._choose(self._together())
            return self._into
        if self._waiting:
            self._part()
        for _, (file, writer) in sorted(self._parts.items()):
            with _writing():
                writer.close()
            file.seek(0)
            part = self._again()
            for batch in pa.ipc.open_stream(file):
                part._add(batch)
            file.close()
            part.finish()
        return self._into

    def _again(self) -> Bounding:
        """For the rows of one part."""
        return Bounding(
            self._unit,
            self._key,
            self._width,
            waiting_bytes=self._most,
            into=self._into,
            level=self._level + 1,
        )

    def _choose(self, rows: pa.RecordBatch) -> None:
        """Choose among the rows of complete units."""
        ids: Any = rows.column(0)
        matrix = np.empty((rows.num_rows, self._width), order="F")
        for place in range(self._width):
            matrix[:, place] = rows.column(place + 1).to_numpy()
        chosen = choose_rows_of_units(ids, matrix, self._unit, self._key)
        self._into.add(matrix[chosen.rows], chosen.weights, chosen.units)


def _temporary() -> IO[bytes]:
    """A temporary file without a name."""
    with _writing():
        return tempfile.TemporaryFile()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(
            f"the rows of units cannot be written to a temporary file: {error.strerror or error}; "
            "set TMPDIR to a folder with room for the table"
        ) from None
