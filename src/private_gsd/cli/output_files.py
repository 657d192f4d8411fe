"""Output files: checked before anything is spent, and written completely or not at all."""

from __future__ import annotations

import fnmatch
import glob
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from private_gsd.data.encoding.spelling import check_spelling, spelled, spelled_types
from private_gsd.data.sources.restoring import to_arrow
from private_gsd.errors import GsdError, SchemaError
from private_gsd.system.file_systems import is_within, place_new, remove, replace, same_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from private_gsd.schema import Schema

# Least number of rows of a group of a Parquet file, but for the last.
GROUP_ROWS = 2**17


@dataclass(frozen=True)
class OutputFile:
    """A table or a text to be written.

    Attributes:
        path: The path of the file.
        force: Whether an existing file may be replaced.
        kinds: The endings that the name of the file may have.
    """

    path: Path
    force: bool
    kinds: tuple[str, ...] = (".csv", ".parquet")

    def check(self, others: Mapping[str, Path | str | None], data: str | None = None) -> None:
        """Refuse a path that cannot be written to, or that another file of the command has.

        Args:
            others: Other files and folders that the command uses; the keys say what they are.
            data: The path, the folder or the glob of the table.
        """
        path = self.path
        if path.suffix not in self.kinds:
            raise GsdError(f"{path}: the output must end in {' or '.join(self.kinds)}")
        for what, other in others.items():
            if other is not None:
                taken = Path(other)
                if same_file(path, taken) or (what == "the release" and is_within(path, taken)):
                    raise GsdError(f"{path}: is {what}, or in it; choose another name")
        if data is not None and self._is_of(data):
            raise GsdError(
                f"{path}: is one of the files of the table, or would be; choose another name"
            )
        if path.is_dir():
            raise GsdError(f"{path}: is a folder")
        if os.path.lexists(path) and not self.force:
            raise self._exists()
        if not path.parent.is_dir():
            raise GsdError(f"{path}: there is no folder {path.parent}")
        # A folder that cannot be written to is found now, before anything is spent.
        probe = self._beside("probe")
        try:
            probe.touch(exist_ok=False)
            probe.unlink()
        except OSError as error:
            raise GsdError(f"{path}: cannot be written: {error.strerror}") from None

    def check_schema(self, schema: Schema) -> None:
        """Refuse a CSV file if a CSV file cannot distinguish all values of the schema."""
        if self.path.suffix == ".csv":
            try:
                check_spelling(schema)
            except SchemaError as error:
                raise SchemaError(f"{self.path}: {error}") from None

    def write_table(self, tables: Iterable[pa.Table], schema: Schema) -> int:
        """Write the rows of some tables, such that reading the file with their schema gives them.

        Args:
            tables: The tables, which are written one after the other.
            schema: Their schema.

        Returns:
            The number of rows.
        """
        rows = 0

        def write(file: BinaryIO) -> None:
            nonlocal rows
            if self.path.suffix == ".csv":
                with pyarrow.csv.CSVWriter(file, spelled_types(schema)) as writer:
                    for table in tables:
                        rows += table.num_rows
                        for batch in table.to_batches(max_chunksize=2**16):
                            writer.write_batch(spelled(batch, schema))
                return
            types = schema.arrow_schema
            with pyarrow.parquet.ParquetWriter(file, types, write_page_checksum=True) as parts:
                for table in _joined(tables):
                    rows += table.num_rows
                    parts.write_table(to_arrow(table, schema))

        self._write(write)
        return rows

    def write(self, text: str) -> None:
        """Write a text."""
        self._write(lambda file: file.write(text.encode(errors="backslashreplace")))

    def _write(self, write: Callable[[BinaryIO], object]) -> None:
        temporary = self._beside("part")
        try:
            with temporary.open("xb") as file:  # opened here, since Arrow accepts UTF-8 names only
                write(file)
            if self.force:
                replace(temporary, self.path)
            else:
                self._place(temporary)
        except FileExistsError:
            raise self._exists() from None
        except OSError as error:
            raise GsdError(f"{self.path}: cannot be written: {error.strerror or error}") from None
        finally:
            remove(temporary)

    def _is_of(self, data: str) -> bool:
        """Whether the output is, or would be, one of the files that a path or a glob names."""
        place = self.path.resolve()
        if Path(data).is_dir():
            return is_within(place, Path(data))
        found = [data, *(glob.glob(data, recursive=True) if glob.has_magic(data) else [])]  # noqa: PTH207
        same = any(same_file(Path(each), place) for each in found)
        # The folder of the pattern may be a link.
        patterns = {Path(data).absolute(), Path(data).parent.resolve() / Path(data).name}
        return same or any(fnmatch.fnmatch(str(place), str(each)) for each in patterns)

    def _place(self, temporary: Path) -> None:
        """Move the file into place; an existing file is never replaced."""
        try:
            place_new(temporary, self.path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            self.path.touch(exist_ok=False)
            replace(temporary, self.path)

    def _exists(self) -> GsdError:
        return GsdError(
            f"{self.path}: exists already; choose another name, or add --force to replace it"
        )

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.{suffix}")


def _joined(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Small tables joined to larger ones: each is a group of rows in a Parquet file."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
