"""Tables in files: which files a path, a folder or a glob names, and of what sort they are."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from private_gsd.data.sources.csv_files import CsvFiles
from private_gsd.data.sources.parquet_files import ParquetFiles
from private_gsd.errors import SourceError

if TYPE_CHECKING:
    from private_gsd.schema import Schema

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")


def open_files(path: str | Path, schema: Schema | None = None) -> CsvFiles | ParquetFiles:
    """The files that a path, a folder or a glob names."""
    paths = _find(str(path))
    kinds = {_kind(each) for each in paths}
    if len(kinds) > 1:
        raise SourceError(f"{path}: matches both CSV and Parquet files; name one sort")
    if kinds == {"parquet"}:
        return ParquetFiles(str(path), paths)
    return CsvFiles(str(path), paths, schema)


def _find(path: str) -> list[Path]:
    if not path.strip():
        raise SourceError("the path of the table is empty")
    if Path(path).is_dir():
        found = sorted(each for each in Path(path).rglob("*") if _is_data(each, Path(path)))
        if not found:
            raise SourceError(f"{path}: the folder holds no CSV or Parquet file")
    elif Path(path).exists():
        found = [Path(path)]
    elif glob.has_magic(path):
        found = sorted(Path(each) for each in glob.glob(path, recursive=True))  # noqa: PTH207
        if not found:
            raise SourceError(f"{path}: no file matches")
    else:
        raise SourceError(f"{path}: no such file")
    for each in found:
        try:
            str(each).encode()
        except UnicodeEncodeError:
            raise SourceError(f"{each}: the path is not UTF-8 text; rename it") from None
    return found


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
