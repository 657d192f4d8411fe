"""What differs between file systems: syncing, renaming, links, names, mount points.

Windows neither renames nor removes a file that a program has open, and lets no program open or sync
a folder. macOS writes a file to the disk itself only when told so by a command of its own.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_gsd.system.operating_system import optional_module

if TYPE_CHECKING:
    from collections.abc import Callable

_fcntl = optional_module("fcntl")
_FULL_SYNC: int | None = getattr(_fcntl, "F_FULLFSYNC", None)  # macOS alone
# Whether a folder can be opened, and so be synced and locked.
FOLDERS_OPEN = hasattr(os, "O_DIRECTORY")
# Whether fsync on a folder makes the removal of a file durable, as SQLite relies on.
FOLDERS_SYNC = FOLDERS_OPEN and _FULL_SYNC is None
# Time to wait for a file that another program has open, such as a virus scanner.
PATIENCE = 0.0 if FOLDERS_OPEN else 2.0
# What Windows calls a folder that leads elsewhere.
_JUNCTION = 0xA0000003


def sync(descriptor: int) -> None:
    """Wait until an open file is on the disk."""
    if _FULL_SYNC is not None:
        try:
            _fcntl.fcntl(descriptor, _FULL_SYNC)
        except OSError:  # a file system that cannot, such as one on a network
            pass
        else:
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder's files are on the disk, where the system can."""
    if not FOLDERS_OPEN:
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, target: Path) -> None:
    """Rename a file, atomically; a file of the new name is replaced."""
    patiently(lambda: _rename(path, target, over=True))


def place_new(path: Path, target: Path) -> None:
    """Give a file its name, durably; ``FileExistsError`` if there is one of that name.

    The file keeps its old name as well on systems where a file may have two.
    """
    patiently(lambda: _rename(path, target, over=False))
    sync_folder(target.parent)


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    patiently(lambda: path.unlink(missing_ok=True))


def patiently(act: Callable[[], object], patience: float = PATIENCE) -> None:
    """Do something to a file that another program may have open for a moment.

    Args:
        act: Does it, or raises ``PermissionError``.
        patience: Seconds after which the error is raised.
    """
    end = time.monotonic() + patience
    while True:
        try:
            act()
        except PermissionError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.02)
        else:
            return


def open_to_read(path: Path, *, follow: bool) -> int:
    """Open a plain file; returns its descriptor. It never waits for another program.

    Args:
        path: The file.
        follow: Whether it may be a symbolic link; else ``ValueError`` is raised for one.
    """
    flags = _flags("O_CLOEXEC", "O_BINARY", "O_NONBLOCK")
    atomic = hasattr(os, "O_NONBLOCK") and (follow or hasattr(os, "O_NOFOLLOW"))
    before = None if atomic else _looked_at(path, follow)
    try:
        descriptor = os.open(path, flags if follow else flags | _flags("O_NOFOLLOW"))
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise ValueError("is a symbolic link, not a file") from None
        raise
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise ValueError("is not a plain file")
    if before is not None and not os.path.samestat(before, about):
        os.close(descriptor)
        raise ValueError("changed while it was opened")
    return descriptor


def _flags(*names: str) -> int:
    found = os.O_RDONLY
    for name in names:
        found |= getattr(os, name, 0)
    return found


def _looked_at(path: Path, follow: bool) -> os.stat_result:
    """What is known of a file before it is opened, where opening cannot refuse by itself."""
    about = path.stat() if follow else path.lstat()
    if stat.S_ISLNK(about.st_mode):
        raise ValueError("is a symbolic link, not a file")
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("is not a plain file")
    return about


def is_link(path: Path) -> bool:
    """Whether a name leads elsewhere: a symbolic link, or a junction of Windows."""
    try:
        about: Any = path.lstat()
    except OSError:
        return False
    return stat.S_ISLNK(about.st_mode) or getattr(about, "st_reparse_tag", 0) == _JUNCTION


def same_file(path: Path, other: Path) -> bool:
    """Whether two paths name the same file, be it in other letters where these do not count."""
    if path.resolve() == other.resolve():
        return True
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there
        return False


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path is in a folder, or in a folder of it."""
    return any(same_file(parent, folder) for parent in path.resolve().parents)


def mount_points() -> set[Path]:
    """All mount points; none where files are not mounted."""
    lines: list[bytes] = []
    if sys.platform == "linux":
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    # The fifth field; spaces, tabs, line ends and backslashes in it are written in octal.
    escaped = re.compile(rb"\\([0-7]{3})")
    return {
        Path(os.fsdecode(escaped.sub(lambda code: bytes([int(code[1], 8)]), line.split()[4])))
        for line in lines
    }


if sys.platform == "win32":
    import ctypes

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _REPLACE_EXISTING, _WRITE_THROUGH = 1, 8

    def _rename(path: Path, target: Path, *, over: bool) -> None:
        """Rename a file, and wait until the new name is on the disk."""
        flags = _WRITE_THROUGH | (_REPLACE_EXISTING if over else 0)
        names = (ctypes.c_wchar_p(str(path)), ctypes.c_wchar_p(str(target)))
        if not _kernel32.MoveFileExW(*names, flags):
            number = ctypes.get_last_error()
            # With both names, as errors of ``os.replace`` have them.
            raise OSError(None, ctypes.FormatError(number).strip(), str(path), number, str(target))

else:

    def _rename(path: Path, target: Path, *, over: bool) -> None:
        if over:
            path.replace(target)
        else:
            os.link(path, target)
