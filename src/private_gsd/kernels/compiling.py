"""Compiling: the decorators of kernels and of their parts, with the options for Numba.

A part has no machine code of its own: it is optimised, linked into the kernels that call it, and
compiled there. Python cannot call it, but a kernel of its own: ``kernel(part.py_func)``.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import overload

from private_gsd.kernels.caching import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable

_njit: Any = numba.njit  # its stubs do not know all of its options


class PartLibrary(JITCodeLibrary):
    """The code of a part: ready to be linked, without machine code."""

    def _finalize_final_module(self) -> None:
        library: Any = self  # untyped
        library._finalize_dynamic_globals()
        library._finalized = True


class PartCompiler(Compiler):
    """The compiler of a part, which Numba would compile to machine code for its own sake.

    Machine code of every part takes as long as that of the kernels that inline it.
    """

    def _compile_core(self) -> Any:
        state: Any = self.state
        for each in ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"):
            setattr(state.flags, each, True)
        library: Any = PartLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        compiled: Any = super()._compile_core
        result = compiled()
        # Numba knows what it compiled by its entry, a function in C. Any one that is new will do.
        entry = [].clear
        state.targetctx.insert_user_function(entry, result.fndesc, [result.library])
        return result._replace(entry_point=entry)


# Parts do not count references: the arrays belong to the caller, and counting would make every
# access to an array of a tuple an atomic operation.
_PART: Any = {"nogil": True, "forceinline": True, "_nrt": False, "pipeline_class": PartCompiler}


def kernel(function: Callable[..., Any]) -> Any:
    """A function that is compiled at its first call, and runs without Python's global lock."""
    dispatcher = _njit(nogil=True)(function)
    with suppress(OSError):  # a source that cannot be read, as in an archive, is not cached
        dispatcher._cache = KernelCache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """A part of a kernel that is inlined into its callers; it cannot create arrays."""
    return _part(_njit(**_PART)(function))


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
        overload(function, jit_options=_PART)(chosen)
        return function

    return decorate


def reordered(function: Callable[..., Any]) -> Any:
    """An inlined part that may add its numbers in any order, and so several at a time.

    The order depends on the processor alone: the same run gives the same sums.
    """
    return _part(_njit(**_PART, fastmath={"nsz", "reassoc"})(function))


def _part(dispatcher: Any) -> Any:
    """Refuse calls from Python, which would find no machine code."""

    def refuse(*_: Any, **__: Any) -> None:
        name = dispatcher.py_func.__name__
        raise TypeError(f"{name} is a part of kernels: call kernel({name}.py_func)")

    dispatcher._compile_for_args = refuse
    dispatcher._insert = lambda *_: None  # Python's way to machine code
    return dispatcher
