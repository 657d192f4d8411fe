"""Memory: how much there is, and whether a table fits, before anything is paid for."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from private_gsd.errors import ProjectionError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Bytes that Python takes with its libraries and kernels.
BASE = 400e6
# The share of the memory that is used; the system needs some of it.
SHARE = 0.9


def available(root: Path = Path("/")) -> float:
    """The number of bytes that this process may use, as far as the machine says.

    Args:
        root: The folder of the system's own files.
    """
    return min(_limits(root), default=float("inf"))


def require_room(rows: int, base: float, row: float, what: str, instead: str) -> None:
    """Refuse what does not fit into memory.

    Args:
        rows: The number of rows.
        base: The bytes that are taken whatever the number of rows.
        row: The bytes that each row takes.
        what: What takes them, in words.
        instead: What to do, with {fits} for a number of rows that fits.
    """
    room = SHARE * available()
    if base + rows * row <= room:
        return
    fits = max(int((room - base) / row), 0)
    # Rounded down to two digits: it is an estimate.
    fits -= fits % 10 ** max(len(str(fits)) - 2, 0)
    raise ProjectionError(
        f"{what} of {rows:,} rows takes about {(base + rows * row) / 1e9:,.1f} GB of memory, and "
        f"there are {room / 1e9:,.1f} GB for it: {instead.format(fits=f'{fits:,}')}"
    )


def _limits(root: Path) -> Iterator[float]:
    with suppress(ValueError, OSError):  # a system that does not tell
        yield float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield float(soft)
    # The limits of a container: those of its group, and of all groups that this one is in.
    for name in _groups(root):
        try:
            text = (root / "sys/fs/cgroup" / name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # not "max"
            yield float(text)


def _groups(root: Path) -> Iterator[str]:
    """The files with the memory limits of groups of processes."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        place = Path(path.lstrip("/"))
        for folder in (place, *place.parents):
            if not controllers:
                yield str(folder / "memory.max")
            elif "memory" in controllers.split(","):
                yield str("memory" / folder / "memory.limit_in_bytes")
    yield "memory.max"
    yield "memory/memory.limit_in_bytes"
