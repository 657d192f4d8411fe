"""Tables in one or more CSV files, gzipped or not, read through DuckDB a batch at a time.

All fields are read as text; the schema gives them a type, not their content. Successive files with
the same header are read as one group, and groups one after the other, so that no file changes how
another is read.
"""

from __future__ import annotations

import csv
import glob
import gzip
import re
import secrets
import zlib
from contextlib import contextmanager
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa

from private_gsd.data.sources.files import FileTable
from private_gsd.data.sources.source_table import require_columns
from private_gsd.errors import SourceError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from private_gsd.data.sources.files import Files

DELIMITERS = (",", ";", "\t", "|")
MAX_LINE = 16 * 2**20
# DuckDB ignores a surplus field that is null. With this text for null, no field is null, and
# DuckDB reports every surplus field.
NO_NULL = secrets.token_hex(16)


class Header(NamedTuple):
    """The header of a CSV file, its delimiter, and whether the file is gzipped."""

    delimiter: str
    names: tuple[str, ...]
    skipped: int
    zipped: bool


class CsvFiles(FileTable):
    """One or more CSV files, gzipped or not; the order of the columns may differ between files."""

    reads = "a CSV file"
    sort = "CSV"
    endings = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")

    def __init__(self, data: Files) -> None:
        self.name, paths, schema = data
        wanted = () if schema is None else schema.read_names
        self._files = [(_read_header(path, wanted), path) for path in paths]
        self._names = [name for name in self._files[0][0].names if name]
        for header, path in self._files:
            require_columns(path, header.names, paths[0], self._names)
        # If an empty text is both a value and a spelling of null, it is a value only in quotes.
        self._quotes_tell = {
            column.name
            for column in schema or ()
            if "" in column.null_values and "" in getattr(column, "values", ())
        }

    @property
    def arrow_schema(self) -> pa.Schema:
        """The names of all columns in the first file; all types are text."""
        return pa.schema([(name, pa.string()) for name in self._names])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The given columns, in batches."""

        def by_position(names: Sequence[str]) -> str:
            # Names in a file may be blank, or differ in case only.
            return ", ".join(f"c{names.index(name)}" for name in columns)

        with _readable(self.name):
            for relation in self._relations(by_position):
                for batch in relation.to_arrow_reader(batch_rows):
                    arrays = [
                        array if name in self._quotes_tell else array.fill_null("")
                        for name, array in zip(columns, batch.columns, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def count(self) -> int:
        """The number of rows, counted in a pass over the files."""
        with _readable(self.name):
            found = [each.fetchall() for each in self._relations(lambda _: "count(*)")]
        return sum(number for ((number,),) in found)

    def _relations(
        self, selected: Callable[[Sequence[str]], str]
    ) -> Iterator[duckdb.DuckDBPyRelation]:
        """A query for each group of files with the same header, one after the other."""
        with _connect() as connection:
            for header, group in groupby(self._files, key=lambda pair: pair[0]):
                paths = [path for _, path in group]
                chosen = selected(header.names)
                # An empty line is a row only if there is one column and an empty field is null.
                if len(header.names) > 1 and self._quotes_tell.isdisjoint(header.names):
                    yield _query(connection, header, paths, chosen, NO_NULL)
                else:
                    _query(connection, header, paths, "count(*)", NO_NULL).fetchall()  # a check
                    yield _query(connection, header, paths, chosen, "")


def _query(
    connection: duckdb.DuckDBPyConnection,
    header: Header,
    paths: Sequence[Path],
    selected: str,
    null: str,
) -> duckdb.DuckDBPyRelation:
    fields = ", ".join(f"c{position}: VARCHAR" for position in range(len(header.names)))
    return connection.sql(
        f"SELECT {selected} "
        "FROM read_csv($paths, delim = $delimiter, skip = $skipped, nullstr = $null, "
        f"columns = {{{fields}}}, header = true, auto_detect = false, quote = '\"', "
        "escape = '\"', strict_mode = true, allow_quoted_nulls = false, compression = $zip, "
        f"null_padding = false, hive_partitioning = false, max_line_size = {MAX_LINE})",
        params={
            "paths": [glob.escape(str(path)) for path in paths],  # no wildcards
            "delimiter": header.delimiter,
            "skipped": header.skipped,
            "null": null,
            "zip": "gzip" if header.zipped else "none",
        },
    )


def _connect() -> duckdb.DuckDBPyConnection:
    """A connection that installs no extensions and draws no progress bar."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    connection.execute("SET enable_progress_bar = false")
    return connection


def _check_gzip(path: Path) -> None:
    """Decompress a whole file to verify its checksums, which DuckDB does not verify."""
    stream = zlib.decompressobj(wbits=31)
    try:
        with path.open("rb") as file:
            while chunk := file.read(2**16):
                while chunk:
                    if stream.eof:  # another member follows, or padding with zeros
                        chunk = chunk.lstrip(b"\0")
                        stream = zlib.decompressobj(wbits=31) if chunk else stream
                    if chunk:
                        stream.decompress(chunk)
                        chunk = stream.unused_data
    except zlib.error as error:
        raise _bad_gzip(path, str(error)) from None
    if not stream.eof:
        raise _bad_gzip(path, "it ends too early")


def _bad_gzip(path: Path, reason: str) -> UnreadableError:
    return UnreadableError(f"{path}: not a gzip file, or a damaged one: {reason}")


def _read_header(path: Path, wanted: Sequence[str]) -> Header:
    """The header of a CSV file; a column without a name has the name ""."""
    zipped = path.name.lower().endswith(".gz")
    try:
        if zipped:
            _check_gzip(path)
        with (gzip.open if zipped else open)(path, "rb") as raw:
            lines = _text_lines(raw)
            first = next(lines, "").removeprefix("\ufeff")
            told = re.fullmatch(r"sep=(.)\s*", first)  # a line that Excel writes and reads
            if told:
                first = next(lines, "")
            delimiter = told[1] if told else _delimiter(first, wanted)
            cells = next(csv.reader(chain([first], lines), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise _not_utf8(path, " in its header") from None
    except (EOFError, zlib.error) as error:
        raise _bad_gzip(path, str(error)) from None
    except (csv.Error, OSError) as error:
        reason = str(error)
        if "field limit" in reason:
            reason = f"a name has more than {csv.field_size_limit():,} letters; is a quote missing?"
        raise SourceError(f"{path}: cannot read the header: {reason}") from None
    if not any(cell.strip() for cell in cells):
        what = "the file is empty" if not first else "the first line is blank"
        raise SourceError(f"{path}: {what}; expected a line of column names")
    if any("\r" in cell for cell in cells):  # DuckDB would skip the row after it
        raise SourceError(f"{path}: a column name holds a carriage return; rename the column")
    known = set(wanted)
    names = tuple(cell if cell in known else cell.strip() for cell in cells)
    return Header(delimiter, names, 1 if told else 0, zipped)


def _text_lines(raw: Any) -> Iterator[str]:
    """The lines of a file as text, decoded one by one."""
    while line := raw.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise csv.Error(f"a line is longer than {MAX_LINE // 2**20} MB")
        yield from re.findall(r"[^\r\n]*(?:\r\n|\r|\n|$)", line.decode("utf-8"))[:-1] or [""]


def _delimiter(line: str, wanted: Sequence[str]) -> str:
    """The delimiter that finds the most wanted columns in the header, then the most columns."""

    known = set(wanted)

    def score(delimiter: str) -> tuple[int, int]:
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:  # such as a long line that is one cell with a wrong delimiter
            return 0, 0
        return sum(cell.strip() in known for cell in cells), len(cells)

    return max(DELIMITERS, key=score)


def _not_utf8(path: object, where: str) -> UnreadableError:
    return UnreadableError(
        f"{path}: not UTF-8 text{where}; convert it, for example with: "
        "iconv -f LATIN1 -t UTF-8 old.csv > new.csv"
    )


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn DuckDB's errors into an ``UnreadableError`` that never quotes the line.

    An error after the first batches is raised as an error of the Arrow stream.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise _translated(name, str(error)) from None


def _translated(name: str, message: str) -> UnreadableError:
    line = re.search(r"CSV Error on Line: (\d+)", message)
    where = f" (line {line[1]})" if line else ""
    file = re.search(r"^\s*file = (.+)$", message, re.MULTILINE)
    name = file[1] if file else name
    if "not utf-8" in message or "Invalid unicode" in message:
        return _not_utf8(name, where)
    counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if counts:
        return UnreadableError(
            f"{name}: a row{where} has {counts[2]} fields where the header has {counts[1]}; "
            "is the file torn, or a quote missing?"
        )
    for sign, trouble in (
        ("unterminated quote", f"a quote{where} is never closed; is the file torn?"),
        ("Maximum line size", f"a line{where} is longer than {MAX_LINE // 2**20} MB"),
        ("state machine", f"a line{where} ends otherwise than the first, or in a lone \\r"),
    ):
        if sign in message:
            return UnreadableError(f"{name}: {trouble}")
    # Further lines of the message may quote the data.
    return UnreadableError(f"{name}{where}: cannot be read: {message.partition(chr(10))[0][:200]}")
