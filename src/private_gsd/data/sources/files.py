"""Tables in files: the files of a path, a folder or a glob, and their format."""

from __future__ import annotations

import glob
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from private_gsd.data.sources.source_table import SourceTable
from private_gsd.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from private_gsd.schema import Schema


class Files(NamedTuple):
    """Files of one sort.

    Attributes:
        name: The path, folder or glob that the user gave.
        paths: The files.
        schema: The public schema, if it was given; how a file is read may depend on it.
    """

    name: str
    paths: Sequence[Path]
    schema: Schema | None


class FileTable(SourceTable):
    """A table in one or several files of a sort.

    Attributes:
        sort: The sort of file, for messages.
        endings: The endings of the names of such files, in lower case.
    """

    sort: ClassVar[str]
    endings: ClassVar[tuple[str, ...]]

    @classmethod
    def accepts(cls, data: Any) -> bool:
        """Whether an object is ``Files`` of this sort."""
        return isinstance(data, Files) and all(cls.has_ending(path) for path in data.paths)

    @classmethod
    def has_ending(cls, path: Path) -> bool:
        """Whether a file's name ends like those of this sort."""
        return path.name.lower().endswith(cls.endings)

    @abstractmethod
    def __init__(self, data: Files) -> None:
        """Open the files without reading rows."""


def find_files(path: str, schema: Schema | None, sorts: Sequence[type[FileTable]]) -> Files:
    """The files that a path, a folder or a glob names, all of one sort.

    Args:
        path: The path, folder or glob that the user gave.
        schema: The public schema, if it was given.
        sorts: The sorts of file that can be read.
    """
    paths = _find(path, sorts)
    for each in paths:
        if not any(sort.has_ending(each) for sort in sorts):
            endings = ", ".join(ending for sort in sorts for ending in sort.endings)
            raise SourceError(f"{each}: unknown sort of file; expected one of {endings}")
    found = [sort.sort for sort in sorts if any(sort.has_ending(each) for each in paths)]
    if len(found) > 1:
        raise SourceError(f"{path}: matches both {' and '.join(found)} files; name one sort")
    return Files(path, paths, schema)


def _find(path: str, sorts: Sequence[type[FileTable]]) -> list[Path]:
    if not path.strip():
        raise SourceError("the path of the table is empty")
    if Path(path).is_dir():
        found = sorted(each for each in Path(path).rglob("*") if _is_data(each, Path(path), sorts))
        if not found:
            words = " or ".join(sort.sort for sort in sorts)
            raise SourceError(f"{path}: the folder holds no {words} file")
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


def _is_data(path: Path, folder: Path, sorts: Sequence[type[FileTable]]) -> bool:
    """Whether a file in a folder is data; names that begin with a dot or an underscore are not."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    known = any(sort.has_ending(path) for sort in sorts)
    return known and not hidden and path.is_file()
