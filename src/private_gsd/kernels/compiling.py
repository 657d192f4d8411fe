"""Compiling: Numba, with a cache on disk that notices a change in any kernel.

Numba looks only at the file of the function it compiles, and kernels call kernels of other files:
after an upgrade, old code could be loaded. So the cache of each is stamped with a digest of all.
"""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.extending import overload

if TYPE_CHECKING:
    from collections.abc import Callable

_njit: Any = numba.njit  # its stubs do not know all of its options
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """A function that is compiled when it is first called, and runs without Python's lock."""
    dispatcher = _njit(nogil=True, cache=True)(function)
    dispatcher._cache._cache_file._source_stamp = DIGEST
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """A part of a kernel, compiled into whatever calls it; it cannot make arrays.

    It does not count references either: what it reads belongs to the caller. With counting, every
    look at an array of a tuple of arrays was an atomic operation, and a visit to a cell took 530
    ns instead of 75.
    """
    return _njit(nogil=True, forceinline=True, _nrt=False)(function)


def optional(nothing: Any) -> Callable[[Callable[..., Any]], Any]:
    """An inlined part that is left out where there is nothing for it to do.

    That is where its first argument is an empty tuple instead of a tuple of arrays: what is not
    called is not compiled either, which takes as long as all the rest.

    Args:
        nothing: What is left out gives this.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        names = ", ".join(inspect.signature(function).parameters)
        # Numba wants a function with the same parameters.
        empty = eval(f"lambda {names}: {nothing!r}")

        def chosen(*arguments: Any) -> Any:
            return function if len(arguments[0]) else empty

        chosen.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        options: Any = {"nogil": True, "forceinline": True, "_nrt": False}
        overload(function, jit_options=options)(chosen)
        return function

    return decorate


def reordered(function: Callable[..., Any]) -> Any:
    """An inlined part that may add up its numbers in any order, and so several at a time.

    The order depends on the machine, but on nothing else: the same run gives the same sums.
    """
    return _njit(nogil=True, forceinline=True, _nrt=False, fastmath={"nsz", "reassoc"})(function)
