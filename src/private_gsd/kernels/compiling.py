"""Compiling: the decorators of kernels and of their parts, with the options for Numba."""

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
    """A function that is compiled at its first call, and runs without Python's global lock."""
    dispatcher = _njit(nogil=True)(function)
    with suppress(OSError):  # a source that cannot be read, as in an archive, is not cached
        dispatcher._cache = KernelCache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """A part of a kernel that is inlined into its callers; it cannot create arrays.

    It does not count references either: the arrays belong to the caller, and counting would make
    every access to an array of a tuple an atomic operation.
    """
    return _njit(nogil=True, forceinline=True, _nrt=False)(function)


def optional(nothing: Any) -> Callable[[Callable[..., Any]], Any]:
    """An inlined part that is left out where its first argument is an empty tuple.

    A part that is left out is not compiled either, which saves half of the compilation.

    Args:
        nothing: The result of the part where it is left out.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        names = ", ".join(inspect.signature(function).parameters)
        # Numba requires a function with the same parameters.
        empty = eval(f"lambda {names}: {nothing!r}")

        def chosen(*arguments: Any) -> Any:
            return function if len(arguments[0]) else empty

        chosen.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        options: Any = {"nogil": True, "forceinline": True, "_nrt": False}
        overload(function, jit_options=options)(chosen)
        return function

    return decorate


def reordered(function: Callable[..., Any]) -> Any:
    """An inlined part that may add its numbers in any order, and so several at a time.

    The order depends on the processor alone: the same run gives the same sums.
    """
    return _njit(nogil=True, forceinline=True, _nrt=False, fastmath={"nsz", "reassoc"})(function)
