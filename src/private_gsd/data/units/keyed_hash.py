"""A keyed hash of many inputs at once: SipHash-2-4 of Aumasson and Bernstein, in NumPy.

Its outputs are pseudorandom for whoever does not know the key, which makes the choice of rows a
fair one. No guarantee rests on that: see ``choosing``.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from numpy.typing import NDArray

    Words = NDArray[np.uint64]

# SipHash's own constants, "somepseudorandomlygeneratedbytes".
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_END = np.uint64(0xFF)
KEY_BYTES = 16


def hash_words(key: bytes, words: Iterable[Words], number: int, length: int) -> Words:
    """SipHash-2-4 of several messages of the same length.

    Args:
        key: The key, 16 bytes.
        words: The full 8-byte words of each message, the first words first, and the last word: what
            is left of the message, with zeros, without its length.
        number: The number of messages.
        length: The number of bytes of each message.
    """
    low, high = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    state = [
        np.full(number, start ^ part, dtype=np.uint64)
        for start, part in zip(_START, (low, high, low, high), strict=True)
    ]
    full = length // 8
    for place, word in enumerate(words):
        if place == full:
            word = word | np.uint64((length & 0xFF) << 56)
        state[3] ^= word
        _rounds(state, 2)
        state[0] ^= word
    state[2] ^= _END
    _rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def hash_rows(key: bytes, columns: Iterable[Words], number: int, width: int) -> Words:
    """The hash of rows of whole words.

    Args:
        key: The key.
        columns: The columns, each with a word for each row.
        number: The number of rows.
        width: The number of columns.
    """
    last = np.zeros(number, dtype=np.uint64)
    return hash_words(key, chain(columns, [last]), number, 8 * width)


def hash_texts(key: bytes, texts: pa.LargeStringArray) -> Words:
    """The hash of the bytes of each text; the texts have no nulls.

    Args:
        key: The key.
        texts: The texts.
    """
    _, offsets_buffer, data = texts.buffers()
    first, number = texts.offset, len(texts)
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[first : first + number + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)
    found = np.empty(number, dtype=np.uint64)
    # Texts of one length after the other, so that a long text takes no room for short ones.
    order = np.argsort(lengths, kind="stable")
    ends = np.flatnonzero(np.diff(lengths[order])) + 1
    for mine in np.split(order, ends):
        if not len(mine):
            continue
        length = int(lengths[mine[0]])
        padded = np.zeros((len(mine), 8 * (length // 8 + 1)), dtype=np.uint8)
        if len(mine) < length:
            for place, start in enumerate(starts[mine].tolist()):
                padded[place, :length] = content[start : start + length]
        else:
            for place in range(length):
                padded[:, place] = content[starts[mine] + place]
        words = padded.view("<u8").astype(np.uint64, copy=False)
        found[mine] = hash_words(key, words.T, len(mine), length)
    return found


def _rounds(state: list[Words], number: int) -> None:
    """Rounds of SipHash, in place."""
    a, b, c, d = state
    for _ in range(number):
        a += b
        c += d
        _rotate(b, 13)
        _rotate(d, 16)
        b ^= a
        d ^= c
        _rotate(a, 32)
        c += b
        a += d
        _rotate(b, 17)
        _rotate(d, 21)
        b ^= c
        d ^= a
        _rotate(c, 32)


def _rotate(words: Words, bits: int) -> None:
    """Rotate words to the left, in place."""
    words[:] = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
