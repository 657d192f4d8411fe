"""Tables in files: CSV and Parquet, one or many, read through DuckDB a batch at a time.

CSV fields arrive as text, whatever they look like: the schema says what they mean, not a sniffer.
Files are read one group after the other, a group being files with the same columns and types, so
that no file changes how another is read.
"""

from __future__ import annotations

import csv
import glob
import gzip
import re
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet

from private_gsd.errors import SourceError
from private_gsd.sources.memory import Table, quote_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from private_gsd.schema import Schema

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t", "|")
MAX_LINE = 16 * 2**20


class ParquetFiles(Table):
    """One or several Parquet files, each with all columns of the first.

    Folders named ``column=value`` on the way to a file add that column, as text, to files that do
    not have it themselves.
    """

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name = name
        self._files = [(_parquet_schema(path), path) for path in paths]
        self.rows = sum(pyarrow.parquet.read_metadata(path).num_rows for path in paths)
        self._schema = self._files[0][0]
        for schema, path in self._files:
            _require_columns(path, schema.names, paths[0], self._schema.names)
        folded = [name.casefold() for name in self._schema.names]
        self._ambiguous = {name for name in self._schema.names if folded.count(name.casefold()) > 1}

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns, by the first file."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        ambiguous = sorted(self._ambiguous.intersection(columns))
        if ambiguous:
            raise SourceError(
                f"{self.name}: columns {', '.join(ambiguous)} differ in upper and lower case only; "
                "rename one"
            )
        with _readable(self.name), _connect() as connection:
            for (schema, _), group in groupby(self._files, key=_read_alike):
                paths = [path for _, path in group]
                folders = {
                    field.name: _folder_values(paths[0])[field.name]
                    for field in schema
                    if field.metadata and b"folder" in field.metadata
                }
                inside = [name for name in columns if name not in folders]
                selected = ", ".join(quote_name(name) for name in inside) or "1"
                relation = connection.sql(
                    f"SELECT {selected} FROM read_parquet($paths, hive_partitioning = false)",
                    params={"paths": _literal(paths)},
                )
                for batch in relation.to_arrow_reader(batch_rows):
                    yield _with_folders(batch, columns, folders) if folders else batch


def _read_alike(file: tuple[pa.Schema, Path]) -> tuple[pa.Schema, tuple[Any, ...]]:
    """Files with the same columns and types, in folders with the same values, are one group."""
    schema, path = file
    return schema, tuple(_folder_values(path).items())


class Header(NamedTuple):
    """What the first lines of a CSV file say."""

    delimiter: str
    names: tuple[str, ...]
    skipped: int


class CsvFiles(Table):
    """One or several CSV files, gzipped or not; the columns may stand in another order in each."""

    def __init__(self, name: str, paths: Sequence[Path], schema: Schema | None = None) -> None:
        self.name = name
        wanted = () if schema is None else schema.names
        self._files = [(_read_header(path, wanted), path) for path in paths]
        self._names = [name for name in self._files[0][0].names if name]
        for header, path in self._files:
            _require_columns(path, header.names, paths[0], self._names)
        # Where an empty field is no spelling of null it is an empty text.
        self._kept_empty = {column.name for column in schema or () if "" not in column.null_values}

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names of all columns, by the first file; all are text."""
        return pa.schema([(name, pa.string()) for name in self._names])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""

        def by_position(names: Sequence[str]) -> str:
            # Names in a file may be blank, or differ in case only.
            return ", ".join(f"c{names.index(name)}" for name in columns)

        with _readable(self.name):
            for relation in self._relations(by_position):
                for batch in relation.to_arrow_reader(batch_rows):
                    arrays = [
                        array.fill_null("") if name in self._kept_empty else array
                        for name, array in zip(columns, batch.columns, strict=True)
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def count(self) -> int:
        """The number of rows, by a pass over the files."""
        with _readable(self.name):
            found = [each.fetchall() for each in self._relations(lambda _: "count(*)")]
        return sum(number for ((number,),) in found)

    def _relations(
        self, selected: Callable[[Sequence[str]], str]
    ) -> Iterator[duckdb.DuckDBPyRelation]:
        """A query for each group of files with the same header, one after the other."""
        with _connect() as connection:
            for header, group in groupby(self._files, key=lambda pair: pair[0]):
                fields = ", ".join(f"c{position}: VARCHAR" for position in range(len(header.names)))
                yield connection.sql(
                    f"SELECT {selected(header.names)} "
                    "FROM read_csv($paths, delim = $delimiter, skip = $skipped, "
                    f"columns = {{{fields}}}, header = true, auto_detect = false, quote = '\"', "
                    "escape = '\"', strict_mode = true, allow_quoted_nulls = false, "
                    f"null_padding = false, hive_partitioning = false, max_line_size = {MAX_LINE})",
                    params={
                        "paths": _literal([path for _, path in group]),
                        "delimiter": header.delimiter,
                        "skipped": header.skipped,
                    },
                )


def open_files(path: str | Path, schema: Schema | None = None) -> CsvFiles | ParquetFiles:
    """The files that a path, a folder or a glob names."""
    paths = _find(str(path))
    kinds = {_kind(each) for each in paths}
    if len(kinds) > 1:
        raise SourceError(f"{path}: matches both CSV and Parquet files; name one sort")
    if kinds == {"parquet"}:
        return ParquetFiles(str(path), paths)
    return CsvFiles(str(path), paths, schema)


def _connect() -> duckdb.DuckDBPyConnection:
    """A connection that fetches nothing from elsewhere and draws no progress bar of its own."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    connection.execute("SET enable_progress_bar = false")
    return connection


def _find(path: str) -> list[Path]:
    if not path.strip():
        raise SourceError("the path of the table is empty")
    if Path(path).is_dir():
        found = sorted(each for each in Path(path).rglob("*") if _is_data(each, Path(path)))
        if not found:
            raise SourceError(f"{path}: the folder holds no CSV or Parquet file")
        return found
    if Path(path).exists():
        return [Path(path)]
    if glob.has_magic(path):
        found = sorted(Path(each) for each in glob.glob(path, recursive=True))  # noqa: PTH207
        if not found:
            raise SourceError(f"{path}: no file matches")
        return found
    raise SourceError(f"{path}: no such file")


def _is_data(path: Path, folder: Path) -> bool:
    """Whether a file in a folder is data; what begins with a dot or underscore is not, as usual."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    known = path.name.lower().endswith(CSV_ENDINGS + PARQUET_ENDINGS)
    return known and not hidden and path.is_file()


def _kind(path: Path) -> str:
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        return "parquet"
    if name.endswith(CSV_ENDINGS):
        return "csv"
    raise SourceError(
        f"{path}: unknown sort of file; expected one of {', '.join(CSV_ENDINGS + PARQUET_ENDINGS)}"
    )


def _literal(paths: Sequence[Path]) -> list[str]:
    """Paths that DuckDB takes as they are, brackets and stars included."""
    return [glob.escape(str(path)) for path in paths]


def _require_columns(path: Path, names: Sequence[str], first: Path, wanted: Sequence[str]) -> None:
    lacking = [name for name in wanted if name not in names]
    if lacking:
        raise SourceError(f"{path} lacks columns that {first} has: {', '.join(lacking)}")


def _parquet_schema(path: Path) -> pa.Schema:
    """The columns of a file and of its folders; those without a name are left out."""
    try:
        schema = pyarrow.parquet.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        reason = "empty" if path.stat().st_size == 0 else str(error).partition("\n")[0]
        raise SourceError(f"{path}: not a Parquet file, or a torn one: {reason}") from None
    fields = [field for field in schema if field.name.strip()]
    added = [
        pa.field(name, pa.string(), metadata={"folder": value or ""})
        for name, value in _folder_values(path).items()
        if name not in schema.names
    ]
    return pa.schema(fields + added)


def _folder_values(path: Path) -> dict[str, str | None]:
    """The columns that folders on the way name: ``year=2020``."""
    found: dict[str, str | None] = {}
    for part in path.parent.parts:
        name, equals, value = part.partition("=")
        if equals and re.fullmatch(r"\w[\w .-]*", name):
            found[unquote(name)] = None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
    return found


def _with_folders(
    batch: pa.RecordBatch, columns: Sequence[str], folders: dict[str, str | None]
) -> pa.RecordBatch:
    """A batch with the columns of its folders, in the order wanted."""
    arrays = [
        pa.repeat(pa.scalar(folders[name], pa.string()), batch.num_rows)
        if name in folders
        else batch.column(name)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _read_header(path: Path, wanted: Sequence[str]) -> Header:
    """The delimiter and the column names of a CSV file; a column without a name has the name ""."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as raw:
            lines = _text_lines(raw)
            first = next(lines, "").removeprefix("\ufeff")
            told = re.fullmatch(r"sep=(.)\s*", first)  # a line that Excel writes and reads
            if told:
                first = next(lines, "")
            delimiter = told[1] if told else _delimiter(first, wanted)
            cells = next(csv.reader(chain([first], lines), delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise _not_utf8(path, " in its header") from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise SourceError(f"{path}: not a gzip file, or a torn one: {error}") from None
    except (csv.Error, OSError) as error:
        raise SourceError(f"{path}: cannot read the header: {error}") from None
    if not any(cell.strip() for cell in cells):
        what = "the file is empty" if not first else "the first line is blank"
        raise SourceError(f"{path}: {what}; expected a line of column names")
    names = tuple(cell if cell in wanted else cell.strip() for cell in cells)
    return Header(delimiter, names, 1 if told else 0)


def _text_lines(raw: Any) -> Iterator[str]:
    """Lines as text, decoded no further than they are asked for."""
    while line := raw.readline(MAX_LINE):
        yield from re.findall(r"[^\r\n]*(?:\r\n|\r|\n|$)", line.decode("utf-8"))[:-1] or [""]


def _delimiter(line: str, wanted: Sequence[str]) -> str:
    """The delimiter under which the header names most of the wanted columns, or most columns."""

    def score(delimiter: str) -> tuple[int, int]:
        cells = next(csv.reader([line], delimiter=delimiter), [])
        return sum(cell.strip() in wanted for cell in cells), len(cells)

    return max(DELIMITERS, key=score)


def _not_utf8(path: object, where: str) -> SourceError:
    return SourceError(
        f"{path}: not UTF-8 text{where}; convert it, for example with: "
        "iconv -f LATIN1 -t UTF-8 old.csv > new.csv"
    )


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours: what, where, and never the line itself.

    What goes wrong after the first batches arrives as an error of the Arrow stream.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise _translated(name, str(error)) from None


def _translated(name: str, message: str) -> SourceError:
    line = re.search(r"CSV Error on Line: (\d+)", message)
    where = f" (line {line[1]})" if line else ""
    file = re.search(r"^\s*file = (.+)$", message, re.MULTILINE)
    name = file[1] if file else name
    if "not utf-8" in message or "Invalid unicode" in message:
        return _not_utf8(name, where)
    counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
    if counts:
        return SourceError(
            f"{name}: a row{where} has {counts[2]} fields where the header has {counts[1]}; "
            "is the file torn, or a quote missing?"
        )
    for sign, trouble in (
        ("unterminated quote", f"a quote{where} is never closed; is the file torn?"),
        ("Maximum line size", f"a line{where} is longer than {MAX_LINE // 2**20} MB"),
        ("state machine", f"a line{where} ends otherwise than the first, or in a lone \\r"),
    ):
        if sign in message:
            return SourceError(f"{name}: {trouble}")
    # The rest of such a message may quote the line.
    return SourceError(f"{name}{where}: cannot be read: {message.partition(chr(10))[0][:200]}")
