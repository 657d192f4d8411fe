"""Compiling: what Numba is told of kernels and of their parts."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numba
from numba.extending import overload

from private_gsd.kernels.caching import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable

_njit: Any = numba.njit  # its stubs do not know all of its options


def kernel(function: Callable[..., Any]) -> Any:
    """A function that is compiled when it is first called, and runs without Python's lock."""
    dispatcher = _njit(nogil=True)(function)
    with suppress(OSError):  # of a source that cannot be read, as in an archive, nothing is kept
        dispatcher._cache = KernelCache(function)
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
