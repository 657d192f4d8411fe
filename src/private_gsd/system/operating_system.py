"""What differs between operating systems: cores, memory, signals, caches, closed pipes.

This module, ``file_systems`` and ``folder_locks`` are the only ones that ask which system they run
on, or use a name that Python has on some systems only.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# The signals that tell a program to end: SIGBREAK is that of Windows, also when a window is closed,
# which has no SIGHUP.
ENDING = ("SIGTERM", "SIGHUP", "SIGBREAK")


def optional_module(name: str) -> Any:
    """A module of Python that some systems lack; None there."""
    try:
        return import_module(name)
    except ImportError:
        return None


def cores() -> int:
    """The number of cores that this process may use."""
    affinity: Any = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() or 1 if affinity is None else len(affinity(0))


def has_desktop() -> bool:
    """Whether a window that this process opens would be seen: not in a remote shell, nor in CI."""
    known = os.environ.get
    if known("CI") or known("SSH_CONNECTION"):
        return False
    on_linux = sys.platform not in ("win32", "darwin")
    return bool(known("DISPLAY") or known("WAYLAND_DISPLAY")) if on_linux else True


def ending_signals() -> list[signal.Signals]:
    """The signals that tell a program to end, but for those that this process ignores."""
    known = [getattr(signal, name) for name in ENDING if hasattr(signal, name)]
    return [each for each in known if signal.getsignal(each) is not signal.SIG_IGN]


def memory_limits() -> Iterator[float]:
    """The memory of the machine and the limit of this process in bytes, where they are known."""
    if sys.platform == "win32":
        yield _physical_memory()
    sizes: Any = getattr(os, "sysconf", None)
    if sizes is not None:
        with suppress(ValueError, OSError):  # not known on this system
            yield float(sizes("SC_PAGE_SIZE")) * sizes("SC_PHYS_PAGES")
    resource = optional_module("resource")
    if resource is not None:
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            yield float(soft)


def core_yielding() -> tuple[str, int | None]:
    """The C function by which a thread yields its core, and its address if it must be given."""
    return _CORE_YIELDING


def user_cache() -> Path:
    """The folder of the user's caches; ``RuntimeError`` where there is no home folder."""
    given = os.environ.get("XDG_CACHE_HOME")
    if sys.platform == "win32":
        given = given or os.environ.get("LOCALAPPDATA")
    return Path(given or Path.home() / ".cache")


def is_closed_pipe(error: OSError) -> bool:
    """Whether an error says that nobody reads standard output any more."""
    # Windows calls it an invalid argument.
    unnamed = sys.platform == "win32" and error.filename is None
    return isinstance(error, BrokenPipeError) or (unnamed and error.errno == errno.EINVAL)


if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    class _MemoryStatus(ctypes.Structure):
        """The structure MEMORYSTATUSEX of Windows."""

        _fields_ = (
            ("length", wintypes.DWORD),
            ("load", wintypes.DWORD),
            ("physical", ctypes.c_uint64),
            *((name, ctypes.c_uint64) for name in ("a", "b", "c", "d", "e", "f")),
        )

    def _physical_memory() -> float:
        status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
        if not ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status)):
            return float("inf")
        return float(status.physical)

    _switch = ctypes.cast(ctypes.WinDLL("kernel32").SwitchToThread, ctypes.c_void_p)
    _CORE_YIELDING: tuple[str, int | None] = ("SwitchToThread", _switch.value)
else:
    _CORE_YIELDING = ("sched_yield", None)
