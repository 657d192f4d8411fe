"""Tables in files: CSV and Parquet, one or many, read through DuckDB a batch at a time.

CSV fields arrive as text, whatever they look like: the schema says what they mean, not a sniffer.
"""

from __future__ import annotations

import csv
import glob
import gzip
import re
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet

from private_gsd.errors import SourceError
from private_gsd.sources.memory import Table, quote_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from private_gsd.schema import Schema

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
DELIMITERS = (",", ";", "\t", "|")


class ParquetFiles(Table):
    """One or several Parquet files with the same columns."""

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name = name
        self._paths = paths
        rows = 0
        for path in paths:
            metadata = _parquet_metadata(path)
            rows += metadata.num_rows
            schema = metadata.schema.to_arrow_schema()
            if path == paths[0]:
                self._schema = schema
            elif not set(self._schema.names) <= set(schema.names):
                lacking = sorted(set(self._schema.names) - set(schema.names))
                raise SourceError(f"{path} lacks columns that {paths[0]} has: {', '.join(lacking)}")
        self.rows = rows

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names and types of all columns, by the first file."""
        return self._schema

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        selected = ", ".join(quote_name(name) for name in columns)
        sql = f"SELECT {selected} FROM read_parquet($paths, union_by_name = true)"
        with _readable(self.name), _connect() as connection:
            relation = connection.sql(sql, params={"paths": _literal(self._paths)})
            yield from relation.to_arrow_reader(batch_rows)

    def restore(self, table: pa.Table, schema: Schema) -> pa.Table:  # noqa: ARG002
        """A PyArrow table in the schema's types."""
        return table


class CsvFiles(Table):
    """One or several CSV files, gzipped or not; the columns may stand in another order in each."""

    def __init__(self, name: str, paths: Sequence[Path], wanted: Sequence[str] = ()) -> None:
        self.name = name
        self._paths = paths
        self._headers = [_read_header(path, wanted) for path in paths]
        names = self._headers[0][1]
        for path, (_, others) in zip(paths, self._headers, strict=True):
            lacking = [column for column in names if column not in others]
            if lacking:
                raise SourceError(f"{path} lacks columns that {paths[0]} has: {', '.join(lacking)}")

    @property
    def arrow_schema(self) -> pa.Schema:
        """Names of all columns, by the first file; all are text."""
        return pa.schema([(name, pa.string()) for name in self._headers[0][1]])

    def batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Those columns, in batches."""
        files = zip(self._headers, self._paths, strict=True)
        for (delimiter, names), group in groupby(files, key=lambda pair: pair[0]):
            # By position, since DuckDB tells names apart by more than their case only.
            fields = [f"c{position}" for position in range(len(names))]
            selected = ", ".join(f"c{names.index(name)} AS {quote_name(name)}" for name in columns)
            sql = (
                f"SELECT {selected} FROM read_csv($paths, delim = $delimiter, header = true, "
                "auto_detect = false, quote = '\"', escape = '\"', strict_mode = true, "
                "allow_quoted_nulls = false, null_padding = false, max_line_size = 16777216, "
                f"columns = {{{', '.join(f'{field}: VARCHAR' for field in fields)}}})"
            )
            with _readable(self.name), _connect() as connection:
                relation = connection.sql(
                    sql,
                    params={"paths": _literal([path for _, path in group]), "delimiter": delimiter},
                )
                for batch in relation.to_arrow_reader(batch_rows):
                    yield batch.rename_columns(list(columns))

    def restore(self, table: pa.Table, schema: Schema) -> pa.Table:  # noqa: ARG002
        """A PyArrow table in the schema's types."""
        return table


def _connect() -> duckdb.DuckDBPyConnection:
    """A connection that fetches nothing from elsewhere and draws no progress bar of its own."""
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    connection.execute("SET enable_progress_bar = false")
    return connection


def open_files(path: str | Path, wanted: Sequence[str] = ()) -> CsvFiles | ParquetFiles:
    """The files that a path, a folder or a glob names."""
    paths = _find(str(path))
    kinds = {_kind(each) for each in paths}
    if len(kinds) > 1:
        raise SourceError(f"{path}: matches both CSV and Parquet files; name one sort")
    if kinds == {"parquet"}:
        return ParquetFiles(str(path), paths)
    return CsvFiles(str(path), paths, wanted)


def _find(path: str) -> list[Path]:
    if Path(path).is_dir():
        endings = CSV_ENDINGS + PARQUET_ENDINGS
        found = sorted(each for each in Path(path).rglob("*") if str(each).endswith(endings))
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


def _parquet_metadata(path: Path) -> pyarrow.parquet.FileMetaData:
    try:
        return pyarrow.parquet.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as error:
        reason = "empty" if _size(path) == 0 else str(error).partition("\n")[0]
        raise SourceError(f"{path}: not a Parquet file, or a torn one: {reason}") from None


def _size(path: Path) -> int:
    return path.stat().st_size


def _read_header(path: Path, wanted: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The delimiter and the column names of a CSV file."""
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as raw:
            lines = _text_lines(raw)
            first = next(lines, "").removeprefix("\ufeff")
            delimiter = _delimiter(first, wanted)
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
    return delimiter, tuple(cell if cell in wanted else cell.strip() for cell in cells)


def _text_lines(raw: Any) -> Iterator[str]:
    """Lines as text, decoded no further than they are asked for."""
    while line := raw.readline(1 << 20):
        yield from line.decode("utf-8").splitlines(keepends=True)


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
    """Turn DuckDB's errors into ours: what, where, and not the line itself."""
    try:
        yield
    except duckdb.Error as error:
        message = str(error)
        line = re.search(r"CSV Error on Line: (\d+)", message)
        where = f" (line {line[1]})" if line else ""
        file = re.search(r"^\s*file = (.+)$", message, re.MULTILINE)
        name = file[1] if file else name
        if "not utf-8" in message or "Invalid unicode" in message:
            raise _not_utf8(name, where) from None
        counts = re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message)
        if counts:
            raise SourceError(
                f"{name}: a row{where} has {counts[2]} fields where the header has {counts[1]}; "
                "is the file torn, or a quote missing?"
            ) from None
        if "unterminated quote" in message:
            raise SourceError(
                f"{name}: a quote{where} is never closed; is the file torn?"
            ) from None
        raise SourceError(f"{name}{where}: {message.partition(chr(10))[0]}") from None
