"""Stand-ins for what is random: two runs have the same noise, the same names and the same clock.

Noise that is added to different counts gives different results. So the stand-in's results do not
depend on the counts at all: they are what two neighbouring tables would give in the cases in which
their measurements happen to be equal. All else that anybody sees must then be equal, too.
"""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from private_gsd.privacy import noise
from private_gsd.privacy.ledger import entries

MOMENT = "2024-02-29T12:00:00.000000+00:00"


class EqualNoise:
    """Stands in for ``SecureNoise``: results of the right shape, whatever the counts are.

    Attributes:
        seen: What the counts and scores were: one digest a call. It is not part of any result.
        results: How many results were given.
    """

    private = True
    seen: list[str] = []  # noqa: RUF012
    results = 0

    def __init__(self, threads: int | None = None) -> None:
        del threads

    def gaussian(self, counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
        """As many numbers of rows."""
        self._look(counts)
        return _generator("gaussian", len(counts), scale).integers(1, 40, len(counts))

    def top_k(self, scores: NDArray[np.int64], k: int, scale: float) -> list[int]:
        """As many positions."""
        self._look(scores)
        order = _generator("top-k", len(scores), scale).permutation(len(scores))
        return [int(place) for place in order[:k]]

    def _look(self, exact: NDArray[np.int64]) -> None:
        EqualNoise.seen.append(hashlib.sha256(np.ascontiguousarray(exact).tobytes()).hexdigest())
        EqualNoise.results += 1


def _generator(what: str, length: int, scale: float) -> np.random.Generator:
    """Random numbers that depend on the shape of a result and the scale of its noise alone."""
    digest = hashlib.sha256(f"{what} {length} {scale!r}".encode()).digest()
    return np.random.default_rng(list(digest))


@contextmanager
def everything_equal(start: int = 0) -> Iterator[None]:
    """Noise that is equal whatever the counts, the same names for runs, and one moment of time.

    Args:
        start: Where names begin: processes that work on the same run need different ones.
    """
    EqualNoise.seen.clear()
    asked: Counter[str] = Counter()

    def token_bytes(size: int = 32) -> bytes:
        # By who asks: how often others did must not matter.
        frame = sys._getframe(1)
        caller = sys._getframe(2).f_code if frame.f_code is token_hex.__code__ else frame.f_code
        asked[caller.co_qualname] += 1
        name = f"{start} {caller.co_qualname} {asked[caller.co_qualname]}"
        return hashlib.shake_128(name.encode()).digest(size)

    def token_hex(size: int = 32) -> str:
        return token_bytes(size).hex()

    with (
        replaced(noise.SecureNoise, EqualNoise),
        replaced(entries.now, lambda: MOMENT),
        _nothing_remembered(),
        mock.patch.object(secrets, "token_bytes", token_bytes),
        mock.patch.object(secrets, "token_hex", token_hex),
    ):
        yield


@contextmanager
def _nothing_remembered() -> Iterator[None]:
    """As if no fit had come before: a second one of a process, on the same data, may warn."""
    memory = sys.modules.get("private_gsd.privacy.unledgered_fits")
    if memory is None:
        yield
        return
    with mock.patch.object(memory, "FITS", []):
        yield


@contextmanager
def replaced(real: Any, stand_in: Any) -> Iterator[None]:
    """Put something in the place of an object in every module of the package that has it."""
    found = [
        (module, name)
        for title, module in list(sys.modules.items())
        if title.partition(".")[0] == "private_gsd"
        for name, value in list(vars(module).items())
        if value is real
    ]
    for module, name in found:
        setattr(module, name, stand_in)
    try:
        yield
    finally:
        for module, name in found:
            setattr(module, name, real)
