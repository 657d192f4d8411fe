"""Take away what only some systems have, and refuse what Windows refuses.

A test copies this file to a folder as ``sitecustomize.py``, and every Python that has this folder
in its path runs it before anything else, also those that it starts itself.
"""

from __future__ import annotations

import asyncio  # noqa: F401 - that of Linux calls sysconf when it is imported, since Python 3.12
import errno
import importlib.abc
import os
import signal
import stat
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODULES = ("fcntl", "grp", "pwd", "resource", "termios")
FLAGS = ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "O_DSYNC")
CALLS = (
    *("fork", "forkpty", "register_at_fork", "mkfifo", "mknod", "fchmod", "fchown", "chown"),
    *("sched_getaffinity", "sched_setaffinity", "sched_yield", "sync", "sysconf", "statvfs"),
    *("getuid", "geteuid", "getgid", "getegid", "fdatasync", "process_cpu_count"),
)
SIGNALS = ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM")


class Missing(importlib.abc.MetaPathFinder):
    """Finds no module that Windows lacks."""

    def find_spec(self, name: str, *_: Sequence[str] | object) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away() -> None:
    """Take away modules, functions, flags and signals."""
    sys.meta_path.insert(0, Missing())
    for name in MODULES:
        sys.modules.pop(name, None)
    for name in (*FLAGS, *CALLS):
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)


def refuse_like_windows() -> None:
    """No folder is opened; no open file is renamed or removed; none is synced that is only read."""
    real: dict[str, Any] = {
        name: getattr(os, name)
        for name in ("open", "replace", "rename", "unlink", "remove", "fsync")
    }

    def denied(path: object) -> PermissionError:
        return PermissionError(errno.EACCES, "Permission denied", str(path))

    def is_open(path: Any) -> bool:
        try:
            about = Path(path).stat()
        except OSError:
            return False
        for descriptor in list(Path("/proc/self/fd").iterdir()):
            try:
                if os.path.samestat(os.fstat(int(descriptor.name)), about):
                    return True
            except OSError:
                continue
        return False

    def open_file(path: Any, *arguments: Any, **options: Any) -> Any:
        if not options.get("dir_fd") and Path(path).is_dir():
            raise denied(path)
        return real["open"](path, *arguments, **options)

    def moving(name: str) -> Any:
        def move(path: Any, target: Any, **options: Any) -> None:
            if name == "rename" and os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, "File exists", str(path), None, str(target))
            for each in (path, target):
                if is_open(each):
                    raise denied(each)
            real[name](path, target, **options)

        return move

    def removing(name: str) -> Any:
        def remove(path: Any, **options: Any) -> None:
            if not options and is_open(path):
                raise denied(path)
            real[name](path, **options)

        return remove

    def fsync(descriptor: int) -> None:
        flags = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii")
        mode = int(flags.partition("flags:")[2].split()[0], 8)
        if mode & 3 == os.O_RDONLY or stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, "Bad file descriptor")

    for name, changed in (
        ("open", open_file),
        ("replace", moving("replace")),
        ("rename", moving("rename")),
        ("unlink", removing("unlink")),
        ("remove", removing("remove")),
        ("fsync", fsync),
    ):
        setattr(os, name, changed)


if __name__ == "sitecustomize":
    take_away()
    refuse_like_windows()
    # With PYTHONWARNDEFAULTENCODING: text is never opened in the encoding of the system.
    warnings.filterwarnings("error", category=EncodingWarning, module="private_gsd")
