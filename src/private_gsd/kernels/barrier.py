"""Together: threads that meet within a kernel, every few hundred rows.

Python's own ways of meeting take a tenth of a millisecond, in which a thread scores ten thousand
edits.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from private_gsd.kernels.compiling import inlined

# After so many looks at the others, a thread offers its core to somebody else.
PATIENCE = 2000

_offer_core: Any = types.ExternalFunction("sched_yield", types.int32())


_intrinsic: Any = intrinsic  # a kernel calls it without the first argument


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Where one of some counters is in memory."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@_intrinsic
def _add(typing_context, counters, which):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """Add one to a counter, one thread at a time; returns what it was."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature, arguments)
        one = context.get_constant(types.int64, 1)
        return builder.atomic_rmw("add", place, one, "seq_cst")

    return types.int64(counters, types.int64), generate


@_intrinsic
def _look(typing_context, counters, which):  # type: ignore[no-untyped-def]  # noqa: ARG001
    """What a counter is now."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature, arguments)
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(counters, types.int64), generate


@inlined
def claim(counters, block):  # type: ignore[no-untyped-def]
    """The next piece of a block's work that nobody has taken: 0, then 1, then 2."""
    return _add(counters, block + 1)


@inlined
def meet(counters, meeting, threads):  # type: ignore[no-untyped-def]
    """Wait until all threads have come to their n-th meeting; returns the number of the next.

    Args:
        counters: Numbers that the threads share, 0 at the beginning: one for their meetings, and
            one for each block of work.
        meeting: The number of the meeting, from 1 on.
        threads: How many meet.
    """
    if threads > 1:
        _add(counters, 0)
        looks = 0
        while _look(counters, 0) < meeting * threads:
            looks += 1
            if looks > PATIENCE:
                _offer_core()
    return meeting + 1
