"""Tables in one or more Parquet files, read a batch at a time with verified checksums.

Files are read one after the other, so that no file changes how another is read.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet

from private_gsd.data.sources.files import FileTable
from private_gsd.data.sources.source_table import first_line, require_columns
from private_gsd.errors import SourceError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from private_gsd.data.sources.files import Files


class ParquetFiles(FileTable):
    """One or more Parquet files, each with all columns of the first.

    A folder named ``column=value`` in the path of a file adds this column, as text, to a file that
    does not have it.
    """

    reads = "a Parquet file"
    sort = "Parquet"
    endings = (".parquet", ".pq")

    def __init__(self, data: Files) -> None:
        self.name, paths, _ = data
        self._paths = paths
        schemas = []
        self.rows = 0
        for path in paths:
            with _opened(path) as file:
                schemas.append(_schema(path, file))
                self.rows += file.metadata.num_rows
            require_columns(path, schemas[-1].names, paths[0], schemas[0].names)
        self._schema = schemas[0]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names and types of all columns in the first file."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""
        for path in self._paths:
            with _opened(path) as file:
                inside = [name for name in columns if name in file.schema_arrow.names]
                words = _enums(file)
                folders = _folder_values(path)
                rows = 0
                for batch in _read(path, file, inside, batch_rows):
                    rows += batch.num_rows
                    arrays = {
                        name: batch.column(name).cast(pa.string())
                        if name in words
                        else batch.column(name)
                        for name in inside
                    }
                    yield pa.RecordBatch.from_arrays(
                        [
                            arrays[name]
                            if name in arrays
                            else pa.repeat(pa.scalar(folders[name], pa.string()), batch.num_rows)
                            for name in columns
                        ],
                        names=list(columns),
                    )
                if rows != file.metadata.num_rows:
                    raise _damaged(path, "the number of its rows is not what its footer says")


@contextmanager
def _opened(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    try:
        file = pyarrow.parquet.ParquetFile(
            path,
            page_checksum_verification=True,
            pre_buffer=False,  # a group of rows need not fit in memory
            coerce_int96_timestamp_unit="us",
        )
    except (pa.ArrowException, OSError) as error:
        reason = "empty" if path.stat().st_size == 0 else first_line(error)
        raise SourceError(f"{path}: not a Parquet file, or a torn one: {reason}") from None
    with file:
        yield file


def _read(
    path: Path, file: pyarrow.parquet.ParquetFile, columns: Sequence[str], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    try:
        yield from file.iter_batches(batch_rows, columns=list(columns))
    except (pa.ArrowException, OSError) as error:
        wrong = "checksum" in str(error)
        raise _damaged(path, "a checksum is wrong" if wrong else first_line(error)) from None


def _damaged(path: Path, reason: str) -> UnreadableError:
    return UnreadableError(f"{path}: damaged: {reason}; fetch the file anew from where it was made")


def _schema(path: Path, file: pyarrow.parquet.ParquetFile) -> pa.Schema:
    """The columns of a file and of its folders, without columns that have no name."""
    inside = file.schema_arrow
    fields = [field for field in inside if field.name.strip()]
    added = [pa.field(name, pa.string()) for name in _folder_values(path)]
    return pa.schema(fields + [field for field in added if field.name not in inside.names])


def _folder_values(path: Path) -> dict[str, str | None]:
    """The columns that the folders in a path give, such as ``year=2020``."""
    found: dict[str, str | None] = {}
    for part in path.parent.parts:
        name, equals, value = part.partition("=")
        if equals and re.fullmatch(r"\w[\w .-]*", name):
            found[unquote(name)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return found


def _enums(file: pyarrow.parquet.ParquetFile) -> set[str]:
    """The columns of the Parquet type ENUM, which Arrow reads as bytes."""
    leaves = [file.schema.column(place) for place in range(len(file.schema.names))]
    return {leaf.path for leaf in leaves if leaf.logical_type.type == "ENUM"}
