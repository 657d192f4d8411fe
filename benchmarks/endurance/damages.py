"""Damages: what may happen to the bytes of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Damage = Callable[[bytes, random.Random], bytes | None]

BLOCK = 512
EDGE = 16


def flip_bit(content: bytes, random: random.Random) -> bytes:
    """One bit is another; in a quarter of the cases near an end, where checksums and sizes are."""
    place, bit = random.randrange(len(content)), 1 << random.randrange(8)
    if random.random() < 0.25:
        place = random.randrange(min(EDGE, len(content)))
        place = random.choice([place, len(content) - 1 - place])
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]


def cut_short(content: bytes, random: random.Random) -> bytes:
    """The end is missing."""
    return content[: random.randrange(1, len(content))]


def zero_block(content: bytes, random: random.Random) -> bytes:
    """A block of the disk, or a part of it, is empty."""
    size = min(BLOCK, max(1, len(content) // 4))
    begin = random.randrange(max(1, len(content) - size + 1))
    return content[:begin] + bytes(size) + content[begin + size :]


def append_junk(content: bytes, random: random.Random) -> bytes:
    """Something follows that does not belong to it."""
    return content + random.randbytes(random.randrange(1, 200))


def empty(content: bytes, random: random.Random) -> bytes:  # noqa: ARG001
    """Nothing is left in the file."""
    return b""


def delete(content: bytes, random: random.Random) -> None:
    """The file is gone."""


DAMAGES: dict[str, Damage] = {
    "flipped bit": flip_bit,
    "cut short": cut_short,
    "zeroed block": zero_block,
    "appended junk": append_junk,
    "emptied": empty,
    "deleted": delete,
}
# The content of the same file elsewhere, where there is one.
SWAPPED = "swapped"
# Bits and blocks are in many places; there is only one way to be gone.
OFTEN = ("flipped bit", "cut short", "zeroed block", "appended junk")


def choose(number: int, *, swap: bool) -> str:
    """The name of the damage of a number: each now and then, those with many places often."""
    rare = ["emptied", "deleted", *([SWAPPED] if swap else [])]
    if number < len(DAMAGES) + swap:
        return [*OFTEN, *rare][number]
    return [*OFTEN, *OFTEN, "flipped bit", *rare][number % (9 + len(rare))]


def damaged(content: bytes, name: str, random: random.Random, other: bytes | None) -> bytes | None:
    """The content after a damage; never as it was, and None where the file is gone."""
    if name == SWAPPED:
        return other
    for _ in range(100):
        found = DAMAGES[name](content, random)
        if found != content:
            return found
    return content + b"\0"  # all zeros, for example
