"""Caching: compiled kernels on disk. A damaged file or a full disk never breaks a run.

An entry is one file: a digest, and a pickle of the machine code. The digest covers the pickle, the
sources and all versions, and is checked before anything is unpickled or loaded: an entry that is
incomplete, altered or of another version is ignored, and the kernel is compiled again. An entry
that cannot be read or written for another reason (a full disk, a missing permission) is ignored as
well. A digest is not a signature: anyone who can write to these folders can run code as the user,
as with Python's own ``__pycache__``.

Entries are read from all of these folders, and written to the first that is writable: the folder
that ``NUMBA_CACHE_DIR`` names, ``__pycache__`` beside the source, and the user's cache folder.
Where none is writable, every process compiles the kernels that it needs.

What is compiled is announced, as it takes seconds and would otherwise look like a standstill.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import secrets
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from private_gsd.system import file_systems
from private_gsd.system.file_systems import open_to_read
from private_gsd.system.operating_system import user_cache
from private_gsd.system.progress import COMPILING, announce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The type stubs of Numba lack some of these.
_config: Any = numba.config
_dumps: Any = dumps
_rebuild: Any = CompileResult._rebuild
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
# Kernels inline kernels of other files: a change of any file must invalidate all entries.
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()
SIZE = hashlib.sha256().digest_size
# The kernels that this process compiled.
_COMPILED: set[str] = set()


class KernelCache(NullCache):
    """The cache of the compiled forms of one kernel, as Numba uses it.

    Args:
        function: The Python function of the kernel.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._source = Path(inspect.getfile(function))
        self._name = f"{self._source.stem}.{function.__qualname__}"
        versions = (numba.__version__, sys.version, DIGEST)
        stamp = repr((*versions, self._name, _digest_of(self._source)))
        self._stamp = stamp.encode()

    @property
    def cache_path(self) -> str | None:
        """The folder that entries are read from first."""
        return str(next(self._folders()))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for a signature; None if there is no valid entry."""
        target_context.refresh()
        key = sig, target_context.codegen().magic_tuple()
        for folder in self._folders():
            # If an entry is unusable for any reason, the kernel is compiled again.
            with suppress(Exception):
                content = _read(folder / self._file(key))
                if content[:SIZE] == self._digest(content[SIZE:]):
                    known, data = pickle.loads(content[SIZE:])
                    if known == key:
                        return _rebuild(target_context, *data)
        # Numba compiles the kernel now.
        announce(COMPILING, len(_COMPILED), None)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled form for a signature to the first writable folder."""
        _COMPILED.add(f"{self._name}{sig}")
        announce(COMPILING, len(_COMPILED), len(_COMPILED))
        if data.library.has_dynamic_globals or any(not each.can_cache for each in data.lifted):
            return
        key = sig, data.codegen.magic_tuple()
        with suppress(Exception):
            content = _dumps((key, data._reduce()))
            for folder in self._folders():
                with suppress(OSError):
                    _write(folder / self._file(key), self._digest(content) + content)
                    return

    def _digest(self, content: bytes) -> bytes:
        return hashlib.sha256(self._stamp + content).digest()

    def _file(self, key: tuple[Any, ...]) -> str:
        """A file name for a signature and a processor; a later entry replaces an earlier one."""
        number = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        name = self._name.replace("<", "").replace(">", "")  # which Windows forbids
        return f"{name}-{number}.{sys.implementation.cache_tag}.kernel"

    def _folders(self) -> Iterator[Path]:
        """The folders of the entries."""
        mine = f"private_gsd-{DIGEST[:16]}"
        if _config.CACHE_DIR:
            yield Path(_config.CACHE_DIR) / mine
        yield self._source.parent / "__pycache__"
        with suppress(RuntimeError):  # the home folder is unknown
            yield user_cache() / mine


@lru_cache
def _digest_of(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()


def _read(path: Path) -> bytes:
    """The content of a regular file; anything else is refused, as a pipe would block."""
    with os.fdopen(open_to_read(path, follow=True), "rb") as file:
        return file.read()


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, also where other processes write the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with new.open("xb") as file:
            file.write(content)
        file_systems.replace(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
