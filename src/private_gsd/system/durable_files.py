"""Durable files: written whole or not at all, and put in place once their digest is recorded."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from private_gsd.errors import NotCommittedError
from private_gsd.system import file_systems
from private_gsd.system.untrusted_files import MAX_ARRAYS, read_file

if TYPE_CHECKING:
    from collections.abc import Callable

    Before = Callable[[str], object]

# The name of a file that is being written.
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, durably."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        file_systems.sync_folder(each.parent)


def write(path: Path, content: bytes) -> None:
    """Write a file durably; after a crash the file is complete or absent."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            file_systems.sync(file.fileno())
        move(temporary, path)
    finally:
        file_systems.remove(temporary)


def publish(path: Path, content: bytes, before: Before) -> None:
    """Write a file, and move it into place only after its digest is recorded elsewhere.

    A process that dies in between leaves the file under a temporary name, for ``recover``.

    Args:
        path: The file.
        content: The content.
        before: Called with the digest when the content is on the disk and not yet in place.
    """
    pending = _pending(path)
    write(pending, content)
    try:
        before(hashlib.sha256(content).hexdigest())
    except NotCommittedError:  # the file must never be moved into place
        file_systems.remove(pending)
        raise
    move(pending, path)


def recover(path: Path, committed_at: Callable[[str], int]) -> None:
    """Finish a ``publish`` that was interrupted.

    If the digest of the pending file was recorded after that of the file in place, the pending file
    is moved into place. Otherwise it is deleted.

    Args:
        path: The file.
        committed_at: Returns the number under which a digest was recorded, which increases with
            every record; 0 if the digest was not recorded.
    """
    pending = _pending(path)
    if pending.exists():
        shown = committed_at(digest_of(path)) if path.exists() else 0
        if committed_at(digest_of(pending)) > shown:
            move(pending, path)
        else:
            file_systems.remove(pending)


def digest_of(path: Path) -> str:
    """The digest of a file, as ``publish`` computes it."""
    return hashlib.sha256(read_file(path, MAX_ARRAYS)).hexdigest()


def move(path: Path, target: Path) -> None:
    """Move a file to its place, durably."""
    file_systems.replace(path, target)
    file_systems.sync_folder(target.parent)


def _pending(path: Path) -> Path:
    return path.with_name(f".{path.name}.pending")
