"""Barrier: threads wait for each other within a kernel, every few hundred rows.

A barrier of Python takes a tenth of a millisecond. A thread scores ten thousand edits in that time.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
from numba import types
from numba.extending import intrinsic

from private_gsd.kernels.compiling import inlined
from private_gsd.system.operating_system import core_yielding

# Number of checks of the barrier after which a thread yields its core.
PATIENCE = 2000

_name, _address = core_yielding()
if _address is not None:
    llvmlite.binding.add_symbol(_name, _address)
_offer_core: Any = types.ExternalFunction(_name, types.int32())


_intrinsic: Any = intrinsic  # a kernel calls it without the first argument


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of a counter."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@_intrinsic
def _add(typing_context, counters, which):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Add one to a counter, atomically; returns its value before."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature, arguments)
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", place, one, "seq_cst")

    return types.int64(counters, types.int64), generate


@_intrinsic
def _look(typing_context, counters, which):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """The value of a counter, read atomically."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature, arguments)
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(counters, types.int64), generate


@inlined
def claim(counters, block):  # type: ignore[no-untyped-def]
    """Take the next piece of a block; returns its number: 0, then 1, then 2."""
    return _add(counters, block + 1)


@inlined
def wait_at_barrier(counters, phase, threads):  # type: ignore[no-untyped-def]
    """Wait until all threads have reached the barrier; returns the number of the next phase.

    Args:
        counters: Counters that the threads share, 0 at the beginning: one for the barrier, and one
            for each block of work.
        phase: The number of the phase that ends here, from 1 on.
        threads: The number of threads.
    """
    if threads > 1:
        _add(counters, 0)
        looks = 0
        while _look(counters, 0) < phase * threads:
            looks += 1
            if looks > PATIENCE:
                _offer_core()
    return phase + 1
