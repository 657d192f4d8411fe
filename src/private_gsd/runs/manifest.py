"""The manifest: the files of a release with their sizes and checksums, checked at every reading."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from private_gsd.errors import ReleaseError
from private_gsd.system.file_systems import is_link
from private_gsd.system.untrusted_files import MAX_ARRAYS, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

INPUTS = ("schema.toml", "workload.json", "workload.npz")
OUTPUTS = ("synthetic.parquet", "privacy.json")
OPTIONAL = ("n_records.json", "selections.json")
# Folders of measurements: ours, and external ones.
FOLDERS = ("measurements", "external")
DOCUMENT = "measurements.json"
ARRAYS = r"arrays-[0-9a-f]{16}\.npz"


class Entry(NamedTuple):
    """A file as it was written."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The files of a release, by their names in its folder.

    Attributes:
        entries: For each file, its size and its checksum.
    """

    entries: Mapping[str, Entry]

    @classmethod
    def of(cls, folder: Path, names: Iterable[str]) -> Manifest:
        """A manifest of files that are in a folder."""
        contents = {name: _read(folder, name) for name in names}
        return cls({name: _entry(content) for name, content in contents.items()})

    @classmethod
    def parse(cls, document: Any, *, complete: bool) -> Manifest:
        """A manifest from its document; names that no release has are refused.

        Args:
            document: As ``document`` gives it.
            complete: Whether the release is.
        """
        if not isinstance(document, dict):
            raise ValueError("the list of files is missing")
        entries = {}
        for name, values in document.items():
            if not isinstance(values, dict) or set(values) != {"bytes", "sha256"}:
                raise ValueError(f"the list of files: {name!r:.80}")
            size, sha256 = values["bytes"], values["sha256"]
            if type(size) is not int or not isinstance(sha256, str):
                raise ValueError(f"the list of files: {name!r:.80}")
            entries[name] = Entry(size, sha256)
        given = list(entries)
        must = [*INPUTS, *(OUTPUTS if complete else ())]
        may = list(OPTIONAL) if complete else []
        for folder in FOLDERS:
            if complete and folder == "measurements":
                must.append(f"{folder}/{DOCUMENT}")
            elif complete or folder == "external":
                may.append(f"{folder}/{DOCUMENT}")
            if f"{folder}/{DOCUMENT}" in given:
                arrays = [name for name in given if re.fullmatch(f"{folder}/{ARRAYS}", name)]
                must.append(arrays[0] if len(arrays) == 1 else f"{folder}/arrays-….npz")
        missing = [name for name in must if name not in given]
        other = [name for name in given if name not in must and name not in may]
        if missing or other:
            raise ValueError(f"the list of files: {(missing + other)[0]!r:.80}")
        return cls(entries)

    def document(self) -> dict[str, Any]:
        """The manifest for JSON."""
        return {
            name: {"bytes": entry.size, "sha256": entry.sha256}
            for name, entry in self.entries.items()
        }

    def read(self, folder: Path, name: str) -> bytes:
        """The content of a listed file, if it is the one that is listed."""
        try:
            content = _read(folder, name)
        except FileNotFoundError:
            raise ReleaseError(
                f"{folder / name}: is missing, and the release is not whole without it; put it back"
            ) from None
        if _entry(content) != self.entries[name]:
            raise ReleaseError(
                f"{folder / name}: was changed or is torn: release.json lists another checksum; "
                "put the file back, or make the release anew"
            )
        return content

    def check(self, folder: Path, but: Iterable[str] = ()) -> None:
        """Refuse files that are missing, damaged or of another release."""
        for name in self.entries:
            if name not in but:
                self.read(folder, name)


def _entry(content: bytes) -> Entry:
    return Entry(len(content), hashlib.sha256(content).hexdigest())


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        if path.parent != folder and is_link(path.parent):
            raise ValueError("is behind a symbolic link")
        return read_file(path, MAX_ARRAYS)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path}: cannot be read: {error}") from None
