"""Memory: how much is available, and whether a table fits, before anything is paid for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from private_gsd.errors import ProjectionError
from private_gsd.system.operating_system import memory_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

# The bytes that Python, its libraries and the kernels take.
BASE = 400e6
# The share of the memory that may be used; the rest is for the system.
SHARE = 0.9


def available(root: Path = Path("/")) -> float:
    """The number of bytes that this process may use; infinite if no limit is known.

    Args:
        root: The root of the file system.
    """
    return min(_limits(root), default=float("inf"))


def require_room(rows: int, base: float, row: float, what: str, instead: str) -> None:
    """Refuse a computation that does not fit into memory.

    Args:
        rows: The number of rows.
        base: The bytes that do not depend on the number of rows.
        row: The bytes that each row takes.
        what: The computation, in words.
        instead: Advice, with {fits} for a number of rows that fits.
    """
    room = SHARE * available()
    if base + rows * row <= room:
        return
    fits = max(int((room - base) / row), 0)
    # Rounded down to two digits, since it is an estimate.
    fits -= fits % 10 ** max(len(str(fits)) - 2, 0)
    raise ProjectionError(
        f"{what} of {rows:,} rows takes about {(base + rows * row) / 1e9:,.1f} GB of memory, and "
        f"there are {room / 1e9:,.1f} GB for it: {instead.format(fits=f'{fits:,}')}"
    )


def _limits(root: Path) -> Iterator[float]:
    yield from memory_limits()
    # The limits of a container of Linux: those of its control group and of all parents of it.
    for name in _groups(root):
        try:
            text = (root / "sys/fs/cgroup" / name).read_text(encoding="utf-8").strip()
        except OSError:
            continue
        if text.isdigit():  # not "max"
            yield float(text)


def _groups(root: Path) -> Iterator[str]:
    """The files with the memory limits of the control groups of this process."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
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
