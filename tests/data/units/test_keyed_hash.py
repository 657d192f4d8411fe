"""The keyed hash is SipHash-2-4: its authors' test values, and a slow twin of any length."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_gsd.data.units.keyed_hash import hash_rows, hash_texts

KEY = bytes(range(16))
MASK = 2**64 - 1
# Of the messages 00, 00 01, 00 01 02 …, from the paper's appendix and its reference program.
KNOWN = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
    63: 0x958A324CEB064572,
}


def sip_hash(key: bytes, message: bytes) -> int:
    """SipHash-2-4 in plain Python, message by message."""

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> (64 - bits)) & MASK

    def rounds(state: list[int], number: int) -> None:
        for _ in range(number):
            a, b, c, d = state
            a = (a + b) & MASK
            b = rotated(b, 13) ^ a
            a = rotated(a, 32)
            c = (c + d) & MASK
            d = rotated(d, 16) ^ c
            a = (a + d) & MASK
            d = rotated(d, 21) ^ a
            c = (c + b) & MASK
            b = rotated(b, 17) ^ c
            c = rotated(c, 32)
            state[:] = [a, b, c, d]

    low, high = struct.unpack("<QQ", key)
    words = (b"somepseu", b"dorandom", b"lygenera", b"tedbytes")
    starts: list[int] = [struct.unpack(">Q", word)[0] for word in words]
    state: list[int] = [
        start ^ part for start, part in zip(starts, (low, high, low, high), strict=True)
    ]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        state[3] ^= word
        rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xFF
    rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


@pytest.mark.parametrize(("length", "expected"), KNOWN.items())
def test_values_of_the_authors(length: int, expected: int) -> None:
    message = bytes(range(length))
    assert sip_hash(KEY, message) == expected
    texts = pa.array([message.decode("ascii")], pa.large_string())
    assert hash_texts(KEY, texts).tolist() == [expected]


@given(
    st.binary(min_size=16, max_size=16),
    st.lists(st.text(max_size=40), max_size=20),
    st.integers(0, 3),
)
def test_texts_are_hashed_as_one_by_one(key: bytes, texts: list[str], start: int) -> None:
    encoded = [text.encode(errors="ignore") for text in texts]
    array = pa.array([text.decode() for text in encoded], pa.large_string())
    found = hash_texts(key, array[start:]).tolist()
    assert found == [sip_hash(key, text) for text in encoded[start:]]


def test_a_long_text_beside_short_ones() -> None:
    texts = ["", "a", "b" * 300, "c" * 5000]
    array = pa.array(texts, pa.large_string())
    assert hash_texts(KEY, array).tolist() == [sip_hash(KEY, each.encode()) for each in texts]


@given(st.lists(st.tuples(*[st.integers(0, MASK)] * 3), max_size=20))
def test_rows_are_hashed_as_their_words(rows: list[tuple[int, ...]]) -> None:
    columns = np.array(rows, dtype=np.uint64).reshape(len(rows), 3).T
    found = hash_rows(KEY, columns, len(rows), 3).tolist()
    assert found == [sip_hash(KEY, struct.pack("<QQQ", *row)) for row in rows]
