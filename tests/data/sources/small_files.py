"""Small files, good and bad, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from private_gsd import Categorical, Integer, Schema, open_source
from private_gsd.errors import SourceError

SCHEMA = Schema(
    [
        Categorical("code", values=("007", "7", "café"), nullable=True),
        Integer("age", lower=0, upper=120),
    ]
)


def rows(data: object, schema: Schema = SCHEMA, **options: int) -> list[list[float]]:
    matrices = list(open_source(data, schema).encoded(**options))  # type: ignore[arg-type]
    return [list(row) for row in np.vstack(matrices)]


GOOD = "code,age\n007,5\n7,6\n"


def check_bad(
    path: Path, content: bytes, *messages: str, error: type[Exception] = SourceError
) -> None:
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        rows(path)
    assert path.name in str(caught.value)
    for message in messages:
        assert message in str(caught.value)


def flips(content: bytes, step: int = 1) -> Iterator[bytes]:
    """The content with each of its bits flipped, or some of them."""
    for place in range(0, len(content) * 8, step):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)
