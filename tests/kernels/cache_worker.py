"""Damage the cache of two small kernels in many ways, and see that they give what they should.

Run as ``python -m tests.kernels.cache_worker FOLDER``, so that a crash ends this process alone. The
kernels lie in ``FOLDER/small.py``, and their entries in its ``__pycache__``. Prints the counts.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCE = """
import numpy as np
from private_gsd.kernels.compiling import kernel

@kernel
def doubled(number):
    return 2 * number

@kernel
def total(values):
    found = 0
    for value in values:
        found += doubled(value)
    return found
"""
FLIPS = 24


def main(folder: Path) -> None:
    (folder / "small.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    import numpy as np

    small: Any = importlib.import_module("small")
    from private_gsd.kernels.compiling import kernel

    values = np.arange(10)
    made = folder / "__pycache__"

    def works() -> bool:
        """Whether a new process would get the right sum; and whether the kernels were loaded."""
        small.doubled = kernel(small.doubled.py_func)
        small.total = kernel(small.total.py_func)
        assert small.total(values) == 90
        assert small.doubled(4) == 8
        return bool(small.total._cache_hits)

    assert not works()
    assert works()  # from the disk
    entries = {path: path.read_bytes() for path in sorted(made.iterdir()) if path.suffix != ".pyc"}
    assert len(entries) >= 2
    counts = {"damages": 0, "loaded": 0, "mended": 0}

    def restored() -> None:
        remove(made)
        made.mkdir()
        for path, content in entries.items():
            path.write_bytes(content)

    def after(damage: Callable[[Path], object], path: Path, *, mends: bool = True) -> None:
        restored()
        damage(path)
        counts["damages"] += 1
        counts["loaded"] += works()
        if mends:  # what was damaged is replaced, and found by the next
            assert works()
            counts["mended"] += 1

    for path, content in entries.items():
        for torn in torn_contents(content, list(entries.values())):
            after(lambda path, torn=torn: path.write_bytes(torn), path)  # type: ignore[misc]
        after(Path.unlink, path)
        for put in PUT:
            after(lambda path, put=put: replaced(path, put), path, mends=False)  # type: ignore[misc]
    for put in PUT:
        after(lambda path, put=put: replaced(path, put), made, mends=False)  # type: ignore[misc]
        remove(made)
        made.mkdir()
    for size in (0, 1, 100, 5000):  # bytes that a file may have, as on a full disk
        with file_size(size):
            for path in entries:
                path.unlink(missing_ok=True)
            assert not works()
            counts["damages"] += 1
            left = [path for path in made.iterdir() if path.suffix != ".pyc"]
            assert left == [], left
    sys.stdout.write(json.dumps(counts))


PUT: list[Callable[[Path], object]] = [
    Path.mkdir,
    os.mkfifo,
    lambda path: path.write_text("a file"),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("/proc/nowhere"),
    lambda path: path.symlink_to(path),
]


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def replaced(path: Path, put: Callable[[Path], object]) -> None:
    """Put something else in the place of a file or a folder."""
    remove(path)
    put(path)


def torn_contents(content: bytes, others: list[bytes]) -> Iterator[bytes]:
    """What may become of a file."""
    for size in (0, 1, 31, 32, 33, len(content) // 2, len(content) - 1):
        yield content[:size]
    yield content + b"\0"
    yield bytes(len(content))
    yield random.Random(1).randbytes(len(content))
    yield content[: len(content) // 2] + bytes(512) + content[len(content) // 2 + 512 :]
    for other in others:
        if other != content:
            yield other
    for number in range(FLIPS):
        place = number * len(content) // FLIPS
        changed = bytearray(content)
        changed[place] ^= 1 << number % 8
        yield bytes(changed)


@contextmanager
def file_size(limit: int) -> Iterator[None]:
    """Let no file grow beyond a size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
