"""Streams of random numbers, each with a state of one word.

A stream begins from a seed and two numbers, such as a sweep and a row. Its numbers do not depend on
other streams, nor on the thread. The generator is SplitMix64. It is used for the search only, never
for privacy.
"""

from __future__ import annotations

import numpy as np

from private_gsd.kernels.compiling import inlined, kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@inlined
def _mixed(word):  # type: ignore[no-untyped-def]
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@inlined
def begin(stream, seed, first, second):  # type: ignore[no-untyped-def]
    """Set a stream to its beginning."""
    word = _mixed(np.uint64(seed) + _STEP)
    word = _mixed(word + np.uint64(first) * _STEP + _STEP)
    stream[0] = _mixed(word + np.uint64(second) * _STEP + _STEP)


@inlined
def uniform(stream):  # type: ignore[no-untyped-def]
    """A uniform random number in [0, 1), of 53 random bits."""
    stream[0] += _STEP
    return np.float64(_mixed(stream[0]) >> np.uint64(11)) * 2.0**-53


@inlined
def below(stream, bound):  # type: ignore[no-untyped-def]
    """A uniform random whole number from 0 to ``bound`` - 1."""
    return np.int64(uniform(stream) * np.float64(bound))


@inlined
def shuffle(stream, items):  # type: ignore[no-untyped-def]
    """Put items in random order."""
    for last in range(items.size - 1, 0, -1):
        other = below(stream, last + 1)
        items[last], items[other] = items[other], items[last]


@kernel
def begin_stream(seed, first, second, stream):  # type: ignore[no-untyped-def]
    """Set a stream to its beginning; ``begin`` for callers in Python."""
    begin(stream, seed, first, second)


@kernel
def permute(seed, first, second, out):  # type: ignore[no-untyped-def]
    """Fill an array with the numbers from 0 on, in random order."""
    stream = np.empty(1, dtype=np.uint64)
    begin(stream, seed, first, second)
    for place in range(out.size):
        out[place] = place
    shuffle(stream, out)
